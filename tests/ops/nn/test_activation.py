"""Activation functions against their definitions in float64, in every float type, on both backends."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pygpukit as gp

pytestmark = pytest.mark.usefixtures("operation_backend")

Array = np.ndarray[Any, Any]
EPSILON = {"bfloat16": 2.0**-8, "float16": 2.0**-11, "float32": 2.0**-24, "float64": 2.0**-53}


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _gelu(x: Array) -> Array:
    return x * np.array([0.5 * math.erfc(-v * math.sqrt(0.5)) for v in x.flat]).reshape(x.shape)


DEFINITIONS: dict[str, Callable[..., Array]] = {
    "relu": lambda x: np.maximum(x, 0),
    "relu2": lambda x: np.maximum(x, 0) ** 2,
    "sigmoid": _sigmoid,
    "silu": lambda x: x * _sigmoid(x),
    "gelu": _gelu,
    "tanh": np.tanh,
}


def inputs(dtype: str, shape: tuple[int, ...] = (50, 41)) -> tuple[gp.GPUArray, Array]:
    """Fresh numbers on the device, and as float64 what they are there."""
    spread = np.random.default_rng().choice([0.01, 1.0, 4.0, 12.0], shape)
    x = gp.from_numpy((np.random.default_rng().standard_normal(shape) * spread).astype(np.float32)).astype(dtype)
    return x, x.astype("float64").to_numpy()


def close(found: gp.GPUArray, expected: Array, dtype: str, units: float, floor: float = 0.0) -> None:
    """Within so many halves of a unit in the last place, or of a tiny number."""
    assert found.dtype == dtype
    values = found.astype("float64").to_numpy()
    tiny = {"float16": 2.0**-24}.get(dtype, 1e-37)
    error = np.abs(values - expected) / (EPSILON[dtype] * np.abs(expected) + tiny + floor)
    assert error.max() <= units, (error.max(), expected.flat[error.argmax()])


@pytest.mark.parametrize("dtype", EPSILON)
@pytest.mark.parametrize("name", DEFINITIONS)
def test_against_the_definition(name: str, dtype: str) -> None:
    x, a = inputs(dtype)
    with np.errstate(all="ignore"):
        expected = DEFINITIONS[name](a)
    # 16-bit types round the one float32 result; float32 and float64 functions err by a few units of their own.
    # The tail of gelu in float32 is a product with a polynomial whose factors lose some.
    units = 1.05 if dtype in ("bfloat16", "float16") else 100.0 if name.startswith("gelu") else 16.0
    for found in (getattr(gp, name)(x), getattr(gp, name)(x.T).T, getattr(gp, name)(x[:, ::-1])[:, ::-1]):
        close(found, expected, dtype, units)


@pytest.mark.parametrize("dtype", EPSILON)
def test_gelu_by_tanh(dtype: str) -> None:
    x, a = inputs(dtype)
    expected = 0.5 * a * (1 + np.tanh(math.sqrt(2 / math.pi) * (a + 0.044715 * a**3)))
    with np.errstate(over="ignore"):
        accurate = a / (1 + np.exp(-2 * math.sqrt(2 / math.pi) * (a + 0.044715 * a**3)))
    np.testing.assert_allclose(accurate, expected, atol=1e-14)
    # The exponent's own rounding counts as many times as it is large.
    close(gp.gelu(x, approximate="tanh"), accurate, dtype, 1.1 if EPSILON[dtype] > 1e-6 else 400.0)
    with pytest.raises(ValueError, match="approximate='erf'"):
        gp.gelu(x, approximate="erf")  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", EPSILON)
def test_gated(dtype: str) -> None:
    (x, a), (y, b) = inputs(dtype), inputs(dtype)
    units = 1.05 if EPSILON[dtype] > 1e-6 else 16.0
    close(gp.swiglu(x, y), a * _sigmoid(a) * b, dtype, units)
    close(gp.geglu(x, y), _gelu(a) * b, dtype, units if units < 2 else 100.0)
    out = gp.empty(x.shape, dtype)
    assert gp.swiglu(x, y, out=out) is out
    assert gp.swiglu(x, y).to_numpy().tobytes() == out.to_numpy().tobytes()


@pytest.mark.parametrize("dtype", EPSILON)
def test_special_values(dtype: str) -> None:
    x = gp.from_numpy(np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 3e4, -3e4], np.float32)).astype(dtype)

    def values(found: gp.GPUArray) -> Array:
        return found.astype("float32").to_numpy()

    np.testing.assert_array_equal(values(gp.relu(x))[2:], values(gp.maximum(x, 0))[2:])
    assert np.isnan(values(gp.relu(x))[4])
    assert np.isnan(values(gp.relu2(x))[4])
    assert np.isnan(values(gp.gelu(x))[4])
    np.testing.assert_array_equal(values(gp.sigmoid(x))[[0, 2, 3, 5, 6]], [0.5, 1, 0, 1, 0])
    large = values(x)[5]
    np.testing.assert_array_equal(values(gp.gelu(x))[[0, 2, 3, 5, 6]], [0, np.inf, 0, large, 0])
    np.testing.assert_array_equal(values(gp.silu(x))[[0, 2, 5, 6]], [0, np.inf, large, 0])


def test_integers_compute_as_floats() -> None:
    assert gp.sigmoid(gp.ones(3, "int8")).dtype == "float16"
    assert gp.gelu(gp.ones(3, "int32")).dtype == "float64"
    assert gp.relu(gp.full(3, -2, "int32")).to_numpy().tolist() == [0, 0, 0]
    with pytest.raises(gp.DTypeError, match="not defined for complex64"):
        gp.silu(gp.ones(3, "complex64"))
