"""Runs a host compiler within bounds of time, memory and output, in a group of processes that ends with this process.

A shell stands between: it sets the limits, and beside the compiler it waits for the end of a pipe that this process
holds. However this process ends, the pipe ends with it, and the shell ends the whole group.
"""

from __future__ import annotations

import contextlib
import math
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from pygpukit.core.text import human_bytes

_KEPT_BYTES = 1 << 20  # of output and of messages each
_MAX_BYTES = 64 << 20  # of both: then the compiler is ended
_READ_BYTES = 1 << 16
_FILE_BYTES = 256 << 20  # an image has less than one
_SHELL = "/bin/sh"
# $1 to $3: blocks of 512 bytes of a file, KiB of addresses, seconds of processor time. What a system cannot limit stays
# unlimited. Group 0 is the shell's own, of which it is the first.
_SCRIPT = """
ulimit -f "$1" 2>/dev/null; ulimit -v "$2" 2>/dev/null; ulimit -t "$3" 2>/dev/null; ulimit -c 0 2>/dev/null
shift 3
exec 3<&0 </dev/null
"$@" 3<&- &
compiler=$!
{ read -r _ <&3; kill -9 0; } >/dev/null 2>&1 &
watcher=$!
exec 3<&-
wait "$compiler"
status=$?
kill -9 "$watcher"
wait "$watcher" 2>/dev/null
exit "$status"
"""
_OUT_OF_MEMORY = ("out of memory", "virtual memory exhausted", "std::bad_alloc", "annot allocate memory")


@dataclass(frozen=True)
class Limits:
    """Of one compile. seconds: by the clock. memory_bytes: addresses of each of the compiler's processes."""

    seconds: float = 120.0
    memory_bytes: int = 2 << 30


class Outcome(NamedTuple):
    """Exit status, output and messages, the two cut after a mebibyte. exceeded: a sentence about the limit that ended
    it, "" for none."""

    status: int
    output: str
    messages: str
    exceeded: str


def limits() -> Limits:
    """Those of compiles for the simulated device: PYGPUKIT_SIM_COMPILE_TIMEOUT_S (seconds) and
    PYGPUKIT_SIM_COMPILE_MEMORY ("4GiB") change them. Raises ValueError, naming the variable, for other values."""
    chosen = Limits()
    if seconds := os.environ.get("PYGPUKIT_SIM_COMPILE_TIMEOUT_S"):
        with contextlib.suppress(ValueError):
            if 0 < float(seconds) < math.inf:
                chosen = replace(chosen, seconds=float(seconds))
                seconds = ""
        if seconds:
            raise ValueError(f"PYGPUKIT_SIM_COMPILE_TIMEOUT_S is {seconds!r}; give a number of seconds, as 300")
    if memory := os.environ.get("PYGPUKIT_SIM_COMPILE_MEMORY"):
        from pygpukit.core.sizes import parse_memory

        chosen = replace(chosen, memory_bytes=parse_memory(memory, "PYGPUKIT_SIM_COMPILE_MEMORY"))
    return chosen


def run(command: Sequence[str], environment: Mapping[str, str], bounds: Limits) -> Outcome:
    """Run a compiler. It and all that it started end when this is interrupted, and when this process ends in any way.

    Raises OSError when it cannot be started.
    """
    words = [str(_FILE_BYTES // 512), str(bounds.memory_bytes // 1024), str(math.ceil(bounds.seconds) + 1)]
    if not os.access(_SHELL, os.X_OK):
        raise OSError(f"there is no {_SHELL}, which bounds what the compiler may take")
    with subprocess.Popen(
        [_SHELL, "-c", _SCRIPT, "sh", *words, *command],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            output, messages, exceeded = _communicate(process, bounds)
        except BaseException:
            _end(process)
            raise
        if exceeded:
            _end(process)
        status = process.wait()
    if status != 0 and not exceeded and any(words in messages for words in _OUT_OF_MEMORY):
        exceeded = (
            f"the compiler needed more than {human_bytes(bounds.memory_bytes)} of memory; make the source simpler, or "
            "allow more by PYGPUKIT_SIM_COMPILE_MEMORY"
        )
    return Outcome(status, output, messages, exceeded)


def _communicate(process: subprocess.Popen[bytes], bounds: Limits) -> tuple[str, str, str]:
    """Output, messages and the limit that was passed meanwhile, when the compiler has closed both or passed one."""
    assert process.stdout is not None and process.stderr is not None
    texts = {process.stdout: bytearray(), process.stderr: bytearray()}
    deadline = time.monotonic() + bounds.seconds
    total, exceeded = 0, ""
    with selectors.DefaultSelector() as waiting:
        for pipe in texts:
            waiting.register(pipe, selectors.EVENT_READ)
        while waiting.get_map() and not exceeded:
            ready = waiting.select(max(deadline - time.monotonic(), 0.0))
            if not ready and time.monotonic() >= deadline:
                exceeded = (
                    f"compiling took more than {bounds.seconds:g} s; make the source simpler, or allow more by "
                    "PYGPUKIT_SIM_COMPILE_TIMEOUT_S"
                )
            for key, _ in ready:
                data = os.read(key.fd, _READ_BYTES)
                if not data:
                    waiting.unregister(key.fileobj)
                total += len(data)
                text = texts[key.fileobj]  # type: ignore[index]  # registered above
                text += data[: _KEPT_BYTES - len(text)]
            if total > _MAX_BYTES:
                exceeded = f"the compiler wrote more than {human_bytes(_MAX_BYTES)} of messages"
    output, messages = (text.decode(errors="replace") for text in texts.values())
    return output, messages, exceeded


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
