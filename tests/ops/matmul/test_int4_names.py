"""The documented products of int4 and int8 beside integers of NumPy: odd sizes, every number, scales, refusals."""

from __future__ import annotations

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import ops

pytestmark = pytest.mark.usefixtures("operation_backend")

rng = np.random.default_rng()
SHAPES = [(1, 2, 1), (3, 10, 5), (33, 66, 17), (64, 130, 65), (0, 4, 3), (2, 0, 3)]


def packed(numbers: np.ndarray) -> gp.GPUArray:
    """int4 numbers (rows, k) as bytes, the first of two in the low bits."""
    bits = (numbers & 15).astype(np.uint8)
    return gp.from_numpy(bits[:, ::2] | bits[:, 1::2] << 4)


def drawn(rows: int, k: int) -> np.ndarray:
    return rng.integers(-8, 8, (rows, k))


@pytest.mark.parametrize("shape", SHAPES)
def test_int4_sums_are_exact(shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    a, b = drawn(m, k), drawn(n, k)
    out = gp.full((m, n), -77, "int32")
    assert ops.gemm_int4_int32_sm120(packed(a), packed(b), out) is None
    np.testing.assert_array_equal(out.to_numpy(), a @ b.T)
    short = gp.full((m, n), -77, "int8")
    ops.int4_gemm_int8_sm120(packed(a), packed(b), short)
    np.testing.assert_array_equal(short.to_numpy(), np.clip(a @ b.T, -128, 127))


def test_every_pair_of_int4_numbers() -> None:
    numbers = np.arange(-8, 8)
    pairs = np.stack([np.repeat(numbers, 16), np.tile(numbers, 16)], 1)
    out = gp.zeros((256, 256), "int32")
    ops.int4_gemm_int32_sm120(packed(pairs), packed(pairs), out)
    np.testing.assert_array_equal(out.to_numpy(), pairs @ pairs.T)


@pytest.mark.parametrize("dtype", ["int32", "int8"])
def test_scaled_sums_are_rounded_to_even_and_held_in_range(dtype: str) -> None:
    a, b = drawn(9, 40), drawn(7, 40)
    product = ops.gemm_int4_int32_sm120 if dtype == "int32" else ops.gemm_int4_int8_sm120
    limits = np.iinfo(dtype)
    for scales in ((0.5, 1.0, 1.0), (0.25, 0.5, 3.0), (-1.5, 1.0, 1.0), (1e9, 1.0, 1.0), (1.0, 0.0, 1.0)):
        out = gp.full((9, 7), 55, dtype)
        product(packed(a), packed(b), out, *scales)
        exact = np.rint((a @ b.T) * (scales[0] * scales[1] * scales[2]))
        np.testing.assert_array_equal(out.to_numpy(), np.clip(exact, limits.min, limits.max).astype(dtype))


@pytest.mark.parametrize("shape", SHAPES)
def test_int8_sums_are_exact(shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    a, b = (rng.integers(-128, 128, (rows, k)).astype(np.int8) for rows in (m, n))
    out = gp.full((m, n), -77, "int32")
    ops.int8_native_gemm_sm120(gp.from_numpy(a), gp.from_numpy(b), out)
    np.testing.assert_array_equal(out.to_numpy(), a.astype(np.int64) @ b.T.astype(np.int64))


def test_views_are_read_and_written() -> None:
    a, b = drawn(12, 8), drawn(5, 8)
    whole = gp.full((12, 10), -1, "int32")
    ops.gemm_int4_int32_sm120(packed(a)[::2], packed(b), whole[:6, ::2])
    np.testing.assert_array_equal(whole.to_numpy()[:6, ::2], a[::2] @ b.T)
    assert (whole.to_numpy()[:, 1::2] == -1).all() and (whole.to_numpy()[6:] == -1).all()


def test_they_say_that_they_are_there() -> None:
    names = ("gemm_int4_int32_available", "int4_gemm_available", "gemm_int8_int32_available")
    assert all(getattr(ops, name)() for name in names)


def test_what_does_not_fit_is_refused_by_name() -> None:
    a, b, out = gp.zeros((2, 4), "uint8"), gp.zeros((3, 4), "uint8"), gp.full((2, 3), 9, "int32")
    wrong = [
        (lambda: ops.gemm_int4_int32_sm120(a.view("int8"), b, out), gp.DTypeError, "A is int8 .* a uint8 matrix"),
        (lambda: ops.gemm_int4_int32_sm120(a, b[0], out), gp.DTypeError, "B is uint8 of shape"),
        (lambda: ops.gemm_int4_int8_sm120(a, b, out), gp.DTypeError, "D is int32 .* an? int8 matrix"),
        (lambda: ops.gemm_int4_int32_sm120(a, b[:, :3], out), gp.ShapeError, "equally long"),
        (lambda: ops.gemm_int4_int32_sm120(a, b, out[:, :2]), gp.ShapeError, "a column for each of B"),
        (lambda: ops.gemm_int8_int32_sm120(a, b, out), gp.DTypeError, "A is uint8"),
        (lambda: ops.gemm_int4_int32_sm120(a, b, out, scale_B=float("nan")), gp.InvalidSpecError, "scale_B is nan"),
    ]  # fmt: skip
    for call, error, message in wrong:
        with pytest.raises(error, match=message):
            call()
    assert (out.to_numpy() == 9).all()
