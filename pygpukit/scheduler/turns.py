"""Turns: contexts that work in steps beside each other get device time by their shares.

The gate orders what waits in its line. Who waits for the result of one step before the next has nothing there just
then, and two such contexts would alternate, whatever their shares. So each asks here: one step at a time, the next is
that of the context that is furthest behind its share (stride scheduling), and one that is behind is waited for as long
as its last step took, since it may come back at once. That wait is charged to it as if it had used the device.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from pygpukit.scheduler.execution import ExecutionContext, current_context

_MAX_S = 0.02  # nobody is waited for longer than that
_MIN_PPM = 1000  # as the gate weighs who was promised nothing


class _Place:
    """A context in the line."""

    def __init__(self) -> None:
        self.clock = 0.0  # nanoseconds that it had, over its share
        self.seen_ns = 0  # device time that is in clock
        self.waiting = 0  # threads that ask
        self.until_s = 0.0  # so long it is waited for after its last step
        self.missed_s: float | None = None  # since when the device is idle for its sake

    def here(self, now: float) -> bool:
        return self.waiting > 0 or now < self.until_s


class Line:
    """Those who work in steps on one device."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._places: weakref.WeakKeyDictionary[ExecutionContext, _Place] = weakref.WeakKeyDictionary()
        self._taken = False

    @contextmanager
    def turn(self, context: ExecutionContext) -> Iterator[None]:
        """Waits until it is the context's turn; Ctrl-C interrupts the wait."""
        with self._changed:
            place = self._come(context)
            try:
                self._wait(place)
                self._taken = True
            finally:
                place.waiting -= 1
                self._changed.notify_all()
        began = time.monotonic()
        try:
            yield
        finally:
            with self._changed:
                self._charge(context, place)
                self._taken = False
                now = time.monotonic()
                place.until_s = now + min(now - began, _MAX_S)
                self._changed.notify_all()

    def _come(self, context: ExecutionContext) -> _Place:
        now = time.monotonic()
        place = self._places.get(context)
        if place is None:
            place = self._places[context] = _Place()
            place.seen_ns = context.core.work()[2]
        self._charge(context, place)
        if not place.here(now):  # nothing is saved up by staying away
            place.clock = max(place.clock, min((p.clock for p in self._places.values() if p.here(now)), default=0.0))
        elif place.missed_s is not None:
            place.clock += (now - place.missed_s) * 1e9 / _weight(context)
        place.missed_s = None
        place.waiting += 1
        return place

    def _wait(self, place: _Place) -> None:
        while True:
            now = time.monotonic()
            first = min((p for p in self._places.values() if p.here(now)), key=lambda p: (p.clock, p is not place))
            if not self._taken and first is place:
                return
            if self._taken or first.waiting:
                self._changed.wait()
            else:
                first.missed_s = first.missed_s or now
                self._changed.wait(first.until_s - now)

    def _charge(self, context: ExecutionContext, place: _Place) -> None:
        """Device time of the context since the last look, measured by the gate."""
        ns = context.core.work()[2]
        place.clock += (ns - place.seen_ns) / _weight(context)
        place.seen_ns = ns


def _weight(context: ExecutionContext) -> float:
    return max(context.core.share_ppm, _MIN_PPM) / 1e6


_FREE = nullcontext()
_lines: dict[int, Line] = {}


def turn() -> AbstractContextManager[None]:
    """The turn of the context that the running code is in; none to wait for outside of contexts."""
    context = current_context()
    return _FREE if context is None else _lines.setdefault(context.device_id, Line()).turn(context)
