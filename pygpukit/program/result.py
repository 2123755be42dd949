"""The result of a program: how it ended, what it ran on the device, what was found."""

from __future__ import annotations

import contextlib
import json
import signal
from dataclasses import dataclass
from typing import Any


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
    """Every launch of one kernel."""

    name: str
    launches: int
    ns: int


@dataclass(frozen=True)
class Copy:
    """Every copy of one direction."""

    direction: str
    count: int
    nbytes: int


@dataclass(frozen=True)
class Result:
    """exit_code: 128 and the signal's number where a signal ended the program. timeout_s: the time that it went
    beyond, None where it did not."""

    exit_code: int
    seconds: float
    timeout_s: float | None = None
    kernels: tuple[Kernel, ...] = ()
    copies: tuple[Copy, ...] = ()
    findings: tuple[Finding, ...] = ()

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
            tuple(Kernel(one["name"], one["launches"], one["ns"]) for one in rows if one.get("what") == "kernel"),
            tuple(Copy(one["direction"], one["count"], one["bytes"]) for one in rows if one.get("what") == "copy"),
            tuple(
                Finding(one["kind"], one["message"], one.get("file", ""), one.get("line", 0))
                for one in rows
                if one.get("what") == "finding"
            ),
        )

    @property
    def ending(self) -> str:
        """Its exit code, signal or time limit, in a few words."""
        if self.timeout_s is not None:
            return f"ended after {self.timeout_s:g} s, the time that it was given"
        if self.exit_code > 128:
            with contextlib.suppress(ValueError):
                return f"ended by {signal.Signals(self.exit_code - 128).name}"
        return f"exit code {self.exit_code}"
