"""Waits of a device: the cause of each stretch without work, from the records of a profile's own time."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pygpukit.core import records

if TYPE_CHECKING:
    from pygpukit.core.records import Record
    from pygpukit.profiling.work import Work

HOST = "the host: nothing was submitted"
RESULT = "the host: it read a result, then went on"
CELL = "the notebook: no cell ran"
COMPILING = "a compile"
LIMIT = "a limit of a task"
START = "the start of what was submitted"
OTHER = "another library: when it submitted its work is not recorded"
END = "nothing more came"
UNKNOWN = "not known: records were overwritten"
CAUSES = (HOST, RESULT, CELL, COMPILING, LIMIT, START, OTHER, END, UNKNOWN)

_MOVES = {records.SEGMENT_MAP: "mapped", records.EVICT: "evicted", records.RESTORE: "restored"}
OTHER_LIBRARIES = "other libraries"  # the tenant of works that CUPTI tells of
# By a COPY record's direction.
COPIES = ("copy to the device", "copy to the host", "copy on the device", "fill", "copy to another device")
_COMPILED = 0  # source of a COMPILE record: neither from memory nor from disk


@dataclass(frozen=True, slots=True)
class Wait:
    """A stretch in which a device had no work, in nanoseconds on the clock of records, and why.

    cause: one of waiting.CAUSES. detail: what is known beside it, "" for nothing. cell and line: of what came next.
    """

    begin_ns: int
    end_ns: int
    device: int
    cause: str
    detail: str
    cell: str
    line: int

    @property
    def duration_us(self) -> float:
        return (self.end_ns - self.begin_ns) / 1e3


@dataclass
class Log:
    """The event records of a profile's time, sorted out by what they say."""

    complete_ns: int = 0  # what is older may be missing
    compiles: list[tuple[int, int, str]] = field(default_factory=list)  # begin, end, unit
    holds: list[tuple[int, int]] = field(default_factory=list)
    moves: list[tuple[int, str]] = field(default_factory=list)  # of memory: when, what
    cells: list[tuple[int, bool]] = field(default_factory=list)  # when, whether one begins
    # When and with which number what was submitted, by device, stream and name.
    issued: dict[tuple[int, int, str], deque[tuple[int, int]]] = field(default_factory=dict)

    def add(self, kept: Iterable[Record], name: Callable[[int], str]) -> None:
        """Sort out more records, in their order."""
        for one in kept:
            if one.kind in (records.LAUNCH, records.HOST_LAUNCH, records.COPY):
                text = COPIES[one.b] if one.kind == records.COPY else name(one.name)
                self.issued.setdefault((one.device, one.stream, text), deque()).append((one.t_ns, one.seq))
            elif one.kind == records.COMPILE and one.b == _COMPILED:
                self.compiles.append((one.t_ns - one.a, one.t_ns, name(one.name)))
            elif one.kind == records.THROTTLE:
                self.holds.append((one.t_ns - one.b, one.t_ns))
            elif one.kind in _MOVES:
                self.moves.append((one.t_ns, _MOVES[one.kind]))
            elif one.kind in (records.CELL_BEGIN, records.CELL_END):
                self.cells.append((one.t_ns, one.kind == records.CELL_BEGIN))

    def times(self, works: Iterable[Work]) -> list[int | None]:
        """When each work was submitted, of works in the order of their beginnings; None where no record says it."""
        left = {key: deque(kept) for key, kept in self.issued.items()}
        passed: dict[tuple[int, int], int] = {}  # by device and stream: the last number that has found its work
        submitted: list[int | None] = []
        for work in works:
            if work.tenant == OTHER_LIBRARIES:
                submitted.append(None)
                continue
            text = work.name.partition(" launches from ")[2] if work.kind == "graph" else work.name
            queue = left.get((work.device, work.stream, text))
            while queue and queue[0][1] <= passed.get((work.device, work.stream), 0):
                queue.popleft()  # of a graph, or of what has no time of its own
            # A kernel's record is older than its beginning, another one is of a later launch.
            if work.begin_ns < self.complete_ns or not queue or (work.kind == "kernel" and queue[0][0] > work.begin_ns):
                submitted.append(None)
                continue
            time, seq = queue.popleft()
            passed[work.device, work.stream] = seq + work.launches - 1
            submitted.append(min(time, work.begin_ns))
        return submitted


def waits(works: Sequence[Work], begin_ns: int, end_ns: int, log: Log, min_us: float = 0.0) -> list[Wait]:
    """Every stretch of min_us without work from begin_ns to end_ns, of each device that had some, in order."""
    stretches = []
    min_ns = max(1.0, min_us * 1e3)
    submitted = log.times(works)
    for device in sorted({work.device for work in works}):
        until, before = begin_ns, None
        for work, time in zip(works, submitted, strict=True):
            if work.device != device:
                continue
            if work.begin_ns - until >= min_ns:
                stretches.append(_explained(until, work, before, time, log))
            if work.end_ns >= until:
                until, before = work.end_ns, work
        if end_ns - until >= min_ns:
            stretches.append(Wait(until, end_ns, device, END, "", "", 0))
    return sorted(stretches, key=lambda wait: wait.begin_ns)


def _explained(begin: int, work: Work, before: Work | None, submitted: int | None, log: Log) -> Wait:
    end = work.begin_ns
    half = (end - begin) / 2

    def wait(cause: str, detail: str = "") -> Wait:
        moved = [what for time, what in _within(log.moves, begin, end)]
        memory = ", ".join(f"memory was {what} {moved.count(what)} times" for what in dict.fromkeys(moved))
        text = "; ".join(part for part in (detail, memory) if part)
        return Wait(begin, end, work.device, cause, text, work.cell, work.line)

    compiles = [
        (min(to, end) - max(since, begin), unit) for since, to, unit in log.compiles if since < end and to > begin
    ]
    if sum(took for took, _ in compiles) >= half and compiles:
        return wait(COMPILING, ", ".join(dict.fromkeys(unit for _, unit in compiles)))
    if sum(max(0, min(to, end) - max(since, begin)) for since, to in log.holds) >= half and log.holds:
        return wait(LIMIT)
    if submitted is None:
        return wait(OTHER if work.tenant == OTHER_LIBRARIES else UNKNOWN)
    late = end - max(submitted, begin)
    if late > half:
        return wait(START, f"submitted {(end - submitted) / 1e3:.1f} us before it began")
    idle = sum(to - since for since, to in _idle(log.cells, begin, submitted))
    if idle >= half:
        return wait(CELL)
    if before is not None and before.name == COPIES[1]:
        return wait(RESULT)
    return wait(HOST)


def _idle(cells: list[tuple[int, bool]], begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Stretches between the end of a cell and the beginning of the next one."""
    since = None
    for time, begins in cells:
        if begins and since is not None and time > begin and since < end:
            yield max(since, begin), min(time, end)
        since = None if begins else time


def _within(kept: list[tuple[int, str]], begin: int, end: int) -> list[tuple[int, str]]:
    first = bisect_left(kept, (begin, ""))
    return kept[first : bisect_left(kept, (end, ""), first)]
