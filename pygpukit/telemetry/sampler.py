"""The one sampler thread: makes telemetry frames at a steady rate and hands them to the sinks that are being looked at.

A sink is any object with
- `visible: bool`: whether somebody looks; nothing is made for a sink that is not visible;
- `since: int`, `since_name: int`: where its next frame starts; the sampler advances them;
- `send_frame(frame: bytes) -> None`: called on the sampler's thread;
- optionally `device: int` (default 0);
- optionally `unseen()`: called on the sampler's thread now and then while nobody looks at the sink.

Sinks are held weakly. The thread runs while there is a sink, and from keep_past() on: at its rate while one is visible,
else once a second, when it makes a sample for the past and sends nothing, so that a view that opens later, or comes
into sight again, has its last minutes. A
widget calls wake() (or add_sink(self) again) when it becomes visible. The sinks of a device share one frame a tick, so
they show the same sequence numbers. It starts where the one that knows least goes on: who came later has seen its first
records, and skips them.
"""

from __future__ import annotations

import atexit
import struct
import threading
import time
import warnings
import weakref
from collections import deque
from collections.abc import Callable
from typing import Protocol

from pygpukit import _core
from pygpukit.telemetry.past import past

DEFAULT_HZ = 10.5  # ten a second reach a page that is late now and then
MAX_HZ = 60.0
FRAME_RECORDS = 4096  # of a longer burst the newest; the frame's header counts the others as lost
HISTORY_SAMPLES = round(600 * DEFAULT_HZ)  # ten minutes
IDLE_S = 1.0  # between two samples while nobody looks
_NO_NAMES = 2**32 - 1
_TIME, _USED, _LAUNCHES = struct.Struct("<48xQ"), struct.Struct("<64xQQ"), struct.Struct("<128xQQ")
_SAMPLE = struct.Struct("<4d")  # time in ns, used and reserved bytes, launches

_histories: dict[int, deque[bytes]] = {}  # by device


def history(device: int = 0) -> bytes:
    """The newest samples that a device's frames carried, oldest first: rows of four float64 (ns, used, reserved,
    launches). Of another device than 0 there are none from before a view of it was open."""
    return b"".join(_histories.get(device, ()))


def _remember(device: int, frame: bytes) -> None:
    (time_ns,) = _TIME.unpack_from(frame)
    kept = _histories.setdefault(device, deque(maxlen=HISTORY_SAMPLES))
    kept.append(_SAMPLE.pack(time_ns, *_USED.unpack_from(frame), sum(_LAUNCHES.unpack_from(frame))))


class Sink(Protocol):
    """The interface of a sink for add_sink()."""

    visible: bool
    since: int
    since_name: int

    def send_frame(self, frame: bytes) -> None: ...


