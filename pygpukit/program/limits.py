"""Limits of a program, and the end of all that it started, also of what left its group of processes.

Each process of a program has a mark in its environment, which those that it starts inherit. Linux alone shows it.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import time
from pathlib import Path

from pygpukit.core.linux import available_bytes
from pygpukit.core.sizes import parse_memory

PROCESSES = 256  # at once
FILE_BYTES = 16 << 30  # of one file
VARIABLE = "PYGPUKIT_PROGRAM"  # has the marks of the program and of those around it
MEMORY_VARIABLE = "PYGPUKIT_PROGRAM_MEMORY"
_MEMORY_SHARE = 0.75  # of what the host has left
_ROUNDS = 200  # of killing: what is killed may be starting others


def apply() -> None:
    """Limit this process and those that it starts: no core files, a size of files, memory of the host, and, but for
    root, how many processes and threads its user may have.

    $PYGPUKIT_PROGRAM_MEMORY sets the memory ("8GiB"); else it is three quarters of what the host has left. Raises
    ValueError, naming the variable, for what is no size.
    """
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, FILE_BYTES)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    _limit(resource.RLIMIT_NPROC, _thread_count() + 4 * PROCESSES)
    memory = memory_bytes()
    if memory is not None:
        _limit(resource.RLIMIT_DATA, _data_bytes() + memory)


def memory_bytes() -> int | None:
    """Memory of the host that a program may take; None where the system does not tell how much there is."""
    if asked := os.environ.get(MEMORY_VARIABLE):
        return parse_memory(asked, MEMORY_VARIABLE)
    available = available_bytes()
    return None if available is None else int(available * _MEMORY_SHARE)


def _limit(what: int, value: int) -> None:
    with contextlib.suppress(OSError, ValueError):
        hardest = resource.getrlimit(what)[1]
        resource.setrlimit(what, (value, hardest) if hardest == resource.RLIM_INFINITY else (min(value, hardest),) * 2)


def _data_bytes() -> int:
    """Bytes of this process that RLIMIT_DATA counts."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmData:"):
                return int(line.split()[1]) * 1024
    return 0


def _processes() -> list[Path]:
    """Folders of all processes, where the system shows them."""
    try:
        return [one for one in Path("/proc").iterdir() if one.name.isdigit()]
    except OSError:
        return []


def _thread_count() -> int:
    """Threads of this user, which RLIMIT_NPROC counts."""
    count = 0
    for process in _processes():
        with contextlib.suppress(OSError):
            state = (process / "task").stat()
            count += state.st_nlink - 2 if state.st_uid == os.getuid() else 0
    return count


def process_count() -> int:
    """Number of the processes that the system shows."""
    return len(_processes())


def marked(mark: str) -> list[int]:
    """The processes that have the mark and still run."""
    result = []
    for process in _processes():
        with contextlib.suppress(OSError):  # others' and those that ended meanwhile
            if mark.encode() in (process / "environ").read_bytes():
                result.append(int(process.name))
    return result


def end_all(group: int, mark: str) -> None:
    """Kill a group of processes, and each process with the mark, until there is none."""
    for _ in range(_ROUNDS):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
        left = marked(mark)
        if not left:
            return
        for process in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.005)
