"""The CUDA kernels of reductions and norms, run by the simulator in checked mode: no findings, float64's results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.ops.reduce import plan as reduce_plan

pytestmark = pytest.mark.usefixtures("kernels_on_sim")

SHAPES: list[tuple[tuple[int, ...], Any]] = [
    ((), None), ((1,), 0), ((33, 8), 1), ((3, 1023), 1), ((2, 4100), 1), ((70, 12), 0), ((5, 67, 4), 1),
    ((2, 20_001), 1), ((17_000, 3), 0), ((3, 4, 5, 6), (1, 3)), ((3, 4, 5, 6), (0, 2)), ((0, 5), 0), ((4, 6), ()),
]  # fmt: skip


def sample(shape: tuple[int, ...], dtype: str = "float32") -> gp.GPUArray:
    values = np.random.default_rng().standard_normal(shape)
    return gp.from_numpy(values.astype(np.float32)).astype(dtype)


@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=repr)
def test_sums_and_places(shape: tuple[int, ...], axis: Any) -> None:
    x = sample(shape)
    wide = x.to_numpy().astype(np.float64)
    for view, exact in ((x, wide), (x[..., ::-1], wide[..., ::-1]), (x[1:], wide[1:])) if shape else ((x, wide),):
        np.testing.assert_allclose(gp.sum(view, axis).to_numpy(), exact.sum(axis=axis), rtol=1e-5, atol=1e-3)
        if exact.size and not isinstance(axis, tuple):
            np.testing.assert_array_equal(gp.argmax(view, axis).to_numpy(), exact.argmax(axis))


@pytest.mark.parametrize("name", ["prod", "min", "any", "var", "norm", "logsumexp"])
@pytest.mark.parametrize(("shape", "axis"), [((67, 8), 0), ((20_001,), 0)])
def test_other_operations(name: str, shape: tuple[int, ...], axis: int) -> None:
    x = sample(shape)
    wide = x.to_numpy().astype(np.float64)
    references = {
        "norm": lambda a, axis: np.sqrt((a * a).sum(axis)),
        "logsumexp": lambda a, axis: np.log(np.exp(a).sum(axis)),
    }
    expected = references.get(name, getattr(np, name, None))(wide, axis=axis)
    np.testing.assert_allclose(getattr(gp, name)(x, axis).to_numpy(), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("dtype", "names"),
    [("int8", "sum argmin"), ("uint64", "max"), ("bfloat16", "sum argmax"), ("complex128", "sum"), ("bool", "all")],
)
def test_types(dtype: str, names: str) -> None:
    a = np.random.default_rng().integers(0, 2 if dtype == "bool" else 9, (37, 20))
    x = gp.from_numpy(a).astype(dtype)
    for name in names.split():
        for axis in (0, 1):
            found = getattr(x, name)(axis)
            np.testing.assert_array_equal(found.astype("float64").to_numpy(), getattr(a, name)(axis))


def test_the_same_bits_whatever_the_alignment() -> None:
    x = sample((6, 1024))
    padded = gp.zeros((6, 1027))
    padded[:, 2:-1] = x
    view = padded[:, 2:-1]
    g = sample((1024,))
    for op in (
        lambda a: gp.sum(a, 1), lambda a: gp.sum(a, 0), gp.softmax, lambda a: gp.softmax(a, 0),
        lambda a: gp.rmsnorm(a, g), lambda a: gp.layernorm(a, g, g),
    ):  # fmt: skip
        np.testing.assert_array_equal(op(view).to_numpy(), op(x).to_numpy())
        np.testing.assert_array_equal(op(x).to_numpy(), op(x).to_numpy())


def test_rows_do_not_depend_on_their_neighbours() -> None:
    x = sample((5, 1030), "bfloat16")
    order = [3, 0, 4, 1, 2]
    mixed = gp.empty((5, 1030), "bfloat16")
    for to, row in enumerate(order):
        mixed[to] = x[row]
    for op in (lambda a: gp.sum(a, 1), gp.softmax, gp.l2norm):
        np.testing.assert_array_equal(op(mixed).to_numpy(), op(x).to_numpy()[order])
        np.testing.assert_array_equal(op(x[2:3]).to_numpy(), op(x).to_numpy()[2:3])


@pytest.mark.parametrize("shape", [(3, 5), (2, 64), (3, 1024), (2, 1300), (1, 16_500), (0, 4)])
def test_norms_of_rows(shape: tuple[int, int]) -> None:
    x, g, b = sample(shape), sample(shape[1:]), sample(shape[1:])
    a, scale, shift = (each.to_numpy().astype(np.float64) for each in (x, g, b))
    if x.size:
        e = np.exp(a - a.max(-1, keepdims=True))
        np.testing.assert_allclose(gp.softmax(x).to_numpy(), e / e.sum(-1, keepdims=True), rtol=1e-4)
    mean, variance = a.mean(-1, keepdims=True), a.var(-1, keepdims=True)
    exact = (a - mean) / np.sqrt(variance + 1e-5) * scale + shift
    np.testing.assert_allclose(gp.layernorm(x, g, b).to_numpy(), exact, rtol=1e-3, atol=1e-4)
    exact = a / np.sqrt((a * a).mean(-1, keepdims=True) + 1e-5) * scale
    np.testing.assert_allclose(gp.rmsnorm(x, g, out=x).to_numpy(), exact, rtol=1e-3, atol=1e-4)


def test_softmax_across_rows_and_groups_of_channels() -> None:
    x = sample((3, 70, 5))
    a = x.to_numpy().astype(np.float64)
    e = np.exp(a - a.max(1, keepdims=True))
    np.testing.assert_allclose(gp.softmax(x, 1).to_numpy(), e / e.sum(1, keepdims=True), rtol=1e-4)
    for spatial in (8, 9):
        x, g, b = sample((2, 4, spatial), "bfloat16"), sample((4,)), sample((4,))
        rows = x.astype("float64").to_numpy().reshape(2, 2, -1)
        exact = (rows - rows.mean(-1, keepdims=True)) / np.sqrt(rows.var(-1, keepdims=True) + 1e-5)
        exact = exact.reshape(2, 4, spatial) * g.to_numpy()[:, None] + b.to_numpy()[:, None]
        found = gp.groupnorm(x, 2, g, b).astype("float64").to_numpy()
        np.testing.assert_allclose(found, exact, rtol=1e-2, atol=1e-2)


def test_plans_depend_on_a_row_and_not_on_their_number() -> None:
    for rows in (1, 2, 1000):
        plan = reduce_plan.plan((rows, 4096), (4096, 1), (1,), (1,), 0, 4, True, False)
        assert plan.form == "rows"
        assert plan.dense
        assert plan.parts == 0
        assert plan.blocks == -(-rows // 2)
    whole = reduce_plan.plan((1 << 26,), (1,), (0,), (), 0, 4, True, False)
    assert whole.parts == whole.blocks == 2048
    assert whole.merge is not None
    assert whole.merge.blocks == 1
    across = reduce_plan.plan((16384, 4096), (4096, 1), (0,), (1,), 0, 4, True, False)
    assert (across.form, across.dense) == ("columns", True)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_parts_of_several_results_are_merged(dtype: str) -> None:
    """Odd numbers of parts: those of the second result would not begin where 16 bytes can be loaded at once."""
    for shape, axis in (((2, 20000), 1), ((20000, 3), 0)):
        a = np.random.default_rng().integers(-3, 4, shape)
        x = gp.from_numpy(a.astype("int8")).astype(dtype)
        for name in ("sum", "argmax"):
            found = getattr(gp, name)(x, axis=axis).astype("int64").to_numpy()
            expected = getattr(np, name)(a, axis=axis)
            np.testing.assert_array_equal(found, expected, err_msg=f"{name} of {shape}")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("length", [8, 37, 3000, 17_000])
def test_norms_of_rows_whose_squares_overflow(dtype: str, length: int) -> None:
    factors = np.array([1, 1e25 if dtype != "float64" else 1e200, 1e-3])[:, None]
    x = gp.from_numpy(sample((3, length)).to_numpy() * factors).astype(dtype)
    wide = x.astype("float64").to_numpy()
    scale = np.abs(wide).max(-1, keepdims=True)
    expected = wide / scale / np.sqrt(((wide / scale) ** 2).mean(-1, keepdims=True) + 1e-6 / scale / scale)
    tolerance = 2**-7 if dtype == "bfloat16" else 1e-5
    np.testing.assert_allclose(gp.l2norm(x).astype("float64").to_numpy(), expected, rtol=tolerance, atol=1e-6)
