"""The cell ledger against a count of its own: launches, times, peak, kept and leaked bytes of each cell."""

from __future__ import annotations

import gc
import struct
from typing import Any

import pytest
from IPython.core.error import UsageError

import pygpukit as gp
from pygpukit import _core
from pygpukit._core import native
from pygpukit.telemetry import cell_figures
from pygpukit.telemetry.cell_figures import CellFigures
from pygpukit.telemetry.feed import Feed

MIB = 1 << 20
RECORD = struct.Struct("<QQHHIIIQQQII")
GAUGES = struct.Struct("<16Q")  # behind a frame's header of 64 bytes (docs/seams.md)


@pytest.fixture(autouse=True)
def clean() -> None:
    gp.ones(4)  # opens the backend
    cell_figures.ledger.clear()
    native.set_launch_timing("on")


def frame() -> bytes:
    return _core.telemetry_frame(0, _core.ring_head(), 0)[0]


def run(shell: Any, code: str) -> CellFigures:
    result = shell.run_cell(code, store_history=True)
    assert result.success or "raise" in code
    return cell_figures.ledger.rows()[-1]


def test_launches_peak_kept_and_leaked(shell: Any) -> None:
    run(shell, "import pygpukit as gp")
    figures = run(shell, "x = gp.ones(1 << 19)\nt = x + x\ny = [gp.ones(1 << 19)]\ndel t")
    assert figures.launches == 1 and figures.untimed == 0 and figures.complete
    assert figures.kept == 4 * MIB and figures.leaked == 2 * MIB, "x is named, what is in y is not"
    assert figures.peak >= 6 * MIB and figures.gpu_ns > 0
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


SPIN = """%%cuda
__global__ void spin(float* out, long long ns) {
    long long begin = clock64();
    while (clock64() - begin < ns) { }
    if (ns < 0) out[0] = 1;
}"""


def test_kernels_are_timed(shell: Any) -> None:
    run(shell, "import pygpukit as gp\nout = gp.zeros(1)")
    run(shell, SPIN)
    figures = run(shell, "for _ in range(5): spin[1, 1](out, 2_000_000)\ngp.synchronize()")
    assert (figures.launches, figures.untimed, figures.running) == (5, 0, False)
    assert 10_000_000 <= figures.gpu_ns <= figures.wall_ns


WITHIN = 0.01
TIMED = """begin, end = gp.Event(), gp.Event()
begin.record()
spin[1, 1](out, 30_000_000)
end.record()
gp.synchronize()"""


def test_the_sum_of_times_agrees_with_events_within_one_percent(shell: Any) -> None:
    """Events that the cells record around their work. A thread of the simulation may rest between an event and the
    work, so that one go in ten has to agree."""
    run(shell, "import pygpukit as gp\nout = gp.zeros(1)")
    run(shell, SPIN)
    seen = []
    for _ in range(10):
        ledger_ns = events_ns = 0.0
        for _ in range(3):
            ledger_ns += run(shell, TIMED).gpu_ns
            events_ns += shell.user_ns["begin"].elapsed_ms(shell.user_ns["end"]) * 1e6
        seen.append((ledger_ns, events_ns))
        if ledger_ns == pytest.approx(events_ns, rel=WITHIN):
            return
    raise AssertionError(seen)


def test_the_sum_of_kept_bytes_agrees_with_the_device_within_one_percent(shell: Any) -> None:
    """With what the device says is free, which the pool does not count. Holes between arrays that other tests left are
    free, too: an array may lie there."""

    def free_bytes() -> int:
        return int(GAUGES.unpack_from(frame(), 64)[12]) + _core.pool_stats(0).cached

    run(shell, "import pygpukit as gp\nkept = []")
    gc.collect()
    gp.empty(100 * MIB, dtype="uint8")  # freed at once, and a part of it taken again
    beside = gp.empty(70 * MIB, dtype="uint8")
    _core.pool_trim(0)
    assert _core.pool_stats(0).cached >= 30 * MIB, "there is no hole"
    before = free_bytes()
    sizes = [48 * MIB, 100 * MIB, 20 * MIB]
    kept = [run(shell, f"kept.append(gp.empty({size}, dtype='uint8'))").kept for size in sizes]
    assert sum(kept) == pytest.approx(before - free_bytes(), rel=WITHIN)
    del shell.user_ns["kept"]
    gc.collect()
    _core.pool_trim(0)
    assert free_bytes() == pytest.approx(before, abs=WITHIN * sum(sizes))
    assert beside.nbytes == 70 * MIB, "it held the hole open"


