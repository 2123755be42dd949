"""Events: points in a stream's work, to wait for and to measure between."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygpukit._core import native

if TYPE_CHECKING:
    from pygpukit.core.stream import Stream


class Event:
    """A point in a stream's work. timing=False makes an event that only orders work."""

    __slots__ = ("native",)

    def __init__(self, timing: bool = True) -> None:
        self.native = native.Event(timing)

    def record(self, stream: Stream | None = None) -> None:
        """Put the event after the work queued so far on the stream, by default the thread's current one."""
        self.native.record(None if stream is None else stream.native)

    def query(self) -> bool:
        """True when the recorded point has been reached. Does not wait."""
        return self.native.query()

    def synchronize(self) -> None:
        """Wait until the recorded point has been reached. Ctrl-C interrupts the wait."""
        self.native.synchronize()

    def elapsed_ms(self, end: Event) -> float:
        """Milliseconds on the device from this event to `end`; both must have been reached."""
        return self.native.elapsed_ms(end.native)


CudaEvent = Event  # the documented name


def event_elapsed_ms(start: Event, end: Event) -> float:
    """Milliseconds on the device between two reached events."""
    return start.elapsed_ms(end)


def event_elapsed_us(start: Event, end: Event) -> float:
    """Microseconds on the device between two reached events."""
    return 1000.0 * start.elapsed_ms(end)
