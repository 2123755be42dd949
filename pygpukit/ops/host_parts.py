"""Work of the simulated device in parts, on as many threads as there are processors: for NumPy, which lets go of the
interpreter while it computes."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

_threads: ThreadPoolExecutor | None = None


def in_parts(count: int, part: int, work: Callable[[int, int], None]) -> None:
    """work(begin, end) over 0 to count, in parts of that size; which thread takes which must not matter. Raises what
    the first part that failed raised."""
    if count <= part or _processors() == 1:
        for begin in range(0, count, part):
            work(begin, min(begin + part, count))
        return
    for _ in _pool().map(lambda begin: work(begin, min(begin + part, count)), range(0, count, part)):
        pass


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _pool() -> ThreadPoolExecutor:
    global _threads
    if _threads is None:
        _threads = ThreadPoolExecutor(_processors(), "pygpukit-host")
    return _threads


def _forget() -> None:
    """A forked child has none of these threads."""
    global _threads
    _threads = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