HOLD = "%%cuda\n__global__ void hold(volatile int* go) { while (go[0] == 0) { } }"


def test_a_cell_that_ends_before_its_work_is_told_later(shell: Any) -> None:
    run(shell, "import pygpukit as gp\nout, go, one = gp.zeros(1), gp.zeros(1, 'int32'), gp.ones(1, 'int32')")
    run(shell, SPIN)
    run(shell, HOLD)
    feed = Feed("test")
    figures = run(shell, "hold[1, 1](go)\nfor _ in range(4): spin[1, 1](out, 10_000_000)")
    assert figures.running
    rows = [content["rows"] for content, _ in feed.follow(frame()) if content["type"] == "cells"]
    assert rows[-1][-1]["running"]
    with gp.Stream():  # beside the kernel that waits for it
        native.copy(shell.user_ns["go"], shell.user_ns["one"])
    gp.synchronize()
    rows = [content["rows"] for content, _ in feed.follow(frame()) if content["type"] == "cells"]
    assert not rows[-1][-1]["running"] and rows[-1][-1]["gpuNs"] >= 40_000_000
    after = run(shell, "1")
    assert after.gpu_ns == 0, "the work of the cell before is not its own"


def test_timing_is_chosen_by_a_magic(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    run(shell, "import pygpukit as gp\nout = gp.zeros(1)")
    run(shell, SPIN)
    run(shell, "%gpu_timing off")
    figures = run(shell, "spin[1, 1](out, 1)\ngp.synchronize()")
    assert (figures.launches, figures.untimed, figures.gpu_ns) == (1, 1, 0)
    run(shell, "%gpu_timing exact")
    capsys.readouterr()
    run(shell, "%gpu_timing")
    assert capsys.readouterr().out.strip() == "exact"
    figures = run(shell, "spin[1, 1](out, 1_000_000)\ngp.synchronize()")
    assert figures.untimed == 0 and figures.gpu_ns >= 1_000_000
    assert isinstance(shell.run_cell("%gpu_timing often").error_in_exec, UsageError)


def test_a_task_counts_once(shell: Any) -> None:
    run(
        shell, "import pygpukit as gp\nfrom pygpukit.scheduler import Scheduler\nout, x = gp.zeros(1), gp.ones(100_000)"
    )
    run(shell, SPIN.replace("spin", "once"))  # new to the gate: charged in full, whatever the host does
    figures = run(shell, "with Scheduler() as s: s.submit(lambda: once[1, 1](out, 200_000_000)).result(timeout=60)")
    assert (figures.launches, figures.untimed) == (1, 0)
    assert 200_000_000 <= figures.gpu_ns <= figures.wall_ns, "twice would be longer than the cell"
    figures = run(shell, "with Scheduler() as s: s.submit(lambda: [x + x for _ in range(20)]).result(timeout=60)")
    assert (figures.launches, figures.untimed) == (20, 0)
    assert 0 < figures.gpu_ns <= figures.wall_ns


def test_figures_of_a_cell_that_raises(shell: Any) -> None:
    run(shell, "import pygpukit as gp")
    figures = run(shell, "z = gp.ones(1 << 19)\nraise ValueError('x')")
    assert figures.kept == 2 * MIB and figures.peak >= 2 * MIB


def test_overwritten_records_are_told(shell: Any) -> None:
    run(shell, "from pygpukit import _core")
    figures = run(shell, "for _ in range(70_000): _core.ring_push(18)")
    assert not figures.complete
    assert run(shell, "1").complete


def test_a_frozen_ledger_forgets_the_oldest() -> None:
    row = CellFigures("a", 1, 0, 0, 0, 0, 0, 0, 0, True)
    for _ in range(cell_figures.MAX_CELLS + 5):
        cell_figures.ledger.add(row)
    assert len(cell_figures.ledger.rows()) == cell_figures.MAX_CELLS
    assert set(row.message()) == {
        *("cell", "count", "wallNs", "gpuNs", "launches", "untimed", "peak", "kept", "leaked", "complete", "running"),
    }
