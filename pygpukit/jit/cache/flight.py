"""One compile at a time for each key, over all threads and processes that share the cache folder."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

fcntl: Any  # None on Windows: there a unit may be compiled more than once at a time, and the cache stays right
try:
    import fcntl
except ImportError:
    fcntl = None

WAIT_LIMIT_S = 300.0  # whoever holds a lock for so long is stopped or stuck: compile beside it
_FIRST_PAUSE_S = 0.001
_LONGEST_PAUSE_S = 0.02


@contextlib.contextmanager
def single_flight(folder: Path, key: bytes) -> Iterator[None]:
    """Hold the lock of `key`, a file below `folder`, while another holder of the same key waits.

    The system frees the lock of a process that dies. A lock that cannot be had (a read-only folder, a file system
    without locks) is gone without: then two may do the same work, never wrong work. Ctrl-C ends the wait.
    """
    descriptor = _lock(folder / f"{key[:16].hex()}.lock")
    try:
        yield
    finally:
        if descriptor is not None:
            _unlock(folder / f"{key[:16].hex()}.lock", descriptor)


def _lock(path: Path) -> int | None:
    """The open file that holds the lock; None when there is none to be had."""
    if fcntl is None:
        return None
    deadline = time.monotonic() + WAIT_LIMIT_S
    pause = _FIRST_PAUSE_S
    while time.monotonic() < deadline:
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(path, descriptor):
                return descriptor
            os.close(descriptor)  # its holder removed the file between the two calls
            continue
        except BlockingIOError:
            os.close(descriptor)
        except OSError:
            os.close(descriptor)
            return None
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_S)
    return None


def _unlock(path: Path, descriptor: int) -> None:
    with contextlib.suppress(OSError):  # removed first, so that nobody can take a lock that is about to go
        path.unlink()
    os.close(descriptor)


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except OSError:
        return False
