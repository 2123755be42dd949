"""Tile kernels of products of groups of rows: float64, checked on the simulator; which kernels are compiled ahead."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from device_facts import Facts
from rounded import normal

import pygpukit as gp
from pygpukit.core.backend import is_sim
from pygpukit.jit.compile import simulator, tile
from pygpukit.kernels import KernelSpec, launcher, registry
from pygpukit.ops import host
from pygpukit.ops.matmul import choose
from pygpukit.ops.matmul.tile import grouped as tile_grouped
from pygpukit.ops.matmul.tile import half

pytestmark = pytest.mark.usefixtures("backend_name")
Values = np.ndarray[Any, Any]
ROUNDING = {"bfloat16": 2**-8, "float16": 2**-11}


@pytest.fixture(autouse=True)
def _checked(backend_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the simulator in checked mode, and compiled the quickest way."""
    if backend_name == "sim":
        monkeypatch.setenv("PYGPUKIT_CHECK", "1")
        monkeypatch.setattr(launcher, "_kernels", {})
        monkeypatch.setattr(simulator, "_FLAGS", tuple(flag for flag in simulator._FLAGS if flag != "-O2"))
    elif why := tile.missing():
        pytest.skip(why)


def by_kernel(product: Callable[..., None], *arrays: Any, shape: tuple[int, ...]) -> gp.GPUArray:
    """product(*arrays[:2], out, *arrays[2:]) by its kernel, into an array of NaN."""
    first, second, *more = arrays
    out = gp.full(shape, float("nan"), first.dtype)
    order = (first, second, *more, out) if product is tile_grouped.product else (first, second, out, *more)
    with host.built_in_kernels() if is_sim() else nullcontext():
        product(*order)
        gp.synchronize()
    return out


def agree(found: gp.GPUArray, expected: Values) -> None:
    values, rounding = found.astype("float64").to_numpy(), ROUNDING[found.dtype.name]
    assert values.shape == expected.shape
    np.testing.assert_allclose(values, expected, rtol=rounding, atol=rounding * np.abs(expected).max(initial=0) / 8)


def test_groups_of_rows_have_the_bits_of_their_products() -> None:
    counts = [0, 5, 33, -2, 20]
    (x, a), (w, b) = (normal("bfloat16", *s) for s in ((70, 72), (5, 72, 37)))
    device = gp.from_numpy(np.array(counts, np.int32))
    found = by_kernel(tile_grouped.product, x, w, device, shape=(70, 37))
    first = 0
    for group, count in enumerate(counts):
        rows = slice(first, first + max(count, 0))
        agree(found[rows], a[rows] @ b[group])
        first = rows.stop
    assert not found[first:].to_numpy().any(), "rows of no group are 0"
    alone = by_kernel(half.product, x[5:38], w[2], shape=(33, 37))
    assert alone.to_numpy().tobytes() == found[5:38].to_numpy().tobytes()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_all_that_is_asked_for_is_listed(dtype: str, monkeypatch: pytest.MonkeyPatch, facts: Facts) -> None:
    asked: set[tuple[str, str]] = set()

    def launch(spec: KernelSpec, *_: Any) -> None:
        asked.add((spec.source, spec.expression))

    if is_sim():
        monkeypatch.setattr(choose, "is_sim", lambda: False)
        facts(sm_count=132)
    monkeypatch.setattr(tile_grouped, "launch", launch)
    with host.built_in_kernels():
        for m, n in ((1, 64), (60, 4096), (512, 4096)):
            x, w = gp.empty((m, 64), dtype), gp.empty((n, 64), dtype)
            for weight in (w, gp.empty((64, n), dtype).T):
                gp.grouped_matmul(x, weight.T[None], gp.empty((1,), "int32"))
    assert {source for source, _ in asked} == {tile_grouped.GROUPED.source}
    assert asked <= {(unit.source, name) for unit in registry.catalogue() for name in unit.expressions}
