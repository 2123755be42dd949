"""Times of one launch, sampled with events until they agree: warm-up, cold cache, batches, the rule that ends it."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.core.backend import is_sim
from pygpukit.core.clocks import ClockReading, read_clocks
from pygpukit.kernels import measure

TARGET_SPREAD = 0.01
MIN_SAMPLES = 10

_NORMAL = 1.4826  # the standard deviation of normally distributed samples over their MAD
_SAMPLE_US = 50.0  # a sample lasts at least this long: events tell half a microsecond apart
_MAX_BATCH = 64
_ROUND = 10  # samples queued between two waits
_CACHE_SIZES = 4  # the flush buffer, in sizes of the L2 cache
_PAUSE_LIMIT_NS = 1_000_000
_RECORDS_NS = 20_000  # more than the host takes to record two events
_THREADS = 256


Run = Callable[[], object]


@dataclass(frozen=True)
class Samples:
    """us: microseconds a launch, one entry a sample of `batch` launches. before, after: clocks, where they are told."""

    us: tuple[float, ...]
    batch: int
    cold_l2: bool
    before: ClockReading | None
    after: ClockReading | None


def deviation(samples: Sequence[float]) -> float:
    """The median absolute deviation from the median."""
    middle = median(samples)
    return median([abs(one - middle) for one in samples])


def spread(samples: Sequence[float]) -> float:
    """The robust coefficient of variation: 1.4826 * MAD / median. One outlier does not move it."""
    middle = median(samples)
    return _NORMAL * deviation(samples) / middle if middle > 0 else 0.0


def unsettled(samples: Sequence[float]) -> str:
    """Why sampling must go on, "" when it may stop: at least 10 samples, spread() at most 1 %, and the medians of the
    first and the second half at most 1 % apart, so that clocks which still move do not pass for a result."""
    if len(samples) < MIN_SAMPLES:
        return f"{len(samples)} samples in the time given, {MIN_SAMPLES} are needed"
    if spread(samples) > TARGET_SPREAD:
        return f"the spread is {spread(samples):.2%}, over {TARGET_SPREAD:.0%}"
    if median(samples) == 0:
        return "the clock does not tell the launches from nothing"
    half = len(samples) // 2
    drift = abs(median(samples[:half]) - median(samples[half:])) / median(samples)
    return f"the time drifted by {drift:.2%}, over {TARGET_SPREAD:.0%}" if drift > TARGET_SPREAD else ""


def sample(
    run: Run,
    stream: native.Stream,
    *,
    flush_l2: bool,
    warmup_ms: float,
    max_samples: int,
    budget_ms: float,
) -> Samples:
    """Call run(), which queues one launch on `stream`, until unsettled() is "", max_samples or budget_ms.

    A sample is the mean of `batch` launches, so many that it lasts 50 us. With flush_l2, on a GPU, every launch has
    events of its own and a read of four times the L2 cache before it; without, the launches of a batch follow each
    other between two events. The stream is kept busy while the host queues a launch, so that its time is not measured.
    """
    device = native.current_device()
    read_clocks(device)  # opens NVML, which takes longer than a warm device stays warm
    with _on(stream):
        flush = _Flush() if flush_l2 and not is_sim() else None
        launch_us, host_ns = _warm_up(run, stream, warmup_ms)
        batch = min(max(round(_SAMPLE_US / max(launch_us, 1e-3)), 1), _MAX_BATCH)
        before = read_clocks(device)
        times: list[float] = []
        deadline = time.perf_counter() + budget_ms * 1e-3
        while len(times) < max_samples and unsettled(times):
            left_us = (deadline - time.perf_counter()) * 1e6
            if left_us <= 0 and times:
                break
            affordable = int(left_us / max(batch * launch_us, 1.0))
            count = min(max(affordable, 1), _ROUND, max_samples - len(times))
            times += _round(run, stream, count, batch, flush, host_ns)
        after = read_clocks(device)
    return Samples(tuple(times), batch, flush is not None, before, after)


def _warm_up(run: Run, stream: native.Stream, warmup_ms: float) -> tuple[float, float]:
    """(microseconds a launch, nanoseconds the host takes to queue one), after at least one launch and warmup_ms."""
    run()
    stream.synchronize()
    begin = time.perf_counter()
    count = 1
    while True:
        start, end = native.Event(), native.Event()
        start.record(stream)
        queued = time.perf_counter_ns()
        for _ in range(count):
            run()
        host_ns = (time.perf_counter_ns() - queued) / count
        end.record(stream)
        stream.synchronize()
        if (time.perf_counter() - begin) * 1e3 >= warmup_ms:
            return start.elapsed_ms(end) * 1e3 / count, host_ns
        count = min(2 * count, _MAX_BATCH)


def _round(
    run: Run, stream: native.Stream, count: int, batch: int, flush: _Flush | None, host_ns: float
) -> list[float]:
    """`count` samples, queued together and waited for once."""
    pairs_of_sample, launches_of_pair = (batch, 1) if flush else (1, batch)
    pairs = [(native.Event(), native.Event()) for _ in range(count * pairs_of_sample)]
    for start, end in pairs:
        if flush:
            flush()
        if not is_sim():
            _pause(_RECORDS_NS + 2 * host_ns * launches_of_pair)
        start.record(stream)
        for _ in range(launches_of_pair):
            run()
        end.record(stream)
    stream.synchronize()
    us = [start.elapsed_ms(end) * 1e3 for start, end in pairs]
    return [sum(us[at : at + pairs_of_sample]) / batch for at in range(0, len(us), pairs_of_sample)]


def _pause(ns: float) -> None:
    khz = native.device_info(native.current_device())["clock_khz"]
    cycles = int(min(ns, _PAUSE_LIMIT_NS) * khz * 1e-6)
    kernels.launch(measure.PAUSE, (1, 1, 1), (1, 1, 1), struct.pack("q", cycles))


class _Flush:
    """Reads a buffer of several times the L2 cache: what a launch left there is gone, and no line is dirty."""

    def __init__(self) -> None:
        info = native.device_info(native.current_device())
        self._words = max(info["l2_bytes"], 1 << 20) * _CACHE_SIZES // 16
        self._blocks = int(info["multiprocessor_count"]) * 8
        self._buffer = native.empty(self._words * 16, "uint8")
        native.fill(self._buffer, b"\0")
        self._buffer.name = "L2 flush of bench()"
        self._sink = native.empty(1, "int32")

    def __call__(self) -> None:
        words = struct.pack("q", self._words)
        grid, block = (self._blocks, 1, 1), (_THREADS, 1, 1)
        kernels.launch(measure.READ_WORDS, grid, block, self._buffer, words, self._sink)


@contextmanager
def _on(stream: native.Stream) -> Iterator[None]:
    """Make the stream the thread's current one for a while."""
    before = native.current_stream()
    native.set_current_stream(stream)
    try:
        yield
    finally:
        native.set_current_stream(before)
