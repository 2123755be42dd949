"""Tile kernels of products with an epilogue, and of groups of rows: float64, checked on the simulator; a row's bits."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rounded import normal

import pygpukit as gp
from pygpukit.core.backend import is_sim
from pygpukit.jit.compile import simulator
from pygpukit.kernels import launcher
from pygpukit.ops import host
from pygpukit.ops.matmul import fused_tile, grouped_tile, tile
from pygpukit.ops.matmul.fused import After
from pygpukit.ops.matmul.stacks import stacked

pytestmark = pytest.mark.usefixtures("backend_name")
Values = np.ndarray[Any, Any]
ROUNDING = {"bfloat16": 2**-8, "float16": 2**-11}
CURVES: dict[str | None, Callable[[Values], Values]] = {
    None: lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2,
    "gelu_tanh": lambda x: x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
}


@pytest.fixture(autouse=True)
def _checked(backend_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the simulator in checked mode, and compiled the quickest way."""
    if backend_name == "sim":
        monkeypatch.setenv("PYGPUKIT_CHECK", "1")
        monkeypatch.setattr(launcher, "_kernels", {})
        monkeypatch.setattr(simulator, "_FLAGS", tuple(flag for flag in simulator._FLAGS if flag != "-O2"))


def by_kernel(product: Callable[..., None], *arrays: Any, shape: tuple[int, ...]) -> gp.GPUArray:
    """product(*arrays[:2], out, *arrays[2:]) by its kernel, into an array of NaN."""
    first, second, *more = arrays
    out = gp.full(shape, float("nan"), first.dtype)
    order = (first, second, *more, out) if product is grouped_tile.product else (first, second, out, *more)
    with host.built_in_kernels() if is_sim() else nullcontext():
        product(*order)
        gp.synchronize()
    return out


def agree(found: gp.GPUArray, expected: Values) -> None:
    values, rounding = found.astype("float64").to_numpy(), ROUNDING[found.dtype.name]
    assert values.shape == expected.shape
    np.testing.assert_allclose(values, expected, rtol=rounding, atol=rounding * np.abs(expected).max(initial=0) / 8)


@pytest.mark.parametrize("n", [40, 37])
def test_what_follows_a_sum(n: int) -> None:
    (a, x), (b, y), (bias, z), (more, w) = (normal("bfloat16", *s) for s in ((70, 72), (72, n), (n,), (70, n)))
    for act, curve in CURVES.items():
        found = by_kernel(fused_tile.product, a, b, After(0.25, bias, act, more, -0.5), shape=(70, n))
        agree(found, curve(0.25 * (x @ y) + z) - 0.5 * w)
        agree(by_kernel(fused_tile.product, a, b, After(act=act), shape=(70, n)), curve(x @ y))


def test_a_gate_of_stacks_and_of_views() -> None:
    (a, x), (b, y), (bias, z) = (normal("float16", *s) for s in ((2, 9, 72), (72, 80), (80,)))
    after = After(1.0, bias, "swiglu")
    sums = x @ y + z
    expected = CURVES["silu"](sums[..., :40]) * sums[..., 40:]
    left, right, _ = stacked(a, b)
    agree(by_kernel(fused_tile.product, left, right, after, shape=(2, 9, 40)), expected)
    apart = left[:, ::-1]
    assert not fused_tile.takes(apart, right, gp.zeros((2, 9, 40), "float16"), after), "not one product"
    agree(by_kernel(fused_tile.product, apart[1], b, after, shape=(9, 40)), expected[1, ::-1])
    agree(
        by_kernel(fused_tile.product, a[0, :, :0], b[:0], after, shape=(9, 40)),
        np.tile(CURVES["silu"](z[:40]) * z[40:], (9, 1)),
    )


def test_a_rows_bits_depend_neither_on_the_rows_beside_it_nor_on_the_tile(monkeypatch: pytest.MonkeyPatch) -> None:
    (a, _), (b, _), (bias, _) = (normal("bfloat16", *s) for s in ((70, 101), (101, 40), (40,)))
    found = []
    for tile_rows, some in ((64, a), (16, a[5:8])):
        monkeypatch.setattr(fused_tile, "fastest", lambda *_, rows=tile_rows: SimpleNamespace(rows=rows))
        found.append(by_kernel(fused_tile.product, some, b, After(1.0, bias, "silu"), shape=(len(some), 40)))
    assert found[1].to_numpy().tobytes() == found[0][5:8].to_numpy().tobytes()


def test_groups_of_rows_have_the_bits_of_their_products() -> None:
    counts = [0, 5, 33, -2, 20]
    (x, a), (w, b) = (normal("bfloat16", *s) for s in ((70, 72), (5, 72, 37)))
    device = gp.from_numpy(np.array(counts, np.int32))
    found = by_kernel(grouped_tile.product, x, w, device, shape=(70, 37))
    first = 0
    for group, count in enumerate(counts):
        rows = slice(first, first + max(count, 0))
        agree(found[rows], a[rows] @ b[group])
        first = rows.stop
    assert not found[first:].to_numpy().any(), "rows of no group are 0"
    alone = by_kernel(tile.product, x[5:38], w[2], shape=(33, 37))
    assert alone.to_numpy().tobytes() == found[5:38].to_numpy().tobytes()
