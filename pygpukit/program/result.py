"""The result of a program: how it ended, what it ran on the device, what was found."""

from __future__ import annotations

import contextlib
import json
import signal
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pygpukit.profiling import Work

from pygpukit.program.limits import PROCESSES


@dataclass(frozen=True)
class Finding:
    """A fault of the program that its runtime tells, with its place."""

    kind: str
    message: str
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}: " if self.file else ""
        return f"{place}{self.message}"


@dataclass(frozen=True)
class Kernel:
    """Every launch of one kernel.

    ns: of the `timed` launches. nbytes: that were loaded and stored, where operations, those in floating point, are
    counted; else (operations is None) those of the memory that the arguments point to. occupancy: the part of a
    multiprocessor's threads that the last launch could fill, 0 to 1; 0 where nobody tells.
    """

    name: str
    launches: int
    ns: int
    timed: int
    nbytes: int
    operations: int | None
    occupancy: float


@dataclass(frozen=True)
class Copy:
    """Every copy of one direction. ns: of the `timed` ones."""

    direction: str
    count: int
    nbytes: int
    ns: int
    timed: int


@dataclass(frozen=True)
class Result:
    """exit_code: 128 and the signal's number where a signal ended the program. timeout_s: the time that it went
    beyond, None where it did not. crowded: it had more processes than it may have, and was ended."""

    exit_code: int
    seconds: float
    timeout_s: float | None = None
    kernels: tuple[Kernel, ...] = ()
    copies: tuple[Copy, ...] = ()
    findings: tuple[Finding, ...] = ()
    rows: tuple[dict[str, Any], ...] = ()  # of works, as they were reported
    crowded: bool = False

    @classmethod
    def of(cls, returncode: int, seconds: float, timeout_s: float | None, report: bytes) -> Result:
        """From a process's return code and the lines that its runtime reported."""
        rows: list[dict[str, Any]] = []
        for line in report.splitlines():
            with contextlib.suppress(ValueError):
                rows.append(json.loads(line))
        return cls(
            128 - returncode if returncode < 0 else returncode,
            seconds,
            timeout_s,
            tuple(
                Kernel(
                    one["name"], one["launches"], one["ns"], one["timed"], one["bytes"], one["operations"],
                    one["occupancy"],
                )
                for one in rows
                if one.get("what") == "kernel"
            ),
            tuple(
                Copy(one["direction"], one["count"], one["bytes"], one["ns"], one["timed"])
                for one in rows
                if one.get("what") == "copy"
            ),
            tuple(
                Finding(one["kind"], one["message"], one.get("file", ""), one.get("line", 0))
                for one in rows
                if one.get("what") == "finding"
            ),
            tuple(one for one in rows if one.get("what") == "work"),
        )  # fmt: skip

    @cached_property
    def works(self) -> tuple[Work, ...]:
        """The launches, copies and fills whose times were kept, in the order in which they were put on streams."""
        from pygpukit.profiling.work import Work

        def work(row: dict[str, Any]) -> Work:
            device, stream, begin, end, blocks, threads, nbytes = row["numbers"]
            kernel = row["kind"] == "kernel"
            place = row["file"], row["line"], int(kernel), blocks, threads, 0 if kernel else nbytes
            return Work(row["name"], row["kind"], begin, end, device, stream, "", *place)

        return tuple(map(work, self.rows))

    @property
    def ending(self) -> str:
        """Its exit code, signal or limit, in a few words."""
        if self.crowded:
            return f"ended with more than {PROCESSES} processes at once, which is what a program may have"
        if self.timeout_s is not None:
            return f"ended after {self.timeout_s:g} s, the time that it was given"
        if self.exit_code > 128:
            with contextlib.suppress(ValueError):
                return f"ended by {signal.Signals(self.exit_code - 128).name}"
        return f"exit code {self.exit_code}"
