"""How long a thread worked or waited for a core, without what it slept or waited for a device. On Linux alone."""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path

_KEPT = 4096  # tasks

_threads: dict[int, tuple[int, int]] = {}  # by task: its thread, and what that had worked before
_ended: OrderedDict[int, int] = OrderedDict()


def begin(number: int) -> None:
    """The calling thread is in a task from now on."""
    thread = threading.get_native_id()
    worked = _worked_ns(thread)
    if worked is not None:
        _threads[number] = thread, worked


def end(number: int) -> None:
    """The task is over, or runs again later."""
    worked = of(number)
    if _threads.pop(number, None) is not None and worked is not None:
        _ended[number] = worked
        while len(_ended) > _KEPT:
            _ended.popitem(last=False)


def of(number: int) -> int | None:
    """Nanoseconds that the thread of a task worked or waited for a core in it; None where nobody knows."""
    under_way = _threads.get(number)
    if under_way is None:
        return _ended.get(number)
    thread, before = under_way
    worked = _worked_ns(thread)
    return None if worked is None else worked - before + _ended.get(number, 0)


def _worked_ns(thread: int) -> int | None:
    try:
        ran, waited, _ = Path(f"/proc/self/task/{thread}/schedstat").read_text().split()
        return int(ran) + int(waited)
    except (OSError, ValueError):
        return None
