"""profile(): every launch, copy and fill of a stretch of the program, each with its time on the device."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pygpukit import _core
from pygpukit._core import native
from pygpukit.core import records
from pygpukit.core.backend import backend
from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.sizes import whole
from pygpukit.profiling.latest import note
from pygpukit.profiling.waiting import COPIES, Log, Wait, waits
from pygpukit.profiling.work import Total, Work

if TYPE_CHECKING:
    from os import PathLike

    from pygpukit.profiling.cupti import Activity

MAX_WORKS = 1_000_000
_LAYOUT = struct.Struct("<HHIIIQQQIIQQQ")
_PATIENCE_MS = 1000


class Profile:
    """The works that profile() recorded. Complete once its block has ended; reading it waits for the device.

    untimed: launches that have no time of their own: those of scheduled tasks, which are measured together, those on
    streams of other libraries, and what came after the most works that are kept.
    """

    def __init__(self, max_works: int = MAX_WORKS, cupti: bool = False) -> None:
        self.begin_ns = self.end_ns = 0
        self.untimed = 0
        self._max_works = whole(max_works, "max_works", "how many are kept, a whole number")
        if self._max_works < 1:
            raise InvalidSpecError(f"max_works={max_works!r}; give 1 or more", "max_works")
        self._native: native.Trace | None = None
        self._works: list[Work] = []
        self._names: dict[int, str] = {}
        self._first_record = 0
        self._log = Log()
        self._activity: Activity | None = None
        if cupti:
            from pygpukit.profiling.cupti import Activity

            self._activity = Activity()

    def __enter__(self) -> Profile:
        if self._native is not None or self.end_ns:
            raise RuntimeError("this profile was used already; profile() makes another")
        backend()
        if self._activity is not None:
            self._activity.__enter__()
        self._native = native.Trace(self._max_works)
        self._first_record = _core.ring_head()
        self.begin_ns = _core.now_ns()
        return self

    def __exit__(self, *_: object) -> None:
        trace = self._native
        if trace is None:
            return
        try:
            try:
                native.synchronize()
            finally:  # it may be interrupted, or refused
                self._native = None
                self.end_ns = _core.now_ns()
                trace.end()
            self._read(trace)
            self._read_records()
        finally:
            if self._activity is not None:
                self._activity.__exit__()
        if self._activity is not None:
            self._works += self._activity.works(self._works, self.begin_ns, self.end_ns)
            self._works.sort(key=lambda work: work.begin_ns)
        note(self)

    @property
    def works(self) -> list[Work]:
        """In the order in which they began."""
        if self._native is not None:
            native.synchronize()
            self._read(self._native)
        return self._works

    @property
    def busy_ns(self) -> int:
        """Nanoseconds in which at least one device worked: what overlaps counts once."""
        return sum(end - begin for begin, end in _union(self.works))

    @property
    def wall_ns(self) -> int:
        """Nanoseconds from the beginning of the block to its end, the wait for the device included."""
        return (self.end_ns or _core.now_ns()) - self.begin_ns

    def gaps(self, min_us: float = 10.0) -> list[tuple[int, int]]:
        """Begin and end, in nanoseconds, of stretches in the block in which no device worked, the longest first."""
        edges = [(self.begin_ns, self.begin_ns), *_union(self.works), (self.end_ns or _core.now_ns(),) * 2]
        idle = [(left[1], right[0]) for left, right in pairwise(edges)]
        return sorted((gap for gap in idle if gap[1] - gap[0] >= min_us * 1e3), key=lambda gap: gap[0] - gap[1])

    def waits(self, min_us: float = 10.0) -> list[Wait]:
        """Stretches in which a device had no work, in order, each with what it waited for (docs/profiling.md).

        Causes are known as far back as the event ring went when the block ended: 65536 records. Of a block that still
        runs none is. Empty where no device worked.
        """
        return waits(self.works, self.begin_ns, self.end_ns or _core.now_ns(), self._log, min_us)

    def totals(self, by: Callable[[Work], object] = lambda work: work.name) -> list[Total]:
        """Sums by name, or by what `by` says of each work, the longest first."""
        grouped: dict[object, list[Work]] = {}
        for work in self.works:
            grouped.setdefault(by(work), []).append(work)
        busy_us = self.busy_ns / 1e3
        totals = [_total(str(key), works, busy_us) for key, works in grouped.items()]
        return sorted(totals, key=lambda total: -total.total_us)

    def export_chrome_trace(self, path: str | PathLike[str]) -> None:
        """Write Trace Event JSON, which Perfetto and chrome://tracing draw: a row a stream, a process a device."""
        from pygpukit.profiling.chrome import write_works

        write_works(self.works, path)

    def __str__(self) -> str:
        from pygpukit.profiling.table import as_text

        return as_text(self)

    def __repr__(self) -> str:
        return f"<Profile of {len(self.works)} works>"

    def _repr_html_(self) -> str:
        from pygpukit.profiling.table import as_html

        return as_html(self)

    def _read(self, trace: native.Trace) -> None:
        """Take what has ended. The device is done; of an ended trace the last events may be told a little later."""
        for _ in range(_PATIENCE_MS):
            data, self.untimed, pending = trace.read()
            self._works += map(self._work, _LAYOUT.iter_unpack(data))
            if not pending or not self.end_ns:
                break
            time.sleep(0.001)
        self._works.sort(key=lambda work: work.begin_ns)

    def _read_records(self) -> None:
        """Keep what the event ring still has of the block."""
        kept = list(records.since(self._first_record))
        if kept and kept[0].seq > self._first_record:
            self._log.complete_ns = kept[0].t_ns
        self._log.add(kept, self._name)

    def _work(self, fields: tuple[int, ...]) -> Work:
        kind, device, stream, tenant, name, a, b, _, cell, line, begin, end, launches = fields
        copies = kind == records.COPY
        kernel = kind == records.LAUNCH
        what = "kernel" if kernel else "host" if kind == records.HOST_LAUNCH else "fill" if b == 3 else "copy"
        text = COPIES[b] if copies else self._name(name)
        if launches > 1:
            what, text = "graph", f"graph of {launches} launches from {text}"
        return Work(
            text, what, begin, max(begin, end), device, stream, self._name(tenant), self._name(cell), line,
            launches, a if kernel else 0, b if kernel else 0, a if copies else 0,
        )  # fmt: skip

    def _name(self, number: int) -> str:
        text = self._names.get(number)
        if text is None:
            text = self._names[number] = _core.name(number) if number else ""
        return text


