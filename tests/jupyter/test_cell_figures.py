"""The cell ledger against a count of its own: launches, times, peak, kept and leaked bytes of each cell."""

from __future__ import annotations

import struct
from typing import Any

import pytest

import pygpukit as gp
from pygpukit import _core
from pygpukit.dashboard import cell_figures
from pygpukit.dashboard.cell_figures import CellFigures

MIB = 1 << 20
RECORD = struct.Struct("<QQHHIIIQQQII")


@pytest.fixture(autouse=True)
def clean() -> None:
    gp.ones(4)  # opens the backend
    cell_figures.ledger.clear()


def run(shell: Any, code: str) -> CellFigures:
    result = shell.run_cell(code, store_history=True)
    assert result.success or "raise" in code
    return cell_figures.ledger.rows()[-1]


def test_launches_peak_kept_and_leaked(shell: Any) -> None:
    run(shell, "import pygpukit as gp")
    figures = run(shell, "x = gp.ones(1 << 18)\nt = x + x\ny = [gp.ones(1 << 18)]\ndel t")
    assert figures.launches == 1 and figures.untimed == 0 and figures.complete
    assert figures.kept == 2 * MIB and figures.leaked == MIB, "x is named, what is in y is not"
    assert figures.peak >= 3 * MIB and figures.gpu_ns > 0
    assert 0 < figures.gpu_ns <= figures.wall_ns
    idle = run(shell, "1 + 1")
    assert (idle.launches, idle.gpu_ns, idle.kept, idle.leaked) == (0, 0, 0, 0)


def test_sums_are_those_of_the_counters(shell: Any) -> None:
    run(shell, "import pygpukit as gp\nx = gp.ones(1000)")
    before, first = _core.counters()["host_launches"], _core.ring_head()
    rows = [run(shell, f"for _ in range({n}): x = x + 1") for n in (3, 40, 7)]
    assert sum(row.launches for row in rows) == _core.counters()["host_launches"] - before
    records, _, lost = _core.ring_read(first)
    timed = [RECORD.unpack_from(records, at) for at in range(0, len(records), 64)]
    assert lost == 0 and sum(row.gpu_ns for row in rows) == sum(r[7] for r in timed if r[2] == 17)


def test_kernels_without_event_times_are_counted_apart(shell: Any) -> None:
    run(shell, "import pygpukit as gp\nx = gp.ones(64)")
    run(
        shell, "%%cuda -i x,n=64\n__global__ void twice(float* x, int n) { int i = threadIdx.x; if (i < n) x[i] *= 2; }"
    )
    figures = cell_figures.ledger.rows()[-1]
    assert figures.launches >= 1 and figures.untimed >= 1


def test_figures_of_a_cell_that_raises(shell: Any) -> None:
    run(shell, "import pygpukit as gp")
    figures = run(shell, "z = gp.ones(1 << 18)\nraise ValueError('x')")
    assert figures.kept == MIB and figures.peak >= MIB


def test_overwritten_records_are_told(shell: Any) -> None:
    run(shell, "from pygpukit import _core")
    figures = run(shell, "for _ in range(70_000): _core.ring_push(18)")
    assert not figures.complete
    assert run(shell, "1").complete


def test_a_frozen_ledger_forgets_the_oldest() -> None:
    row = CellFigures(1, 0, 0, 0, 0, 0, 0, 0, True)
    for _ in range(cell_figures.MAX_CELLS + 5):
        cell_figures.ledger.add(row)
    assert len(cell_figures.ledger.rows()) == cell_figures.MAX_CELLS
    assert set(row.message()) == {
        *("count", "wallNs", "gpuNs", "launches", "untimed", "peak", "kept", "leaked", "complete"),
    }
