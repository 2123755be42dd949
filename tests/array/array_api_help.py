"""Calls of the array API standard, made in this package's namespace and in array-api-strict's, and compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import array_api as xp

strict = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")

RNG = np.random.default_rng()

BOOL = ("bool",)
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
FLOATS = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
REAL = INTEGERS + FLOATS
NUMERIC = REAL + COMPLEX
INEXACT = FLOATS + COMPLEX
ALL = BOOL + NUMERIC
DTYPES = {*BOOL, *NUMERIC}

Case = tuple[tuple[Any, ...], dict[str, Any]]


def values(shape: tuple[int, ...], dtype: str, low: float = -8, high: float = 8) -> np.ndarray:
    """Random elements: small whole numbers for integers, so that nothing overflows, and a few ties everywhere."""
    if dtype == "bool":
        return np.asarray(RNG.integers(0, 2, shape)).astype(bool)
    if dtype in INTEGERS:
        drawn = RNG.integers(max(int(low), 0) if dtype in UNSIGNED else int(low), int(high), shape)
        return np.asarray(drawn).astype(dtype)
    drawn = RNG.uniform(low, high, shape)
    if dtype in COMPLEX:
        drawn = drawn + 1j * RNG.uniform(low, high, shape)
    return np.asarray(drawn).astype(dtype)


def given(value: Any, namespace: Any) -> Any:
    """A test argument in a namespace: NumPy arrays become its arrays, names of types its types."""
    if isinstance(value, np.ndarray):
        ours = getattr(namespace, "_namespace", namespace) is xp
        return gp.from_numpy(value) if ours else strict.asarray(value)
    if isinstance(value, list):
        return [given(item, namespace) for item in value]
    return getattr(namespace, value) if isinstance(value, str) and value in DTYPES else value


def call(name: str, namespace: Any, case: Case) -> Any:
    args, kwargs = case
    return getattr(namespace, name)(
        *(given(x, namespace) for x in args), **{key: given(x, namespace) for key, x in kwargs.items()}
    )


def compare(name: str, result: Any, expected: Any, case: Case) -> None:
    if isinstance(expected, (tuple, list)) and not all(isinstance(x, int) for x in expected):
        assert len(result) == len(expected)
        if hasattr(expected, "_fields"):
            assert result._fields == expected._fields
        for one, other in zip(result, expected, strict=True):
            compare(name, one, other, case)
        return
    if not isinstance(expected, strict.asarray(0).__class__):
        assert str(result) == str(expected).rpartition(".")[2] or result == expected, (name, case)
        return
    assert isinstance(result, gp.GPUArray), name
    there = np.asarray(expected)
    assert (result.shape, result.dtype.name) == (there.shape, there.dtype.name), (name, case)
    if name.startswith("empty"):
        return
    rounded = any(isinstance(x, np.ndarray) and x.dtype.kind == "c" for x in case[0]) or name not in EXACT
    if there.dtype.kind in "fc" and rounded:
        bound = 1e-4 if there.dtype in ("float32", "complex64") else 1e-12
        np.testing.assert_allclose(result.to_numpy(), there, rtol=bound, atol=bound, err_msg=f"{name}{case}")
    else:
        np.testing.assert_array_equal(result.to_numpy(), there, err_msg=f"{name}{case}")


EXACT = {
    *("abs", "ceil", "clip", "copysign", "floor", "maximum", "minimum", "negative", "nextafter", "positive", "round"),
    *("sign", "trunc", "arange", "asarray", "full", "where", "concat", "reshape", "sort", "take", "max", "min"),
}


class Extension:
    """A namespace's extension, and its data types."""

    def __init__(self, namespace: Any, extension: str) -> None:
        self._namespace, self._extension = namespace, getattr(namespace, extension)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._namespace if name in DTYPES else self._extension, name)
