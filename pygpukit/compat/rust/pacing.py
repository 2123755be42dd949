"""The documented pacing engine: what streams are promised of the device at the gate, and what the gate measured."""

from __future__ import annotations

import math
import threading
import warnings
import weakref
from dataclasses import dataclass
from typing import Any, SupportsFloat

from pygpukit import _core
from pygpukit._core import native
from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.stream import find_stream, paced_streams
from pygpukit.scheduler import units
from pygpukit.scheduler.contexts import Contexts, live_contexts
from pygpukit.scheduler.execution import ExecutionContext

__all__ = ["KernelPacingEngine", "PacingConfig", "PacingDecision", "PacingStats", "StreamPacingStats"]

_PPM = 1_000_000
_WINDOWS_MS = (10, 100, 1000)  # over which the gate measures shares
_LAUNCH, _HOST_LAUNCH = 16, 17  # kinds of records (docs/seams.md)
_RING_RECORDS = 65536


@dataclass(frozen=True)
class PacingConfig:
    """The promises that an engine may give. Raises InvalidSpecError naming the field.

    total_bandwidth: of the device's time, above 0, at most 1. window_ms: launches_in_window counts over it, and shares
    are judged over the one of 10, 100 and 1000 ms, which the gate measures, that is nearest. min_interval_ms: the least
    that wait_ms() says. adaptive: changes nothing, the gate always gives away what others leave over; False warns.
    """

    total_bandwidth: float = 1.0
    window_ms: float = 100.0
    min_interval_ms: float = 0.1
    adaptive: bool = True

    def __post_init__(self) -> None:
        _share_ppm(self.total_bandwidth, "total_bandwidth")
        units.parse_positive(self.window_ms, "window_ms")
        units.parse_positive(self.min_interval_ms, "min_interval_ms")
        if not self.adaptive:
            text = "adaptive=False changes nothing: a stream always gets what the others leave over"
            warnings.warn(text, DeprecationWarning, stacklevel=3)


@dataclass(frozen=True)
class PacingDecision:
    """The gate's decision on a launch now. decision_type: "Launch", "Wait" or "Throttle"."""

    decision_type: str
    pause_ms: float = 0.0

    def can_launch(self) -> bool:
        """Nothing of the stream waits for a turn."""
        return self.decision_type == "Launch"

    def is_throttled(self) -> bool:
        """Its work waits for a turn, and it had more than its share: others come first."""
        return self.decision_type == "Throttle"

    def wait_ms(self) -> float:
        """An estimate of when to ask again. Nobody has to: launches wait for their turn by themselves."""
        return self.pause_ms


@dataclass(frozen=True)
class StreamPacingStats:
    """Of one stream since it was allocated. bandwidth: as promised; launches_in_window: submitted, operations too;
    total_launches: given to the device; throttled_count: of those, held back for a turn."""

    stream_id: int
    bandwidth: float
    launches_in_window: int
    total_launches: int
    throttled_count: int


@dataclass(frozen=True)
class PacingStats:
    """Of all streams since the last reset(), released ones too. total_waited: as total_throttled, for the gate holds a
    launch back in one way only: until its turn."""

    stream_count: int
    used_bandwidth: float
    available_bandwidth: float
    total_launches: int
    total_throttled: int
    total_waited: int


@dataclass
class _Stream:
    context: ExecutionContext
    by_engine: bool  # by the engine, for a plain stream
    share_ppm: int
    before: tuple[int, int]

    def counts(self) -> tuple[int, int]:
        """(launches, of those held back) since it was allocated."""
        launches, paced, *_ = self.context.core.work()
        return launches - self.before[0], paced - self.before[1]

    def let_go(self) -> None:
        if not self.by_engine:
            if self.context.stats is not None:
                self.context.resize(share=0)
            return
        paced_streams.pop(self.context.stream_id, None)
        try:
            _ = self.context.stream.handle  # which gives the device what waits for a turn
        finally:
            self.context.destroy()