def profile(max_works: int = MAX_WORKS, *, cupti: bool = False) -> Profile:
    """Record every launch, copy and fill of a `with` block, with its time on the device.

    Parameters
    ----------
    max_works : int
        How many are kept; what comes then is counted in `untimed`.
    cupti : bool
        Also tell of kernels, copies and fills of other libraries in this process, PyTorch's or cuBLASLt's, by CUPTI's
        records: where cupti-python is installed, on a GPU. They are there once the block has ended.

    Returns
    -------
    Profile
        Works with name, stream, tenant, cell and line; totals, gaps, a table as text and in a notebook, and Trace
        Event JSON for Perfetto. Each launch costs two events more while the block runs, and the device is waited for
        at its beginning and end; outside of it nothing is spent.

    Raises
    ------
    RuntimeError
        A profile is entered twice.
    InvalidSpecError
        max_works is no whole number of at least 1.
    ModuleNotFoundError, GPUError
        cupti-python is not installed, or CUPTI refuses: one tool of a process reads its records. The end of a block
        within the capture of a graph raises GPUError: it waits for the device.

    Examples
    --------
    >>> with gp.profiling.profile() as p:
    ...     y = gp.matmul(gp.ones((64, 64)), gp.ones((64, 64)))
    >>> p.works[-1].name != ""
    True
    """
    return Profile(max_works, cupti)


def _union(works: list[Work]) -> Iterator[tuple[int, int]]:
    """Stretches in which something ran, in order; works come in the order of their beginnings."""
    begin = end = None
    for work in works:
        if end is None or begin is None:
            begin, end = work.begin_ns, work.end_ns
        elif work.begin_ns <= end:
            end = max(end, work.end_ns)
        else:
            yield begin, end
            begin, end = work.begin_ns, work.end_ns
    if begin is not None and end is not None:
        yield begin, end


def _total(name: str, works: list[Work], busy_us: float) -> Total:
    times: list[Any] = [work.duration_us for work in works]
    total = sum(times)
    return Total(
        name=name,
        kind=works[0].kind,
        count=len(works),
        total_us=total,
        mean_us=total / len(works),
        longest_us=max(times),
        nbytes=sum(work.nbytes for work in works),
        share=total / busy_us if busy_us else 0.0,
    )
