"""The cell ledger's figures: what the process did on the device while each notebook cell ran."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, replace

from pygpukit import _core
from pygpukit._core import native
from pygpukit.core import records
from pygpukit.telemetry import tenants

MAX_CELLS = 1000
_GROWS, _SHRINKS = (records.ALLOC, records.RESTORE), (records.FREE, records.EVICT)


@dataclass(frozen=True)
class Mark:
    """Where a cell began: the ring's next record, bytes in use, launches so far (all; those of host and tasks, which
    are timed elsewhere), measured time of tasks, ids of the live blocks; and what times the other launches from there
    on."""

    first_record: int
    used: int
    launches: int
    elsewhere: int
    task_ns: int
    blocks: frozenset[int]
    time: native.CellTime


@dataclass(frozen=True)
class CellFigures:
    """Figures of one run of a cell. count: its execution count. cell: the front end's id of it. Times in nanoseconds,
    sizes in bytes.

    gpu_ns: how long the device was busy with it (docs/dashboards.md); untimed: how many launches are not in that;
    running: the device still works on it, so that both are yet to come. peak: most bytes in use at a time. kept: bytes
    of blocks that this cell made and that live on; leaked: those of them that no variable of the notebook names, which
    views call "held, unnamed": a list may hold them on purpose.
    complete: False where records were overwritten before they were read; times and peak are lower bounds then.
    """

    cell: str
    count: int
    wall_ns: int
    gpu_ns: int
    launches: int
    untimed: int
    peak: int
    kept: int
    leaked: int
    complete: bool
    running: bool = False

    def message(self) -> dict[str, int | bool | str]:
        """As a page takes it."""
        return {
            "cell": self.cell,
            "count": self.count,
            "wallNs": self.wall_ns,
            "gpuNs": self.gpu_ns,
            "launches": self.launches,
            "untimed": self.untimed,
            "peak": self.peak,
            "kept": self.kept,
            "leaked": self.leaked,
            "complete": self.complete,
            "running": self.running,
        }


class _Row:
    """One run of a cell, whose device time may come later."""

    def __init__(self, figures: CellFigures, time: native.CellTime | None) -> None:
        self.figures = figures
        self._time = time

    def refresh(self) -> bool:
        """Looks whether the device is done with the cell. True when it is since now."""
        if self._time is None:
            return False
        ns, launches, running, cut = self._time.read()
        if running:
            return False
        self._time = None
        figures = self.figures
        self.figures = replace(
            figures,
            gpu_ns=figures.gpu_ns + ns,
            untimed=max(0, figures.untimed - launches),
            complete=figures.complete and not cut,
            running=False,
        )
        return True


class CellLedger:
    """The newest runs, oldest first. A cell that runs again has a new execution count and a new row. Thread-safe."""

    def __init__(self) -> None:
        self._rows: deque[_Row] = deque(maxlen=MAX_CELLS)
        self._lock = threading.Lock()
        self.version = 0

    def add(self, figures: CellFigures, time: native.CellTime | None = None) -> None:
        """A new row. time: what comes to its gpu_ns, and goes from its untimed, once the device is done."""
        with self._lock:
            self._rows.append(_Row(figures, time))
            self.version += 1

    def refresh(self) -> None:
        """Complete the rows whose work the device has done meanwhile. Waits for nothing."""
        with self._lock:
            self.version += sum(row.refresh() for row in self._rows)

    def rows(self) -> list[CellFigures]:
        self.refresh()
        with self._lock:
            return [row.figures for row in self._rows]

    def clear(self) -> None:
        with self._lock:
            self._rows.clear()
            self.version += 1


ledger = CellLedger()


def mark() -> Mark:
    """The state when a cell begins, timing what is launched from here on. Opens no backend."""
    blocks = frozenset(block[0] for block in _blocks())
    return Mark(_core.ring_head(), _used(), *_launches(), _task_ns(), blocks, native.CellTime())


def measure(begun: Mark, cell: int, count: int, wall_ns: int) -> CellFigures:
    """The figures of a cell that ends now, without what begun.time has to say. cell: its interned id."""
    begun.time.end()
    launches, elsewhere = _launches()
    launches -= begun.launches
    host_ns, rise, lost = _replay(begun.first_record)
    blocks = [block for block in _blocks() if block[5] == cell and block[0] not in begun.blocks]
    used = _used()
    return CellFigures(
        cell=_core.name(cell),
        count=count,
        wall_ns=wall_ns,
        gpu_ns=host_ns + _task_ns() - begun.task_ns,
        launches=launches,
        untimed=launches - (elsewhere - begun.elsewhere),
        peak=max(begun.used + rise, used),
        kept=sum(b[2] for b in blocks),
        leaked=sum(b[2] for b in blocks if b[4] == 0),
        complete=not lost,
        running=True,
    )


def _used() -> int:
    return 0 if native.backend_name() is None else _core.pool_stats(0).used


def _blocks() -> list[tuple[int, int, int, int, int, int, int, bool]]:
    return [] if native.backend_name() is None else _core.pool_blocks(0)


def _launches() -> tuple[int, int]:
    """All launches so far, and those of them that the host made or tasks."""
    counters = _core.counters()
    host = counters["host_launches"]
    return counters["launches"] + host, host + native.measured_launches()


def measure_devices() -> None:
    """Bring the device times of tasks that run up to date: on all devices, whichever scheduler they are of."""
    for core in tenants.cores()[:1]:
        core.devices()


def _task_ns() -> int:
    measure_devices()
    return _core.counters()["task_ns"]


def _replay(first: int) -> tuple[int, int, int]:
    """Of the records since `first`: nanoseconds of the host launches of no task, highest rise of used bytes, records
    lost."""
    data, _, lost = _core.ring_read(first)
    kinds = data[records.KIND_AT :: records.BYTES]
    words = memoryview(data).cast("Q")  # native order is little endian wherever this runs
    host_ns = rise = highest = 0
    for at, kind in enumerate(kinds):
        if kind == records.HOST_LAUNCH:
            host_ns += 0 if words[at * 8 + 5] else words[at * 8 + 4]
        elif kind in _GROWS:
            rise += words[at * 8 + 5]
            highest = max(highest, rise)
        elif kind in _SHRINKS:
            rise -= words[at * 8 + 5]
    return host_ns, highest, lost
