"""Prefix sums and products, against NumPy; on both backends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pygpukit as gp
from pygpukit.core.dtypes import DTYPES, STORAGE_ONLY

pytestmark = pytest.mark.usefixtures("operation_backend")

NAMES = [dtype.name for dtype in DTYPES if dtype not in STORAGE_ONLY and dtype != "bfloat16"]
# Of the largest partial sum: rounding of the result plus that of the sum.
TOLERANCE = {"float16": 1e-3, "float32": 2e-6, "complex64": 2e-6, "float64": 1e-14, "complex128": 1e-14}


def sample(shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng()
    if np.dtype(dtype).kind in "biu":
        return rng.integers(0, 120, shape).astype(dtype)
    values = rng.standard_normal(shape)
    return (values + 1j * rng.standard_normal(shape)).astype(dtype) if dtype.startswith("c") else values.astype(dtype)


def agree(found: gp.GPUArray, a: np.ndarray[Any, Any], axis: int | None, name: str = "cumsum") -> None:
    expected = getattr(np, name)(a, axis=axis)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    if expected.dtype.kind in "iu":
        np.testing.assert_array_equal(found.to_numpy(), expected)
        return
    wide = getattr(np, name)(a, axis=axis, dtype=np.complex128 if expected.dtype.kind == "c" else np.float64)
    tolerance = TOLERANCE[expected.dtype.name] * np.abs(wide).max(initial=0)
    np.testing.assert_allclose(found.to_numpy(), wide, rtol=TOLERANCE[expected.dtype.name], atol=tolerance)


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("dtype", NAMES)
def test_every_type_over_every_axis(name: str, dtype: str) -> None:
    a = sample((3, 67, 5), dtype)
    if name == "cumprod" and np.dtype(dtype).kind in "fc":
        a = (a / np.abs(a)).astype(dtype)  # keeps products in range
    for axis in (None, 0, 1, 2, -2):
        agree(getattr(gp, name)(gp.from_numpy(a), axis), a, axis, name)


@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((1,), 0), ((33,), 0), ((4097,), 0), ((140_001,), 0), ((5, 9000), 1), ((9, 513), 1), ((700, 3), 0),
        ((2, 600, 3), 1), ((300, 8), 1), ((0,), 0), ((0, 4), 1), ((4, 0), 1), ((4, 0), 0),
    ],
)  # fmt: skip
def test_lengths_on_each_path(shape: tuple[int, ...], axis: int) -> None:
    for dtype in ("float32", "int32"):
        a = sample(shape, dtype)
        agree(gp.cumsum(gp.from_numpy(a), axis), a, axis)


step = st.sampled_from([1, 2, -1, -2])


@settings(deadline=None, max_examples=40)
@given(st.tuples(st.integers(0, 5), st.integers(0, 70), st.integers(0, 5)), st.tuples(step, step, step),
       st.permutations(range(3)), st.sampled_from([None, 0, 1, 2]))  # fmt: skip
def test_any_strides(shape: tuple[int, ...], steps: tuple[int, ...], order: list[int], axis: int | None) -> None:
    base = sample(shape, "int16")
    key = tuple(slice(None, None, step) for step in steps)
    agree(gp.cumsum(gp.from_numpy(base)[key].transpose(order), axis), base[key].transpose(order), axis)


def test_bfloat16_accumulates_in_float32() -> None:
    ones = gp.ones((2, 5000), "bfloat16")
    found = gp.cumsum(ones, 1)
    assert found.dtype == "bfloat16"
    assert found[1, 4095].item() == 4096, "a bfloat16 sum would stop growing at 256"


@pytest.mark.parametrize("dtype", ["int8", "uint32", "int64", "bool", "float16", "float64", "complex64"])
@pytest.mark.parametrize("source", ["int16", "float32", "bool"])
def test_dtype_is_numpys(source: str, dtype: str) -> None:
    a = abs(sample((50,), source))  # a negative float has no unsigned value, and no language says what it becomes
    found = gp.cumsum(gp.from_numpy(a), dtype=dtype)
    expected = np.cumsum(a, dtype=dtype)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found.to_numpy(), expected, rtol=5e-3, atol=5e-2)


def test_special_values() -> None:
    a = np.array([-0.0, -0.0, np.inf, 1, -np.inf, np.nan], np.float32)
    with np.errstate(invalid="ignore"):
        expected = np.cumsum(a)
    found = gp.cumsum(gp.from_numpy(a)).to_numpy()
    np.testing.assert_array_equal(found, expected)
    assert np.signbit(found[:2]).all()
    assert np.isinf(gp.cumprod(gp.from_numpy(np.array([complex(np.inf, 0)]))).to_numpy().real).all()


def test_out_and_in_place() -> None:
    a = sample((6, 300), "float32")
    x = gp.from_numpy(a)
    out = gp.zeros((6, 600))
    assert gp.cumsum(x, 1, out=out[:, ::-2]).block == out.block
    agree(out[:, ::-2], a, 1)
    assert not out[:, ::2].to_numpy().any()
    reverse = x.clone()
    gp.cumsum(reverse, 1, out=reverse[:, ::-1])
    agree(reverse[:, ::-1], a, 1)
    gp.cumsum(x, 0, out=x)
    agree(x, a, 0)
    narrow = gp.zeros((6, 300), "float16")
    gp.cumsum(x, 1, out=narrow)
    assert narrow.to_numpy().any()
    with pytest.raises(gp.ShapeError, match="out has shape"):
        gp.cumsum(x, out=out)
    with pytest.raises(gp.DTypeError, match="cannot be stored"):
        gp.cumsum(x, 0, out=gp.zeros((6, 300), "int32"))


def test_array_api_names() -> None:
    a = sample((4, 6), "int8")
    x = gp.from_numpy(a)
    with_initial = gp.cumulative_sum(x, axis=1, include_initial=True).to_numpy()
    np.testing.assert_array_equal(with_initial, np.insert(np.cumsum(a, 1), 0, 0, axis=1))
    products = gp.cumulative_prod(x, axis=0, include_initial=True, dtype="int32")
    assert products.dtype == "int32"
    np.testing.assert_array_equal(products.to_numpy(), np.insert(np.cumprod(a, 0, dtype=np.int32), 0, 1, axis=0))
    np.testing.assert_array_equal(gp.cumulative_sum(x[0]).to_numpy(), np.cumsum(a[0]))
    with pytest.raises(gp.ShapeError, match="axis must be given"):
        gp.cumulative_sum(x)


def test_scans_refuse() -> None:
    with pytest.raises(gp.ShapeError, match="axis 2 is out of range"):
        gp.cumsum(gp.ones((2, 3)), 2)
    with pytest.raises(gp.DTypeError, match="storage type"):
        gp.cumsum(gp.empty(4, "int4"))
    with pytest.raises(gp.DTypeError, match="from_numpy"):
        gp.cumsum(np.ones(3))  # type: ignore[arg-type]


def test_same_bits_every_time() -> None:
    x = gp.from_numpy(sample((200_003,), "float32"))
    first = x.cumsum().to_numpy().tobytes()
    assert all(x.cumsum().to_numpy().tobytes() == first for _ in range(10))
