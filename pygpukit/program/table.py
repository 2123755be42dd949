"""The kernels and copies of a program as a table in a terminal, and when they ran."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pygpukit.core.text import human_bytes
from pygpukit.profiling.table import SIMULATED, lane_name
from pygpukit.program.result import Copy, Kernel, Result

if TYPE_CHECKING:
    from pygpukit.profiling import Work
    from pygpukit.profiling.limits import Limits

KERNEL_HEAD = ("kernel", "launches", "time", "mean", "bytes", "FLOP/byte", "rate", "of the roof", "occupancy")
COPY_HEAD = ("copies", "count", "size", "time", "rate")
REACHED = "bytes of a launch: of the memory that the kernel's arguments point to"
COUNTED = "bytes and operations of a launch are counted: every load and store, no cache considered"
UNKNOWN = "-"
_COLUMNS = 72  # of the timeline
_MARKS = {"kernel": "#", "copy": "=", "fill": "-"}


def table(result: Result, limits: Limits | None, simulated: bool) -> str:
    """The kernels and copies of a program, one a line, and when they ran, a line a stream, for a terminal."""
    rows = [KERNEL_HEAD, *(kernel_row(one, limits) for one in result.kernels)]
    copies = [COPY_HEAD, *map(copy_row, result.copies)]
    lines = [line for part in (rows, copies) if len(part) > 1 for line in _aligned(part)]
    return "\n".join([*lines, *_drawn(result.works), *notes(result, simulated)])


def kernel_row(one: Kernel, limits: Limits | None = None) -> tuple[str, ...]:
    """Name, launches, times; bytes of a launch, operations a byte, rate; its part of the roofline and occupancy."""
    mean_ns = one.ns / one.timed if one.timed else 0.0
    nbytes = one.nbytes / max(one.launches, 1)
    intensity = one.operations / one.nbytes if one.operations is not None and one.nbytes else None
    gbps = nbytes / mean_ns if mean_ns else 0.0
    roof = limits.copy_gbps if limits else 0.0
    if limits and intensity is not None:  # of operations, where these are what the roof bounds
        roof = min(roof, limits.fma_gflops / intensity) if intensity else roof
    return (
        one.name,
        str(one.launches),
        time_text(one.ns * 1e-9) if one.timed else UNKNOWN,
        time_text(mean_ns * 1e-9) if one.timed else UNKNOWN,
        human_bytes(round(nbytes)) if nbytes else UNKNOWN,
        f"{intensity:.3g}" if intensity is not None else UNKNOWN,
        _rate(gbps),
        f"{gbps / roof:.0%}" if roof and gbps else UNKNOWN,
        f"{one.occupancy:.0%}" if one.occupancy else UNKNOWN,
    )


def copy_row(one: Copy) -> tuple[str, ...]:
    """Direction, count, size, time and rate."""
    timed_bytes = one.nbytes * one.timed / max(one.count, 1)
    time = time_text(one.ns * 1e-9) if one.timed else UNKNOWN
    return one.direction, str(one.count), human_bytes(one.nbytes), time, _rate(timed_bytes / one.ns if one.ns else 0.0)


def notes(result: Result, simulated: bool) -> list[str]:
    """Sentences about the figures."""
    if not result.kernels:
        return []
    counted = any(one.operations is not None for one in result.kernels)
    timed, launches = sum(one.timed for one in result.kernels), sum(one.launches for one in result.kernels)
    lines = [COUNTED if counted else REACHED]
    if 0 < timed < launches:
        lines.append(f"{launches - timed} launches have no time: the first {timed} are timed")
    return [*lines, SIMULATED] if simulated else lines


def span_ns(works: Sequence[Work]) -> tuple[int, int]:
    """When the first began, and how long after it the last ended, at least 1 ns."""
    begin = min(work.begin_ns for work in works)
    return begin, max(max(work.end_ns for work in works) - begin, 1)


def time_text(seconds: float) -> str:
    """Three digits in the unit that suits."""
    for limit, scale, unit in ((1e-6, 1e9, "ns"), (1e-3, 1e6, "us"), (1.0, 1e3, "ms")):
        if seconds < limit:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds:.2f} s"


def _rate(gbps: float) -> str:
    return f"{gbps:.3g} GB/s" if gbps else UNKNOWN


def _drawn(works: Sequence[Work]) -> Iterator[str]:
    """A line a stream: kernels #, copies =, fills -."""
    if not works:
        return
    begin, span = span_ns(works)
    lanes: dict[tuple[int, int, bool], list[str]] = {}
    for work in works:
        marks = lanes.setdefault((work.device, work.stream, False), [" "] * _COLUMNS)
        first = min((work.begin_ns - begin) * _COLUMNS // span, _COLUMNS - 1)
        last = min((work.end_ns - begin) * _COLUMNS // span, _COLUMNS - 1)
        marks[first : last + 1] = _MARKS[work.kind] * (last + 1 - first)
    names = {key: lane_name(key) for key in sorted(lanes)}
    width = max(map(len, names.values()))
    for key, name in names.items():
        yield f"{name.ljust(width)} |{''.join(lanes[key])}|"
    yield f"{' ' * width}  0{time_text(span * 1e-9).rjust(_COLUMNS - 1)}  kernels #, copies =, fills -"


def _aligned(rows: list[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        first, *rest = (
            text.ljust(width) if not at else text.rjust(width)
            for at, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join([first, *rest]).rstrip()
