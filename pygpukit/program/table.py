"""The kernels and copies of a program as a table in a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from pygpukit.core.text import human_bytes
from pygpukit.program.result import Copy, Kernel, Result

KERNEL_HEAD = ("kernel", "launches", "time", "mean")
COPY_HEAD = ("copies", "count", "size")


def table(result: Result) -> str:
    """The kernels and copies of a program, one a line, for a terminal."""
    rows = [KERNEL_HEAD, *map(kernel_row, result.kernels)]
    copies = [COPY_HEAD, *map(copy_row, result.copies)]
    return "\n".join(line for part in (rows, copies) if len(part) > 1 for line in _aligned(part))


def kernel_row(one: Kernel) -> tuple[str, ...]:
    """Name, launches, time and mean time."""
    return one.name, str(one.launches), time_text(one.ns * 1e-9), time_text(one.ns * 1e-9 / max(one.launches, 1))


def copy_row(one: Copy) -> tuple[str, ...]:
    """Direction, count and size."""
    return one.direction, str(one.count), human_bytes(one.nbytes)


def time_text(seconds: float) -> str:
    """Three digits in the unit that suits."""
    for limit, scale, unit in ((1e-6, 1e9, "ns"), (1e-3, 1e6, "us"), (1.0, 1e3, "ms")):
        if seconds < limit:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds:.2f} s"


def _aligned(rows: list[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        first, *rest = (
            text.ljust(width) if not at else text.rjust(width)
            for at, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join([first, *rest]).rstrip()
