"""Time in which a thread worked or waited for a core, without what it slept or waited for a device. On Linux alone."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import OrderedDict

_KEPT = 4096  # tasks


class _Watch(threading.local):
    """The calling thread's account at the kernel, opened once: every task's begin and end read it."""

    account: _Account | None = None


class _Account:
    def __init__(self) -> None:
        self._file = os.open(f"/proc/self/task/{threading.get_native_id()}/schedstat", os.O_RDONLY)

    def worked_ns(self) -> int | None:
        """The time that its thread worked or waited for a core; None once that has ended. From any thread."""
        try:
            ran, waited, *_ = os.pread(self._file, 128, 0).split()
            return int(ran) + int(waited)
        except (OSError, ValueError):
            return None

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError, OSError):  # it was never opened
            os.close(self._file)


_here = _Watch()
_under_way: dict[int, tuple[_Account, int]] = {}  # by task: its thread, and what that had worked before
_ended: OrderedDict[int, int] = OrderedDict()


def begin(number: int) -> None:
    """The calling thread is in a task from now on."""
    if _here.account is None:
        with contextlib.suppress(OSError):
            _here.account = _Account()
    account = _here.account
    worked = None if account is None else account.worked_ns()
    if account is not None and worked is not None:
        _under_way[number] = account, worked


def end(number: int) -> None:
    """The task is over, or runs again later."""
    worked = of(number)
    if _under_way.pop(number, None) is not None and worked is not None:
        _ended[number] = worked
        while len(_ended) > _KEPT:
            _ended.popitem(last=False)


def of(number: int) -> int | None:
    """Nanoseconds that the thread of a task worked or waited for a core in it; None where nobody knows."""
    under_way = _under_way.get(number)
    if under_way is None:
        return _ended.get(number)
    account, before = under_way
    worked = account.worked_ns()
    return None if worked is None else worked - before + _ended.get(number, 0)