class Sampler:
    """Sinks and the thread that serves them. The package has one, see the module's functions."""

    def __init__(self) -> None:
        self._sinks: weakref.WeakSet[Sink] = weakref.WeakSet()
        self._lock = threading.RLock()  # a collected widget's close() may run inside a sampler call
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._woken = threading.Event()
        self._sending = False
        self._keeps_past = False
        self._noted_s = 0.0
        self._period_s = 1 / DEFAULT_HZ

    def add(self, sink: Sink) -> None:
        with self._lock:
            self._sinks.add(sink)
        self.wake()

    def remove(self, sink: Sink) -> None:
        with self._lock:
            self._sinks.discard(sink)
            self._woken.set()

    def keep_past(self) -> None:
        self._keeps_past = True
        self.wake()

    def wake(self) -> None:
        with self._lock:
            self._woken.set()
            if self._thread is None and (self._sinks or self._keeps_past):
                self._stop.clear()
                self._thread = threading.Thread(target=self._run, name="pygpukit-telemetry", daemon=True)
                self._thread.start()

    def set_rate(self, hz: float) -> None:
        if not 0 < hz <= MAX_HZ:
            raise ValueError(f"the rate is {hz} Hz; it must be above 0 and at most {MAX_HZ:g}")
        self._period_s = 1 / hz

    def stop(self) -> None:
        """End the thread and wait for it; sinks stay. Whoever wakes the sampler meanwhile gets another thread, which is
        not waited for."""
        with self._lock:
            thread, self._thread = self._thread, None
            self._stop.set()
            self._woken.set()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def running(self) -> bool:
        return self._thread is not None

    def sending(self) -> bool:
        """True if frames are made, and not only samples of the past."""
        return self.running() and self._sending

    def _run(self) -> None:
        try:
            self._serve()
        finally:
            with self._lock:
                if self._thread is threading.current_thread():
                    self._thread = None  # it failed: whoever looks next gets another thread

    def _serve(self) -> None:
        due = time.monotonic()
        while True:
            with self._lock:
                if self._thread is not threading.current_thread():
                    return  # stopped
                if not self._sinks and not self._keeps_past:
                    self._thread = None
                    return
                self._woken.clear()
                sinks = [sink for sink in self._sinks if sink.visible]
                others = [sink for sink in self._sinks if not sink.visible]
            self._sending = bool(sinks)
            self._pass_by(others)
            if sinks:
                self._tick(sinks)
            else:
                _remember(0, _core.telemetry_frame(0, _core.ring_head(), _NO_NAMES, 1)[0])
            del sinks, others  # hold no widget while waiting
            if time.monotonic() >= self._noted_s:
                self._noted_s = time.monotonic() + IDLE_S
                past.note()
            if not self._sending:
                self._woken.wait(IDLE_S)
                due = time.monotonic()
                continue
            now, period_s = time.monotonic(), self._period_s
            due += period_s
            if due < now - period_s:  # one frame is made up for, not all that a busy machine missed
                due = now
            self._stop.wait(max(0.0, due - now))

    def _tick(self, sinks: list[Sink]) -> None:
        """One frame for all sinks of a device."""
        by_device: dict[int, list[Sink]] = {}
        for sink in sinks:
            by_device.setdefault(getattr(sink, "device", 0), []).append(sink)
        for device, members in by_device.items():
            since, since_name = min(sink.since for sink in members), min(sink.since_name for sink in members)
            frame, since, since_name = _core.telemetry_frame(device, since, since_name, FRAME_RECORDS)
            _remember(device, frame)
            for sink in members:
                sink.since, sink.since_name = since, since_name
                self._notify(sink, sink.send_frame, frame)

    def _pass_by(self, sinks: list[Sink]) -> None:
        for sink in sinks:
            self._notify(sink, getattr(sink, "unseen", None))

    def _notify(self, sink: Sink, send: Callable[..., None] | None, *what: bytes) -> None:
        if send is None:
            return
        try:
            send(*what)
        except Exception as error:  # a closed comm must not end the others' telemetry
            with self._lock:
                closed = sink not in self._sinks  # by another thread, while this one sent
                self._sinks.discard(sink)
            if not closed:
                warnings.warn(f"telemetry to {sink!r} ended: {error}", RuntimeWarning, stacklevel=1)


_sampler = Sampler()
atexit.register(_sampler.stop)


def add_sink(sink: Sink) -> None:
    """Serve `sink` while it is visible, and keep a past for it while it is not; adding it again only wakes the thread.
    Held weakly. Thread-safe."""
    _sampler.add(sink)


def keep_past() -> None:
    """Keep a past from now on, also while there is no sink, for views that open later. Thread-safe."""
    _sampler.keep_past()


def remove_sink(sink: Sink) -> None:
    """Serve `sink` no more; nothing happens when it was not added. Thread-safe."""
    _sampler.remove(sink)


def wake() -> None:
    """Look at the sinks' visibility again."""
    _sampler.wake()


def set_rate(hz: float) -> None:
    """Frames a second for every sink, above 0 and at most 60. Raises ValueError."""
    _sampler.set_rate(hz)
