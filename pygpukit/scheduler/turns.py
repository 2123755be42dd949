"""Turns: contexts that work in steps beside each other get device time by their shares.

The gate orders what waits in its line. Who waits for the result of one step before the next has nothing there just
then, and two such contexts would alternate, whatever their shares. So each asks here before it launches a step: the
next is that of the context that is furthest behind its share (stride scheduling), by measured device time and, of steps
that have not ended, by what its last one took. Who can launch a step before the one before it has ended does, where
that is the next one: so the device goes on while the host looks at tokens. Else one that is behind is waited for as
long as its last step took, since it may come back at once. That the device stands still for half as long is charged to
nobody: shares are of its work. What is longer is charged to the one that is waited for.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from types import TracebackType

from pygpukit.core.turns import FREE, Turn
from pygpukit.scheduler.execution import ExecutionContext, current_context

_MAX_S = 0.02  # nobody is waited for longer than that
_GRACE = 0.5  # of its last step, that one may need to come back
_LATE = 4  # steps at most that have ended and will still be measured: others took no device time
_MIN_PPM = 1000  # as the gate weighs who was promised nothing


class _Place:
    """A context in the line."""

    def __init__(self, seen_ns: int) -> None:
        self.clock = 0.0  # nanoseconds that it had, over its share
        self.seen_ns = seen_ns  # device time that is in clock
        self.step_ns = 0.0  # of the last steps that were measured
        self.unmeasured = 0  # steps that have ended since
        self.weight = 1.0
        self.unfinished = 0  # steps that were launched
        self.waiting = 0  # threads that ask
        self.length_s = 0.0  # from the launch of its last step to its end
        self.until_s = 0.0  # so long it is waited for
        self.missed_s: float | None = None  # since when the device is idle for its sake

    @property
    def expected(self) -> float:
        """The clock when all that it has launched has ended and is measured."""
        return self.clock + (self.unfinished + min(self.unmeasured, _LATE)) * self.step_ns / self.weight

    def here(self, now: float) -> bool:
        return self.waiting > 0 or now < self.until_s


class Line:
    """Those who work in steps on one device. clock: seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.now = clock
        self._changed = threading.Condition()
        self._places: weakref.WeakKeyDictionary[ExecutionContext, _Place] = weakref.WeakKeyDictionary()
        self._taken = False  # somebody launches

    def wait(self, context: ExecutionContext) -> _Place:
        """Wait until the next step is the context's, and let nobody else launch; Ctrl-C interrupts the wait."""
        with self._changed:
            place = self._come(context)
            try:
                while not self._is_next(place):
                    self._changed.wait(self._until(place))
                self._taken = True
            finally:
                place.waiting -= 1
                self._changed.notify_all()
            return place

    def take(self, context: ExecutionContext) -> _Place | None:
        """The same without waiting; None where it is not the context's."""
        with self._changed:
            place = self._come(context)
            place.waiting -= 1
            if not self._is_next(place):
                return None
            self._taken = True
            return place

    def launched(self, place: _Place) -> None:
        """The next may launch, before the step has ended."""
        with self._changed:
            place.unfinished += 1
            place.until_s = self.now() + _MAX_S + 2 * place.length_s  # should nobody come to see it end
            self._free()

    def ended(self, context: ExecutionContext, place: _Place, began: float, *, alone: bool) -> None:
        """A step has ended: one that launched() told of, or alone, beside which nobody could launch."""
        with self._changed:
            place.unfinished -= not alone
            place.unmeasured += 1
            self._charge(context, place)
            now = self.now()
            place.length_s = now - began
            place.until_s = now + min(place.length_s, _MAX_S)
            if alone:
                self._taken = False
            self._changed.notify_all()

    def give_back(self) -> None:
        """Nothing was launched."""
        with self._changed:
            self._free()

    def _free(self) -> None:
        self._taken = False
        self._changed.notify_all()

    def _come(self, context: ExecutionContext) -> _Place:
        now = self.now()
        place = self._places.get(context)
        if place is None:
            place = self._places[context] = _Place(context.core.work()[2])
        self._charge(context, place)
        if not place.here(now):  # nothing is saved up by staying away
            minimum = min((p.expected for p in self._places.values() if p is not place and p.here(now)), default=0.0)
            place.clock = max(place.clock, minimum)
        elif place.missed_s is not None:
            late_s = now - place.missed_s - min(place.length_s, _MAX_S) * _GRACE
            place.clock += max(late_s, 0.0) * 1e9 / place.weight
        place.missed_s = None
        place.waiting += 1
        return place

    def _first(self, place: _Place, now: float) -> _Place:
        """Whose step is the next one; this one's among equals."""
        here = [p for p in self._places.values() if p is place or p.here(now)]
        return min(here, key=lambda p: (p.expected, p is not place))

    def _is_next(self, place: _Place) -> bool:
        return not self._taken and self._first(place, self.now()) is place

    def _until(self, place: _Place) -> float | None:
        """Seconds until the next may be another without anybody's telling; None: somebody tells."""
        now = self.now()
        first = self._first(place, now)
        if self._taken or first.waiting:
            return None
        if first.missed_s is None and not any(p.unfinished for p in self._places.values()):
            first.missed_s = now
        return first.until_s - now

    def _charge(self, context: ExecutionContext, place: _Place) -> None:
        """Device time of the context since the last look, measured by the gate."""
        ns = context.core.work()[2]
        place.weight = max(context.core.share_ppm, _MIN_PPM) / 1e6
        if ns > place.seen_ns:
            place.clock += (ns - place.seen_ns) / place.weight
            place.step_ns = (ns - place.seen_ns) / max(place.unmeasured, 1)
            place.seen_ns, place.unmeasured = ns, 0


class _Turn:
    """A turn of a context in its line. place: it has come already, and is given back unless a step goes on."""

    def __init__(self, line: Line, context: ExecutionContext, place: _Place | None = None) -> None:
        self._line, self._context, self._place = line, context, place
        self._is_ahead, self._goes_on, self._has_ended, self._began = place is not None, False, False, 0.0

    def __enter__(self) -> Turn:
        self._place = self._place or self._line.wait(self._context)
        self._began = self._line.now()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_ahead and not self._goes_on:
            self._line.give_back()
        elif not self._goes_on or error is not None:
            self._end()

    def go_on(self) -> Callable[[], None]:
        assert self._place is not None, "a turn is entered before something is launched in it"
        self._goes_on = True
        self._line.launched(self._place)
        return self._end

    def _end(self) -> None:
        if self._place is not None and not self._has_ended:
            self._has_ended = True
            self._line.ended(self._context, self._place, self._began, alone=not self._goes_on)


_lines: dict[int, Line] = {}


def give(waits: bool) -> Turn | None:
    """A turn of the context that the running code is in; outside of contexts there is none to wait for."""
    if (context := current_context()) is None:
        return FREE
    line = _lines.setdefault(context.device_id, Line())
    if waits:
        return _Turn(line, context)
    place = line.take(context)
    return None if place is None else _Turn(line, context, place)
