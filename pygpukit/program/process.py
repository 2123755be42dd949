"""A program in a process of its own: started while it is compiled, told what to run, watched, and ended with all that
it started."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from pygpukit.program import limits
from pygpukit.program.build import Program
from pygpukit.program.result import Result

_KEPT_BYTES = 16 << 20  # of a report
TIMES = 10_000  # launches, copies and fills whose times are kept
_SHOWN_BYTES = 1 << 20  # of what is written to a notebook
_READ_BYTES = 1 << 16
_WATCH_S = 0.1  # between two looks at how many processes there are
_GRACE_S = 5.0  # for the last of the output, where something that left the program holds it open


class Process:
    """One that waits for a program. Used in a `with` block: at its end the process is gone.

    show: gets what the program writes, as text; None where it writes to this process's own output.
    """

    def __init__(self, show: Callable[[str], None] | None = None) -> None:
        self._show = show
        # Both ends here are closed once, by whoever uses them: a number that is closed twice may be another's by then.
        order, self._order = os.pipe()
        self._report, report = os.pipe()
        self._is_used = False
        output: dict[str, Any] = {}
        if show is not None:
            output = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        self._mark = f"{os.getpid()}-{time.monotonic_ns()}"
        marks = ":".join(filter(None, [os.environ.get(limits.VARIABLE), self._mark]))
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", limits.VARIABLE: marks}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pygpukit.program.child", *map(str, (os.getpid(), order, report))],
            pass_fds=(order, report), start_new_session=True, env=environment, **output,
        )  # fmt: skip
        os.close(order)
        os.close(report)

    def __enter__(self) -> Process:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._is_used:
            self._end()
            return
        os.close(self._order)
        self._end()
        os.close(self._report)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def run(self, program: Program, arguments: Sequence[str], timeout_s: float | None = None, times: int = 0) -> Result:
        """The result of the program, called with these arguments, the first its name. times: of how many launches,
        copies and fills, the first ones, to keep the times; each costs two events on a GPU. Ctrl-C ends it, and is
        raised."""
        assert not self._is_used, "a process runs one program"
        self._is_used = True
        start = time.perf_counter()
        report = bytearray()
        readers = [threading.Thread(target=_read, args=(self._report, report), daemon=True)]
        if self._process.stdout is not None:
            readers.append(threading.Thread(target=self._stream, args=(self._process.stdout,), daemon=True))
        for reader in readers:
            reader.start()
        self._tell(program, arguments, times)
        timed_out = False
        ended, crowd = threading.Event(), threading.Event()
        watch = threading.Thread(target=self._watch, args=(ended, crowd), daemon=True)
        watch.start()
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            timed_out = True
        finally:
            ended.set()
        watch.join()
        seconds = time.perf_counter() - start
        self._end()
        for reader in readers:
            reader.join(_GRACE_S)
        result = Result.of(self._process.returncode, seconds, timeout_s if timed_out else None, bytes(report))
        return replace(result, crowded=crowd.is_set())

    def _watch(self, ended: threading.Event, crowd: threading.Event) -> None:
        """End a program that has too many processes."""
        before = limits.process_count()
        while not ended.wait(_WATCH_S):
            if limits.process_count() - before > limits.PROCESSES and len(limits.marked(self._mark)) > limits.PROCESSES:
                crowd.set()
                limits.end_all(self._process.pid, self._mark)
                return

    def _tell(self, program: Program, arguments: Sequence[str], times: int) -> None:
        """Hand the program over. A process that is gone already is told by its exit code."""
        order = {
            "library": str(program.library),
            "arguments": list(arguments),
            "times": times,
            "images": [(unit, len(image)) for unit, image in program.images.items()],
            "entries": [
                (one.offset, one.kind, one.name, one.unit, one.nbytes, one.file, one.line) for one in program.entries
            ],
        }
        with contextlib.suppress(BrokenPipeError), os.fdopen(self._order, "wb") as pipe:
            pipe.write(json.dumps(order).encode() + b"\n")
            for image in program.images.values():
                pipe.write(image)

    def _stream(self, output: BinaryIO) -> None:
        """Show what comes, up to a limit; what is beyond is read and forgotten, so that the program goes on."""
        assert self._show is not None
        shown = 0
        rest = b""
        with output:
            while data := os.read(output.fileno(), _READ_BYTES):
                room = _SHOWN_BYTES - shown
                if room <= 0:
                    continue
                shown += len(data)
                text, rest = _whole(rest + data[:room])
                self._show(text)
                if shown >= _SHOWN_BYTES:
                    self._show(f"\n[more than {_SHOWN_BYTES >> 20} MiB of output: the rest is not shown]\n")

    def _end(self) -> None:
        """The process, and what it left behind, are gone."""
        limits.end_all(self._process.pid, self._mark)
        self._process.wait()


def _whole(data: bytes) -> tuple[str, bytes]:
    """The text of the bytes, and those at the end that are the beginning of a character."""
    for cut in range(min(3, len(data)) + 1):
        with contextlib.suppress(UnicodeDecodeError):
            return data[: len(data) - cut].decode(), data[len(data) - cut :]
    return data.decode(errors="replace"), b""


def _read(descriptor: int, into: bytearray) -> None:
    with os.fdopen(descriptor, "rb", buffering=0) as pipe:
        while data := pipe.read(_READ_BYTES):
            into += data[: _KEPT_BYTES - len(into)]


def names_of(paths: Sequence[Path]) -> list[str]:
    """Each file's name as messages have it: as short as tells them apart."""
    short = [path.name for path in paths]
    return short if len(set(short)) == len(short) else [str(path) for path in paths]
