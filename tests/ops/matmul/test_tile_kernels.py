"""Tile kernels on the simulator in checked mode: no findings, and what float64 gives within rounding.

Three groups run, at another commit others; `--all` runs all.
"""

from __future__ import annotations

import numpy as np
import pytest
import turn
from sweep.engine import Group, groups, run
from sweep.families import FAMILIES

import pygpukit as gp
from pygpukit.ops import host
from pygpukit.ops.matmul.tile import half
from pygpukit.ops.matmul.tile.tiling import tiles

EACH = 3  # groups of a run
GROUPS = groups(FAMILIES, "tile")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The groups of this run."""
    if "group" not in metafunc.fixturenames:
        return
    first = turn.of_commit() * EACH
    chosen = GROUPS if metafunc.config.getoption("--all") else [GROUPS[(first + i) % len(GROUPS)] for i in range(EACH)]
    metafunc.parametrize("group", chosen, ids=lambda group: group.name)


@pytest.mark.turns(1)  # the groups of this run are a part already
def test_kernels_of_a_group(group: Group) -> None:
    assert {kernel: seen.failure for kernel, seen in run(group).items() if seen.failure} == {}


def test_a_rows_bits_do_not_depend_on_the_rows_beside_it_or_on_the_tile(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng().standard_normal
    a, b = (gp.from_numpy(values(shape)).astype("bfloat16") for shape in ((70, 100), (100, 48)))
    found = []
    for rows, columns in ((64, 64), (16, 128)):
        (one,) = {t for t in tiles("half") if (t.rows, t.columns) == (rows, columns)}
        monkeypatch.setattr(half, "fastest", lambda *_, one=one: one)
        for count in (70, 3):
            out = gp.full((count, 48), float("nan"), "bfloat16")
            with host.built_in_kernels():
                half.product(a[:count], b, out)
                gp.synchronize()
            found.append(out.to_numpy()[:3].tobytes())
    assert len(set(found)) == 1