class KernelPacingEngine:
    """Promises streams shares of the device's time, which the gate keeps while others want the device too.

    A stream is that of an execution context, whose share is set then, or a plain gp.Stream(). For that the engine makes
    a context, and what is launched in `with stream:` passes the gate at its share from then on. What is launched on it
    outside of such blocks, as by kernel[grid, block, shared_bytes, stream], does not; the default stream has no share.
    Shares that tasks and other contexts were promised are not counted: with more than 1 in sum all get less.
    """

    def __init__(self, config: PacingConfig | None = None) -> None:
        self._config = PacingConfig() if config is None else config
        self._total_ppm = _share_ppm(self._config.total_bandwidth, "total_bandwidth")
        self._lock = threading.Lock()
        self._contexts = Contexts()
        self._gates = _core.SchedulerCore(0)  # to read what the gates measured
        self._streams: dict[int, _Stream] = {}
        self._released = (0, 0)
        weakref.finalize(self, _let_go, self._streams).atexit = False

    def allocate_stream(self, stream_id: int, bandwidth: SupportsFloat) -> bool:
        """Promise a stream of the current device a share, or another share, by the `id` that it shows.

        False, and nothing changes, when there is no such stream, when it has a share by someone else, and when more
        than total_bandwidth would be promised. Raises InvalidSpecError for a bandwidth that is not in (0, 1].
        """
        share_ppm = _share_ppm(bandwidth, "bandwidth")
        with self._lock:
            others = sum(stream.share_ppm for id, stream in self._open().items() if id != stream_id)
            if others + share_ppm > self._total_ppm:
                return False
            known = self._streams.get(stream_id)
            if known is not None:
                return self._resize(known, share_ppm)
            context = next((context for context in live_contexts() if context.stream_id == stream_id), None)
            return self._make(stream_id, share_ppm) if context is None else self._adopt(context, share_ppm)

    def release_stream(self, stream_id: int) -> None:
        """Its share is free again, and so is the stream: what waits for a turn goes to the device first.

        Leave `with stream:` before; code that is still in it gets ContextDestroyedError. Raises InvalidSpecError for a
        stream that has no share by this engine.
        """
        with self._lock:
            self._named(stream_id)
            self._drop(stream_id)

    def should_launch(self, stream_id: int) -> PacingDecision:
        """The gate's decision on a launch now: see PacingDecision. Raises as release_stream()."""
        with self._lock:
            stream = self._named(stream_id)
        number = stream.context.core.number
        in_flight_ns = [gate["in_flight_ns"] for gate in self._gates.devices() if _waits(gate, number)]
        if not in_flight_ns:
            return PacingDecision("Launch")
        window = min(range(3), key=lambda i: abs(math.log(_WINDOWS_MS[i] / self._config.window_ms)))
        surplus = stream.context.core.shares_ppm()[window] / stream.share_ppm - 1
        if surplus <= 0:
            return PacingDecision("Wait", max(self._config.min_interval_ms, max(in_flight_ns) / 1e6))
        return PacingDecision("Throttle", max(self._config.min_interval_ms, surplus * _WINDOWS_MS[window]))

    def stream_stats(self, stream_id: int) -> StreamPacingStats | None:
        """None for a stream that has no share by this engine."""
        with self._lock:
            stream = self._open().get(stream_id)
        if stream is None:
            return None
        launches, throttled = stream.counts()
        recent = _launches_since(_core.now_ns() - round(self._config.window_ms * 1e6), stream_id)
        return StreamPacingStats(stream_id, stream.share_ppm / _PPM, recent, launches, throttled)

    def stats(self) -> PacingStats:
        with self._lock:
            streams = list(self._open().values())
            counts = [self._released, *(stream.counts() for stream in streams)]
        used_ppm = sum(stream.share_ppm for stream in streams)
        launches, throttled = (sum(column) for column in zip(*counts, strict=True))
        free_ppm = self._total_ppm - used_ppm
        return PacingStats(len(streams), used_ppm / _PPM, free_ppm / _PPM, launches, throttled, throttled)

    def reset(self) -> None:
        """Release all streams and count from 0."""
        with self._lock:
            for stream_id in list(self._streams):
                self._drop(stream_id)
            self._released = (0, 0)

    def record_launch(self, stream_id: int) -> None:
        """Deprecated, changes nothing: the gate counts launches."""
        _warn("record_launch")

    def record_throttle(self, stream_id: int) -> None:
        """Deprecated, changes nothing: the gate counts what it holds back."""
        _warn("record_throttle")

    def record_wait(self) -> None:
        """Deprecated, changes nothing: the gate counts what it holds back."""
        _warn("record_wait")

    # ---- under the lock ----

    def _open(self) -> dict[int, _Stream]:
        """The streams, without those whose context was destroyed."""
        for stream_id in [id for id, stream in self._streams.items() if stream.context.stats is None]:
            self._drop(stream_id)
        return self._streams

    def _named(self, stream_id: int) -> _Stream:
        stream = self._open().get(stream_id)
        if stream is None:
            known = ", ".join(map(str, self._streams)) or "none"
            raise InvalidSpecError(f"stream_id={stream_id!r} has no share of this engine; {known} have", "stream_id")
        return stream

    def _adopt(self, context: ExecutionContext, share_ppm: int) -> bool:
        """One with a share has it by create_context() or another engine."""
        if context.share > 0:
            return False
        launches, paced, *_ = context.core.work()
        stream = _Stream(context, False, share_ppm, (launches, paced))
        taken = self._resize(stream, share_ppm)
        if taken:
            self._streams[context.stream_id] = stream
        return taken

    def _make(self, stream_id: int, share_ppm: int) -> bool:
        """A context of the engine's own for a plain stream."""
        stream = find_stream(stream_id)
        if stream is None:
            return False
        name, device = f"stream {stream_id}", native.current_device()
        context = self._contexts.create(name, 0, share_ppm / _PPM, device, 64, stream.priority, stream)
        self._streams[stream_id] = _Stream(context, True, share_ppm, (0, 0))
        paced_streams[stream_id] = context
        return True

    def _resize(self, stream: _Stream, share_ppm: int) -> bool:
        try:
            stream.context.resize(share=share_ppm / _PPM)
        except InvalidSpecError:  # the contexts beside it were promised too much
            return False
        stream.share_ppm = share_ppm
        return True

    def _drop(self, stream_id: int) -> None:
        stream = self._streams.pop(stream_id)
        try:
            stream.let_go()
        finally:
            launches, throttled = stream.counts()
            self._released = (self._released[0] + launches, self._released[1] + throttled)


