"""Products of int8 rows with int8 weights: rounding by the rule of compressed-tensors, sums beside float64, a row's
bits alone and in company; with NumPy and by the kernels on the simulator."""

from __future__ import annotations

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core.dtypes import as_dtype
from pygpukit.nn.linear.codes import Int8
from pygpukit.nn.linear.int8 import LinearInt8, round_rows
from pygpukit.nn.norm import Norm


@pytest.fixture
def way(request: pytest.FixtureRequest) -> str:
    """NumPy, or kernels on the simulator."""
    if request.param == "kernels":
        request.getfixturevalue("kernels_on_sim")
    return str(request.param)


both = pytest.mark.parametrize("way", ["host", "kernels"], indirect=True)


def rounded(rows: np.ndarray, scale: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Codes and scales by the rule: divided in float32, clipped, rounded to even."""
    own = np.abs(rows).max(1, keepdims=True) / np.float32(255 / 2)
    own = np.full_like(own, scale) if scale else np.where(own == 0, np.finfo(np.float32).eps, own)
    return np.rint(np.clip(rows / own, -128, 127)).astype(np.int8), own[:, 0]


def linear(rng: np.random.Generator, out: int, columns: int, dtype: str, scale: float | None = None, bias: bool = True):
    """A layer, and its codes, scales and bias."""
    codes = rng.integers(-128, 128, (out, columns)).astype(np.int8)
    scales = rng.uniform(1e-4, 1e-2, out).astype(np.float32)
    added = gp.from_numpy(rng.standard_normal(out).astype(np.float32)).astype(dtype) if bias else None
    weight = Int8.of(gp.from_numpy(codes), gp.from_numpy(scales), as_dtype(dtype), scale)
    numbers = 0.0 if added is None else added.astype("float32").to_numpy().astype(np.float64)
    return LinearInt8(weight, added), codes, scales, numbers


@both
@pytest.mark.parametrize("scale", [None, 0.03])
def test_rows_are_rounded_by_the_rule(way: str, scale: float | None) -> None:
    rng = np.random.default_rng(1)
    rows = (rng.standard_normal((7, 333)) * 10.0 ** rng.integers(-3, 2, (7, 1))).astype(np.float32)
    rows[2] = 0
    rows[3, 5] = 1e30
    rows[4, :3] = np.array([0.5, 1.5, 2.5], np.float32) * np.float32(scale or 1)  # halves go to even
    codes, scales = round_rows(gp.from_numpy(rows), scale)
    expected, own = rounded(rows, scale)
    np.testing.assert_array_equal(codes.to_numpy(), expected)
    np.testing.assert_array_equal(scales.to_numpy(), own)


@both
def test_rows_without_numbers_say_so(way: str) -> None:
    rows = np.ones((4, 40), np.float32)
    rows[0, 7], rows[1, 39], rows[2, 0] = np.nan, np.inf, -np.inf
    own = round_rows(gp.from_numpy(rows))[1].to_numpy()
    assert np.isnan(own[:3]).all() and own[3] == np.float32(1 / 127.5)
    codes, fixed = (array.to_numpy() for array in round_rows(gp.from_numpy(rows), 0.5))
    assert np.isnan(fixed[0]) and (fixed[1:] == 0.5).all()
    assert codes[1, 39] == 127 and codes[2, 0] == -128 and codes[3, 0] == 2


@both
@pytest.mark.parametrize(
    ("dtype", "epilogue", "scale"), [("float32", "store", None), ("bfloat16", "silu", None), ("bfloat16", "add", 0.02)]
)
@pytest.mark.parametrize("start", [None, 0])
def test_products_beside_float64(way: str, dtype: str, epilogue: str, scale: float | None, start: int | None) -> None:
    rng = np.random.default_rng(2)
    rows, out, columns = 5, 46, 77
    layer, codes, scales, bias = linear(rng, out, columns, dtype, scale)
    x = gp.from_numpy(rng.standard_normal((rows, columns)).astype(np.float32)).astype(dtype)
    width = out // 2 if epilogue == "silu" else out
    before = rng.standard_normal((rows, width)).astype(np.float32)
    result = gp.from_numpy(before if epilogue == "add" else np.full((rows, width), np.nan, np.float32))
    result = result if epilogue == "add" else result.astype(dtype)
    layer.project(x, result, start, epilogue=epilogue)  # type: ignore[arg-type]
    own, steps = rounded(x.astype("float32").to_numpy(), scale)
    want = own.astype(np.float64) @ codes.T * steps[:, None].astype(np.float64) * scales + bias
    size = np.abs(want)
    if epilogue == "add":
        want = want + before
    if epilogue == "silu":
        gate, up = np.split(want, 2, axis=1)
        want, size = gate / (1 + np.exp(-gate)) * up, np.abs(gate * up) + np.abs(up)
    error = np.abs(result.astype("float32").to_numpy() - want)
    rounding = 2.0**-8 if result.dtype == as_dtype("bfloat16") else 0.0
    assert (error <= 1e-6 * (size + 1) + rounding * np.abs(want)).all()


@both
def test_a_rows_bits_are_its_own(way: str) -> None:
    rng = np.random.default_rng(3)
    layer, *_ = linear(rng, 33, 96, "float32")
    norm = Norm(gp.from_numpy(rng.standard_normal(96).astype(np.float32)), eps=1e-5)
    x = rng.standard_normal((19, 96)).astype(np.float32)
    together = gp.zeros((19, 33))
    layer.project(gp.from_numpy(x), together, 0, norm=norm)
    for own in (slice(0, 1), slice(18, 19), slice(4, 11)):
        for start in (None, 3):
            alone = gp.from_numpy(np.full((own.stop - own.start, 33), np.nan, np.float32))
            layer.project(gp.from_numpy(x[own]), alone, start, norm=norm)
            np.testing.assert_array_equal(alone.to_numpy(), together.to_numpy()[own])


def test_calls_neighbours_and_values() -> None:
    rng = np.random.default_rng(4)
    layer, codes, scales, bias = linear(rng, 12, 40, "float32")
    x = rng.standard_normal((2, 3, 40)).astype(np.float32)
    result = layer(gp.from_numpy(x)).to_numpy()
    own, steps = rounded(x.reshape(6, 40))
    want = own.astype(np.float64) @ codes.T * steps[:, None].astype(np.float64) * scales + bias
    np.testing.assert_allclose(result.reshape(6, 12), want, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(layer.weight[3:7].expanded().to_numpy(), codes[3:7] * scales[3:7, None])  # type: ignore[union-attr]
    assert layer.weight.nbytes == 12 * 40 + 12 * 4 and layer.new_bests() is None
