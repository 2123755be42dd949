"""Softmax and normalisation against float64: types, axes, lengths, layouts, weights, empty inputs, refusals, bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import ops

pytestmark = pytest.mark.usefixtures("operation_backend")

EPSILONS = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
LENGTHS = [1, 2, 31, 33, 1023, 4097, 17_000]
Wide = np.ndarray[Any, np.dtype[np.float64]]


def sample(shape: tuple[int, ...], dtype: str, spread: float = 1.0, middle: float = 0.0) -> gp.GPUArray:
    rng = np.random.default_rng(sum(shape))
    return gp.from_numpy((rng.standard_normal(shape) * spread + middle).astype(np.float32)).astype(dtype)


def wide(x: gp.GPUArray) -> Wide:
    return x.astype("float64").to_numpy()


def softmax(a: Wide, axis: int) -> Wide:
    e = np.exp(a - a.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def log_softmax(a: Wide, axis: int) -> Wide:
    a = a - a.max(axis, keepdims=True)
    return a - np.log(np.exp(a).sum(axis, keepdims=True))


def layernorm(a: Wide, g: Wide | float, b: Wide | float, eps: float = 1e-5) -> Wide:
    return (a - a.mean(-1, keepdims=True)) / np.sqrt(a.var(-1, keepdims=True) + eps) * g + b


def rmsnorm(a: Wide, g: Wide | float, eps: float = 1e-5) -> Wide:
    return a / np.sqrt((a * a).mean(-1, keepdims=True) + eps) * g


def near(found: gp.GPUArray, expected: Wide, like: gp.GPUArray, rounds: float = 4, absolute: float = 1.0) -> None:
    """found is like the input, and within a few roundings of the float64 reference (one for 16-bit types)."""
    assert found.shape == expected.shape
    assert found.dtype == like.dtype
    own = EPSILONS[like.dtype.name]
    inner = max(min(own, 2.0**-23), own if own < 1e-10 else 2.0**-23)
    slack = (own if own > 2.0**-23 else rounds * own) * np.abs(expected) + 4 * inner * absolute
    slack += 2.0**-24 if like.dtype == "float16" else 0  # its smallest number
    assert np.all(np.abs(wide(found) - expected) <= slack), np.max(np.abs(wide(found) - expected) / slack)


@pytest.mark.parametrize("dtype", EPSILONS)
@pytest.mark.parametrize("length", LENGTHS)
def test_against_float64(dtype: str, length: int) -> None:
    x = sample((3, length), dtype, 3)
    g, b = sample((length,), dtype), sample((length,), dtype, 0.5)
    near(gp.softmax(x), softmax(wide(x), -1), x, 30, 0.01)
    near(gp.log_softmax(x), log_softmax(wide(x), -1), x, 4, 8)
    near(gp.layernorm(x, g, b), layernorm(wide(x), wide(g), wide(b)), x, 8, 2)
    near(gp.rmsnorm(x, g), rmsnorm(wide(x), wide(g)), x, 8, 0)
    near(gp.softmax(x, 0), softmax(wide(x), 0), x, 30, 0.01)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_types_with_float32_weights(dtype: str) -> None:
    x = sample((5, 264), dtype)
    g, b = sample((264,), "float32"), sample((264,), "float32", 0.5)
    near(gp.layernorm(x, g, b), layernorm(wide(x), wide(g), wide(b)), x)
    near(gp.rmsnorm(x, g), rmsnorm(wide(x), wide(g)), x)
    near(gp.layernorm(x, g, b.astype(dtype)), layernorm(wide(x), wide(g), wide(b.astype(dtype))), x)


def test_a_far_mean_costs_no_digits() -> None:
    """mean(x * x) - mean(x) ** 2 would have no correct digit here."""
    x = sample((4, 1000), "float32", 0.1, 1000.0)
    exact = layernorm(wide(x), 1.0, 0.0)
    assert np.abs(wide(gp.layernorm(x, None, None)) - exact).max() < 5e-3
    long = sample((2, 20_000), "float32", 0.1, 1000.0)
    assert np.abs(wide(gp.layernorm(long, None, None)) - layernorm(wide(long), 1.0, 0.0)).max() < 5e-3


def test_weights_may_be_left_out() -> None:
    x = sample((2, 3, 40), "float32")
    g, b = sample((40,), "float32"), sample((40,), "float32", 2)
    near(gp.layernorm(x, None, None), layernorm(wide(x), 1, 0), x, 8, 2)
    near(gp.layernorm(x, g, None), layernorm(wide(x), wide(g), 0), x, 8, 2)
    near(gp.layernorm(x, None, b), layernorm(wide(x), 1, wide(b)), x, 8, 2)
    near(gp.rmsnorm(x, None, 0.5), rmsnorm(wide(x), 1, 0.5), x, 8, 0)
    near(gp.l2norm(x), rmsnorm(wide(x), 1, 1e-6), x, 8, 0)
    near(gp.layernorm(input=x, gamma=g, beta=b, eps=0.1), layernorm(wide(x), wide(g), wide(b), 0.1), x, 8, 2)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    ("shape", "groups"),
    [((2, 6, 5, 3), 3), ((2, 8, 4, 4), 2), ((3, 6), 2), ((1, 4, 100, 101), 2), ((2, 4, 9), 4), ((2, 4, 64, 80), 1)],
)
def test_groupnorm(shape: tuple[int, ...], groups: int, dtype: str) -> None:
    x = sample(shape, dtype, 2, 1)
    g, b = sample(shape[1:2], dtype), sample(shape[1:2], dtype, 0.3)
    rows = wide(x).reshape(shape[0], groups, -1)
    each = (1, shape[1]) + (1,) * (len(shape) - 2)
    exact = layernorm(rows, 1, 0).reshape(shape)
    near(gp.groupnorm(x, groups), exact, x, 8, 2)
    near(gp.groupnorm(x, groups, g, b), exact * wide(g).reshape(each) + wide(b).reshape(each), x, 8, 2)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_softmax_along_any_axis_of_any_layout(axis: int) -> None:
    x = sample((4, 37, 24), "float32", 3)
    for view in (x, x.T, x[:, ::-2], x[:, 3:, 1:], x.transpose(1, 0, 2), x[:, :, ::5]):
        near(gp.softmax(view, axis), softmax(wide(view), axis), x, 30, 0.01)
        near(gp.log_softmax(view, axis), log_softmax(wide(view), axis), x, 4, 8)


def test_strided_rows() -> None:
    x = sample((40, 66), "float32")
    for view in (x[:, 1:], x[::2, ::3], x.T, x[::-1, ::-1]):
        g = sample((view.shape[1] * 2,), "float32")[::2]
        near(gp.rmsnorm(view, g), rmsnorm(wide(view), wide(g)), x, 8, 0)
        near(gp.layernorm(view, g, g), layernorm(wide(view), wide(g), wide(g)), x, 8, 2)


def test_infinities_and_nan() -> None:
    inf = np.inf
    a = np.array([[1, 2, -inf, 3], [-inf] * 4, [0, inf, 1, 2], [np.nan, 1, 2, 3], [-1e30, 1e30, 0, 0]], np.float32)
    tall = np.concatenate([a, np.zeros((5, 20_000), np.float32) - inf], 1)
    with np.errstate(all="ignore"):
        for rows in (a, tall):
            for found, axis in ((gp.softmax(gp.from_numpy(rows)), -1), (gp.softmax(gp.from_numpy(rows.T), 0).T, -1)):
                np.testing.assert_allclose(found.to_numpy(), softmax(rows, axis), rtol=1e-6)
            np.testing.assert_allclose(gp.log_softmax(gp.from_numpy(rows)).to_numpy(), log_softmax(rows, -1), rtol=1e-6)


@pytest.mark.parametrize("columns", [24, 4097, 17_000])
def test_out_and_in_place(columns: int) -> None:
    x = sample((3, columns), "float32")
    g = sample((columns,), "float32")

    def scaled(x: gp.GPUArray, out: gp.GPUArray | None = None) -> gp.GPUArray:
        return gp.rmsnorm(x, g, out=out)

    def down(x: gp.GPUArray, out: gp.GPUArray | None = None) -> gp.GPUArray:
        return gp.softmax(x, 0, out=out)

    for op in (gp.softmax, gp.log_softmax, scaled, down):
        expected = op(x).to_numpy()
        out = gp.zeros((3, columns))
        assert op(x, out=out) is out
        np.testing.assert_array_equal(out.to_numpy(), expected)
        own = x.clone()
        op(own, out=own)
        np.testing.assert_array_equal(own.to_numpy(), expected)
        spread = gp.zeros((3, columns, 2), "float64")
        op(x, out=spread[..., 1])
        np.testing.assert_array_equal(spread.to_numpy()[..., 1], expected)
        assert not spread.to_numpy()[..., 0].any()
        moved = gp.zeros(3 * columns + 1)
        moved[:-1] = x.reshape(-1)
        op(moved[:-1].view((3, columns)), out=moved[1:].view((3, columns)))
        np.testing.assert_array_equal(moved.to_numpy()[1:].reshape(3, columns), expected)
    scale = g.clone()
    gp.rmsnorm(x[:1], scale, out=scale.view((1, columns)))  # over the weights themselves
    np.testing.assert_array_equal(scale.to_numpy(), gp.rmsnorm(x[:1], g).to_numpy()[0])


def test_empty_inputs() -> None:
    for shape in ((0, 4), (3, 0), (0,)):
        x, g = gp.zeros(shape), gp.ones(shape[-1])
        for found in (gp.softmax(x), gp.log_softmax(x, 0), gp.layernorm(x, g, g), gp.rmsnorm(x, g)):
            assert found.shape == shape
    assert gp.groupnorm(gp.zeros((0, 4, 5)), 2).shape == (0, 4, 5)
    assert gp.groupnorm(gp.zeros((2, 4, 0)), 2).shape == (2, 4, 0)


def test_refusals() -> None:
    x, g = gp.ones((2, 3)), gp.ones(3)
    for axis in (2, -3):
        with pytest.raises(gp.ShapeError, match="softmax: axis"):
            gp.softmax(x, axis)
    with pytest.raises(gp.ShapeError, match="softmax: axis"):
        gp.softmax(gp.ones(()))
    with pytest.raises(gp.DTypeError, match="int32 has no softmax; convert"):
        gp.softmax(gp.ones(3, "int32"))
    with pytest.raises(gp.ShapeError, match=r"weights have shape \(3,\), not \(4,\)"):
        gp.layernorm(x, gp.ones(4), None)
    with pytest.raises(gp.DTypeError, match="weights of float64 for an input of float32"):
        gp.rmsnorm(x, gp.ones(3, "float64"))
    with pytest.raises(gp.ShapeError, match="0-d"):
        gp.rmsnorm(gp.ones(()), g)
    with pytest.raises(gp.ShapeError, match="2 groups do not divide the channels"):
        gp.groupnorm(x, 2)
    with pytest.raises(gp.DTypeError, match="from_numpy"):
        gp.rmsnorm(x, np.ones(3))  # type: ignore[arg-type]
    with pytest.raises(gp.ShapeError, match="out has shape"):
        gp.softmax(x, out=gp.ones(2))
    assert ops.softmax is gp.softmax
    assert ops.nn.rmsnorm is gp.rmsnorm


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("columns", [7, 256, 4097, 17_000])
def test_a_row_does_not_depend_on_its_neighbours(dtype: str, columns: int) -> None:
    x = sample((9, columns), dtype)
    g = sample((columns,), dtype)
    for op in (gp.softmax, gp.log_softmax, lambda x: gp.rmsnorm(x, g), lambda x: gp.layernorm(x, g, g)):
        whole = op(x).to_numpy()
        np.testing.assert_array_equal(op(x).to_numpy(), whole)
        np.testing.assert_array_equal(op(x[::-1]).to_numpy(), whole[::-1])
        np.testing.assert_array_equal(op(x[3:4]).to_numpy(), whole[3:4])
        padded = gp.zeros((9, columns + 3), dtype)
        padded[:, 2:-1] = x
        np.testing.assert_array_equal(op(padded[:, 2:-1]).to_numpy(), whole, err_msg="alignment")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("length", [4, 37, 300, 3000, 17_000])
def test_squares_may_overflow(dtype: str, length: int) -> None:
    """Large rows beside small ones: the root of the squares fits where the squares do not."""
    large = 1e200 if dtype == "float64" else 1e25
    factors = np.array([1, large, large, 1e-3, large / 100], np.float64)[:, None]
    x = gp.from_numpy(sample((5, length), "float64").to_numpy() * factors).astype(dtype)
    a, ones = wide(x), gp.ones((length,), dtype)
    scale = np.abs(a).max(-1, keepdims=True)
    expected = (a / scale) / np.sqrt(((a / scale) ** 2).mean(-1, keepdims=True) + (1e-6 / scale) / scale)
    near(gp.l2norm(x), expected, x, rounds=8)
    near(gp.rmsnorm(x, ones, 1e-6), expected, x, rounds=8)
    centred = a / scale - (a / scale).mean(-1, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + (1e-6 / scale) / scale)
    near(gp.layernorm(x, None, None, 1e-6), expected, x, rounds=8, absolute=4)