def _let_go(streams: dict[int, _Stream]) -> None:
    for stream in streams.values():
        stream.let_go()


def _waits(gate: dict[str, Any], number: int) -> bool:
    tenant = gate["tenants"].get(number)
    return tenant is not None and bool(tenant["waits"])


def _launches_since(begin_ns: int, stream_id: int) -> int:
    """Records of launches on a stream, as far as the ring still has them."""
    records, _, _ = _core.ring_read(max(1, _core.ring_head() - _RING_RECORDS))
    words = memoryview(records).cast("Q")  # native order is little endian wherever this runs
    of_stream = ((t_ns, head) for t_ns, head in zip(words[1::8], words[2::8], strict=True) if head >> 32 == stream_id)
    return sum(t_ns >= begin_ns and head & 0xFFFF in (_LAUNCH, _HOST_LAUNCH) for t_ns, head in of_stream)


def _share_ppm(share: SupportsFloat, field: str) -> int:
    share_ppm = units.parse_share(share, field)
    if share_ppm == 0:
        raise InvalidSpecError(f"{field}={share!r}; give a fraction of the device, above 0, at most 1", field)
    return share_ppm


def _warn(method: str) -> None:
    text = f"{method}() changes nothing: the gate itself counts what is launched and what it holds back"
    warnings.warn(text, DeprecationWarning, stacklevel=3)
