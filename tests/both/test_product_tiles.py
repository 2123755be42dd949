"""Products with epilogues and of groups ask for tile kernels that are compiled ahead."""

from __future__ import annotations

from typing import Any

import pytest

import pygpukit as gp
from pygpukit.core.backend import is_sim
from pygpukit.kernels import KernelSpec, registry
from pygpukit.ops import host
from pygpukit.ops.matmul import fused_tile, grouped_tile, plan, tile

pytestmark = pytest.mark.usefixtures("backend_name")


@pytest.fixture(autouse=True)
def _by_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the simulator the plan is that of a GPU."""
    if is_sim():
        monkeypatch.setattr(plan, "backend", lambda *_: ("tile", ""))
        for module in (tile, fused_tile, grouped_tile):
            monkeypatch.setattr(module, "multiprocessors", lambda: 132)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_all_that_is_asked_for_is_listed(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: set[tuple[str, str]] = set()

    def launch(spec: KernelSpec, *_: Any) -> None:
        asked.add((spec.source, spec.expression))

    for module in (tile, fused_tile, grouped_tile):
        monkeypatch.setattr(module, "launch", launch)
    with host.built_in_kernels():
        for m, n in ((1, 64), (60, 4096), (512, 4096)):
            x, w, bias = gp.empty((m, 64), dtype), gp.empty((n, 64), dtype), gp.empty((n,), dtype)
            for weight in (w, gp.empty((64, n), dtype).T):
                for act in fused_tile._CURVES:
                    gp.linear(x, weight, bias, act)  # type: ignore[arg-type]
                gp.linear(x, weight, act="swiglu")
                gp.grouped_matmul(x, weight.T[None], gp.empty((1,), "int32"))
    assert {source for source, _ in asked} == {fused_tile.FUSED.source, grouped_tile.GROUPED.source}
    assert asked <= {(unit.source, name) for unit in registry.catalogue() for name in unit.expressions}
