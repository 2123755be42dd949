"""The cell ledger's figures: what the process did on the device while each notebook cell ran."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass

from pygpukit import _core
from pygpukit._core import native

MAX_CELLS = 1000
_RECORD_BYTES = 64
_LAUNCH, _HOST_LAUNCH = 16, 17
_GROWS, _SHRINKS = (1, 4), (2, 3)  # ALLOC and RESTORE, FREE and EVICT


@dataclass(frozen=True)
class Mark:
    """Where a cell began: the ring's next record, bytes in use, launches so far, ids of the live blocks."""

    first_record: int
    used: int
    launches: int
    blocks: frozenset[int]


@dataclass(frozen=True)
class CellFigures:
    """Figures of one run of a cell. count: its execution count. Times in nanoseconds, sizes in bytes.

    gpu_ns: time of the launches that have one; untimed: how many have none (kernels launched without events). peak:
    most bytes in use at a time. kept: bytes of blocks that this cell made and that live on; leaked: those of them that
    no variable of the notebook names. complete: False where records were overwritten before they were read; times and
    peak are lower bounds then.
    """

    count: int
    wall_ns: int
    gpu_ns: int
    launches: int
    untimed: int
    peak: int
    kept: int
    leaked: int
    complete: bool

    def message(self) -> dict[str, int | bool]:
        """As a page takes it."""
        return {
            "count": self.count,
            "wallNs": self.wall_ns,
            "gpuNs": self.gpu_ns,
            "launches": self.launches,
            "untimed": self.untimed,
            "peak": self.peak,
            "kept": self.kept,
            "leaked": self.leaked,
            "complete": self.complete,
        }


class CellLedger:
    """The newest runs, oldest first. A cell that runs again has a new execution count and a new row. Thread-safe."""

    def __init__(self) -> None:
        self._rows: deque[CellFigures] = deque(maxlen=MAX_CELLS)
        self._lock = threading.Lock()
        self.version = 0

    def add(self, figures: CellFigures) -> None:
        with self._lock:
            self._rows.append(figures)
            self.version += 1

    def rows(self) -> list[CellFigures]:
        with self._lock:
            return list(self._rows)

    def clear(self) -> None:
        with self._lock:
            self._rows.clear()
            self.version += 1


ledger = CellLedger()


def mark() -> Mark:
    """The state when a cell begins. Opens no backend."""
    return Mark(_core.ring_head(), _used(), _launches(), frozenset(block[0] for block in _blocks()))


def measure(begun: Mark, cell: int, count: int, wall_ns: int) -> CellFigures:
    """The figures of a cell that ends now. cell: its interned id."""
    launches = _launches() - begun.launches
    gpu_ns, untimed, rise, lost = _replay(begun.first_record)
    blocks = [block for block in _blocks() if block[5] == cell and block[0] not in begun.blocks]
    used = _used()
    return CellFigures(
        count=count,
        wall_ns=wall_ns,
        gpu_ns=gpu_ns,
        launches=launches,
        untimed=untimed,
        peak=max(begun.used + rise, used),
        kept=sum(b[2] for b in blocks),
        leaked=sum(b[2] for b in blocks if b[4] == 0),
        complete=not lost,
    )


def _used() -> int:
    return 0 if native.backend_name() is None else _core.pool_stats(0).used


def _blocks() -> list[tuple[int, int, int, int, int, int, int, bool]]:
    return [] if native.backend_name() is None else _core.pool_blocks(0)


def _launches() -> int:
    counters = _core.counters()
    return counters["launches"] + counters["host_launches"]


def _replay(first: int) -> tuple[int, int, int, int]:
    """Of the records since `first`: nanoseconds of timed launches, launches without a time, highest rise of used bytes,
    records lost."""
    records, _, lost = _core.ring_read(first)
    kinds = records[16::_RECORD_BYTES]  # the low byte of each kind; all are below 256
    words = memoryview(records).cast("Q")  # native order is little endian wherever this runs
    gpu_ns = untimed = rise = highest = 0
    for at, kind in enumerate(kinds):
        if kind == _HOST_LAUNCH:
            gpu_ns += words[at * 8 + 4]
        elif kind == _LAUNCH:
            untimed += 1
        elif kind in _GROWS:
            rise += words[at * 8 + 5]
            highest = max(highest, rise)
        elif kind in _SHRINKS:
            rise -= words[at * 8 + 5]
    return gpu_ns, untimed, highest, lost
