"""A stand-in for cupti-python: its documented functions for activity records, which the test itself sends."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from enum import IntEnum
from types import ModuleType, SimpleNamespace
from typing import Any


class ActivityKind(IntEnum):
    """Kinds of records, with CUPTI's numbers."""

    MEMCPY = 1
    MEMSET = 2
    KERNEL = 3
    CONCURRENT_KERNEL = 10
    MEMCPY2 = 22


class ActivityMemcpyKind(IntEnum):
    """Directions of copies, with CUPTI's numbers."""

    HTOD = 1
    DTOH = 2
    DTOD = 8
    PTOP = 10


class StandIn(ModuleType):
    """The module cupti.cupti. Records wait for a flush and are handed out on another thread, and are empty after it.

    ahead_ns: of its clock before that of the process. fails: names of functions that raise.
    """

    ActivityKind, ActivityMemcpyKind = ActivityKind, ActivityMemcpyKind

    def __init__(self, ahead_ns: int) -> None:
        super().__init__("cupti.cupti")
        self.ahead_ns = ahead_ns
        self.enabled: set[int] = set()
        self.fails: set[str] = set()
        self._waiting: list[SimpleNamespace] = []
        self._completed: Callable[[list[Any]], None] | None = None

    def _call(self, name: str) -> None:
        if name in self.fails:
            raise RuntimeError(f"{name}: CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED")

    def get_timestamp(self) -> int:
        from pygpukit import _core

        self._call("get_timestamp")
        return _core.now_ns() + self.ahead_ns

    def activity_register_callbacks(self, requested: Callable[[], tuple[int, int]], completed: Any) -> None:
        self._call("activity_register_callbacks")
        size, _ = requested()
        assert size >= 1 << 20
        self._completed = completed

    def activity_enable(self, kind: int) -> None:
        self._call("activity_enable")
        if kind == ActivityKind.MEMSET:
            self._call("the last activity_enable")
        self.enabled.add(int(kind))

    def activity_disable(self, kind: int) -> None:
        self.enabled.remove(int(kind))

    def activity_flush_all(self, flag: int) -> None:
        self._call("activity_flush_all")
        records, self._waiting = self._waiting, []
        assert self._completed is not None
        thread = threading.Thread(target=self._completed, args=(records,))
        thread.start()
        thread.join()
        for record in records:
            vars(record).clear()  # a buffer belongs to the callback

    def record(self, kind: ActivityKind, begin_ns: int, end_ns: int, **fields: Any) -> None:
        """One more record, of times on the process's clock, where its kind is recorded; end_ns 0: it runs yet."""
        if kind not in self.enabled:
            return
        times = {"start": begin_ns + self.ahead_ns, "end": end_ns and end_ns + self.ahead_ns}
        self._waiting.append(SimpleNamespace(kind=int(kind), device_id=0, stream_id=7, **times, **fields))

    def kernel(self, name: str, begin_ns: int, end_ns: int, grid: tuple[int, int, int] = (1, 1, 1)) -> None:
        """A record of a kernel with blocks of 32 threads."""
        x, y, z = grid
        shape = {"grid_x": x, "grid_y": y, "grid_z": z, "block_x": 32, "block_y": 1, "block_z": 1}
        self.record(ActivityKind.CONCURRENT_KERNEL, begin_ns, end_ns, name=name, **shape)


def pause() -> None:
    """A moment in which nothing is submitted."""
    time.sleep(0.002)
