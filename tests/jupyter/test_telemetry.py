"""The sampler: one thread, frames only while somebody looks, the same for all, a past for all, no sink kept alive."""

from __future__ import annotations

import gc
import struct
import subprocess
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from types import ModuleType

import pytest

from pygpukit import _core
from pygpukit.telemetry import sampler as telemetry
from pygpukit.telemetry import tenants
from pygpukit.telemetry.actions import ACTIONS
from pygpukit.telemetry.feed import Feed

GAUGE, KIND_AT = 80, 16  # a kind of record, and where its low byte stands in each


class Sink:
    """Keeps what it is sent."""

    def __init__(self, visible: bool = True) -> None:
        self.visible = visible
        self.since = _core.ring_head()
        self.since_name = 0
        self.frames: list[bytes] = []

    def send_frame(self, frame: bytes) -> None:
        assert self.visible or self.frames is not None
        self.frames.append(frame)


@pytest.fixture
def sampler() -> Iterator[telemetry.Sampler]:
    made = telemetry.Sampler()
    made.set_rate(50)
    yield made
    made.stop()


@pytest.fixture(autouse=True)
def _no_view_of_another_file() -> None:
    """A view that an earlier file left behind has the package's sampler put samples of now between a test's own."""
    telemetry._sampler.stop()


def threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "pygpukit-telemetry"}


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.002)


def sequences(frame: bytes) -> list[int]:
    magic, _, header_bytes, record_bytes, gauges, count = struct.unpack_from("<IHHHHI", frame)
    assert magic == 0x314B4750
    start = header_bytes + 8 * gauges
    return [struct.unpack_from("<Q", frame, start + at * record_bytes)[0] for at in range(count)]


def test_frames_join_without_gap_or_repetition(sampler: telemetry.Sampler) -> None:
    sink = Sink()
    start = sink.since
    sampler.add(sink)
    for _ in range(5):
        _core.ring_push(48)
        time.sleep(0.02)
    wait_for(lambda: len(sink.frames) >= 5)
    sampler.stop()
    joined = [seq for frame in sink.frames for seq in sequences(frame)]
    assert joined == list(range(start, start + len(joined)))
    assert sink.since == joined[-1] + 1


def test_one_thread_serves_all_and_they_see_the_same_whenever_they_came(sampler: telemetry.Sampler) -> None:
    before = threads()
    sinks: list[Sink] = []
    for _ in range(3):
        sinks.append(Sink())
        sampler.add(sinks[-1])
        sampler.add(sinks[-1])
        count = len(sinks[0].frames)
        wait_for(lambda count=count: len(sinks[0].frames) >= count + 3)  # type: ignore[misc]
    assert len(threads() - before) == 1
    sampler.stop()
    assert len({id(sink.frames[-1]) for sink in sinks}) == 1, "one frame, not three of one moment"
    assert len({sink.since for sink in sinks}) == 1


def test_who_comes_later_misses_nothing_and_sees_twice_only_what_its_first_frame_brings(
    sampler: telemetry.Sampler,
) -> None:
    early = Sink()
    sampler.add(early)
    wait_for(lambda: len(early.frames) >= 2)
    late = Sink()
    start = late.since
    sampler.add(late)
    wait_for(lambda: len(late.frames) >= 3)
    sampler.stop()
    first, *others = [sequences(frame) for frame in late.frames]
    joined = [seq for frame in others for seq in frame]
    assert first[0] <= start <= first[-1]
    assert joined == list(range(first[-1] + 1, joined[-1] + 1))


def test_the_past_is_ten_minutes_of_samples_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "_histories", {})
    period_ns, count = round(1e9 / telemetry.DEFAULT_HZ), round(600 * telemetry.DEFAULT_HZ)
    frame, _, _ = _core.telemetry_frame(0, _core.ring_head(), 0)
    for tick in range(1, count + 51):
        for device in range(2):
            telemetry._remember(device, frame[:48] + struct.pack("<Q", (tick + device) * period_ns) + frame[56:])
    for device in range(2):
        rows = list(struct.iter_unpack("<4d", telemetry.history(device)))
        assert [time_ns / period_ns for time_ns, *_ in rows] == [tick + device for tick in range(51, count + 51)]
    used, reserved, launches, host_launches = struct.unpack_from("<64xQQ48xQQ", frame)
    assert {row[1:] for row in rows} == {(used, reserved, launches + host_launches)}


def test_while_nobody_looks_nothing_is_sent_and_a_sample_is_kept_now_and_then(
    sampler: telemetry.Sampler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telemetry, "_histories", {})
    waits: list[float] = []
    wait = sampler._woken.wait
    monkeypatch.setattr(sampler._woken, "wait", lambda timeout: (waits.append(timeout), wait(timeout / 50))[1])
    assert not sampler.running(), "nothing runs without a sink"
    sink = Sink(visible=False)
    sampler.add(sink)
    wait_for(lambda: len(waits) >= 3)
    assert not sink.frames and len(telemetry.history()) >= 3 * 32
    assert set(waits) == {telemetry.IDLE_S}
    sink.visible = True
    sampler.wake()
    wait_for(lambda: len(sink.frames) >= 1)
    sink.visible = False
    before = len(waits)
    wait_for(lambda: len(waits) >= before + 2)
    count = len(sink.frames)
    wait_for(lambda: len(waits) >= before + 4)
    assert len(sink.frames) == count
    times = [row[0] for row in struct.iter_unpack("<4d", telemetry.history())]
    assert times == sorted(set(times))
    sampler.remove(sink)
    wait_for(lambda: not sampler.running())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_failed_is_replaced_when_somebody_looks_next(
    sampler: telemetry.Sampler, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: list[threading.Thread] = []

    def fail(*_: object) -> None:
        failed.append(threading.current_thread())
        raise RuntimeError("the device is gone")

    sink = Sink()
    with monkeypatch.context() as broken:
        broken.setattr(telemetry, "_remember", fail)
        sampler.add(sink)
        wait_for(lambda: not sampler.running())
    failed[0].join()  # pytest hears of the error when the thread ends: within this test, which expects it
    assert not sampler.sending()
    sampler.wake()
    wait_for(lambda: len(sink.frames) >= 2)


def test_a_removed_sink_gets_nothing_more(sampler: telemetry.Sampler) -> None:
    sink = Sink()
    sampler.add(sink)
    wait_for(lambda: len(sink.frames) >= 1)
    sampler.remove(sink)
    wait_for(lambda: not sampler.running())
    sampler.remove(sink)


def test_sinks_are_not_kept_alive(sampler: telemetry.Sampler) -> None:
    def served() -> weakref.ref[Sink]:
        sink = Sink()
        sampler.add(sink)
        wait_for(lambda: len(sink.frames) >= 1)
        return weakref.ref(sink)

    reference = served()
    wait_for(lambda: gc.collect() >= 0 and reference() is None)
    wait_for(lambda: not sampler.running())


@pytest.mark.parametrize("closed", [False, True])
def test_a_failing_sink_ends_alone_and_in_silence_where_it_was_closed_meanwhile(
    sampler: telemetry.Sampler, closed: bool
) -> None:
    class Broken(Sink):
        def send_frame(self, frame: bytes) -> None:
            self.frames.append(frame)
            if closed:
                sampler.remove(self)
            raise RuntimeError("the comm is closed")

    said: list[str] = []
    good, bad = Sink(), Broken()
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: said.append(str(message))  # type: ignore[assignment]
        warnings.simplefilter("always")
        sampler.add(good)
        sampler.add(bad)
        wait_for(lambda: bool(bad.frames))
        count = len(good.frames)
        wait_for(lambda: len(good.frames) >= count + 5)
        sampler.stop()
    assert len(bad.frames) == 1
    assert len([text for text in said if "the comm is closed" in text]) == (not closed)


def test_the_rate_is_kept_and_bounded(sampler: telemetry.Sampler, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    wait = sampler._stop.wait
    monkeypatch.setattr(sampler._stop, "wait", lambda timeout: (waits.append(timeout), wait(timeout))[1])
    for wrong in (0, -1, 1000):
        with pytest.raises(ValueError, match="Hz"):
            sampler.set_rate(wrong)
    sampler.set_rate(20)
    sink, begun = Sink(), time.monotonic()
    sampler.add(sink)
    wait_for(lambda: len(sink.frames) >= 12)
    sampler.stop()
    intervals = len(sink.frames) - 1
    assert intervals * 0.05 <= time.monotonic() - begun  # never more often, however late a tick is
    assert 0 < max(waits) < 0.051, "nor does it wait for longer"


def test_one_frame_that_was_late_is_made_up_for_and_not_more(
    sampler: telemetry.Sampler, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, sent = 0.0, list[float]()

    class Slow(Sink):
        def send_frame(self, frame: bytes) -> None:
            nonlocal now
            sent.append(now)
            now += {2: 0.025, 5: 0.2}.get(len(sent), 0.001)
            if len(sent) == 8:
                sampler.stop()

    def wait(timeout: float) -> None:
        nonlocal now
        now += timeout

    sink = Slow()
    sampler._sinks.add(sink)
    monkeypatch.setattr(telemetry.time, "monotonic", lambda: now)
    monkeypatch.setattr(sampler._stop, "wait", wait)
    sampler._thread = threading.current_thread()  # this one is the sampler's
    sampler._run()
    assert [round(at, 3) for at in sent] == [0, 0.02, 0.045, 0.06, 0.08, 0.28, 0.3, 0.32]


def test_a_stop_does_not_wait_for_the_thread_of_whoever_wakes_the_sampler_meanwhile(
    sampler: telemetry.Sampler, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = Sink()
    sampler.add(sink)
    wait_for(lambda: len(sink.frames) >= 1)
    real = sampler._stop.set

    def woken_meanwhile() -> None:
        real()
        wait_for(lambda: not sampler.running())
        sampler.wake()

    with monkeypatch.context() as patch:
        patch.setattr(sampler._stop, "set", woken_meanwhile)
        stopping = threading.Thread(target=sampler.stop, daemon=True)
        stopping.start()
        stopping.join(60)
    assert not stopping.is_alive()
    assert sampler.running()


def test_the_packages_own_functions_share_one_sampler() -> None:
    code = """
import threading, time
import pygpukit as gp
from pygpukit import _core
from pygpukit.telemetry import sampler

def threads():
    return sum(thread.name == "pygpukit-telemetry" for thread in threading.enumerate())

gp.ones(4)
frames = [[], []]
class Sink:
    visible, since, since_name = True, _core.ring_head(), 0
sinks = [Sink(), Sink()]
for sink, own in zip(sinks, frames):
    sink.send_frame = own.append
for sink in sinks:
    sampler.add_sink(sink)
while min(map(len, frames)) < 2:
    time.sleep(0.002)
assert threads() == 1
for sink in sinks:
    sampler.remove_sink(sink)
while threads():
    time.sleep(0.002)
"""
    # In a process of its own: a view that another test left open keeps the thread, which notes a past for it.
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_a_scheduler_that_another_thread_is_importing_is_none_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page looks while a cell's first line imports the scheduler: its module is there, and its names are not."""
    monkeypatch.setitem(sys.modules, "pygpukit.scheduler", ModuleType("pygpukit.scheduler"))
    assert [*tenants.all_tasks(), *tenants.cores(), *tenants.contexts(), *tenants.unstarted()] == []
    assert tenants.adjustments() == 0
    feed = Feed("a device")
    messages, since, since_name = feed.begin()
    frame, *_ = _core.telemetry_frame(0, since, since_name)
    assert messages[0][0]["tasks"] == [] and next(message["type"] for message, _ in feed.follow(frame)) == "frame"
    with pytest.raises(ValueError, match="there is no scheduler"):
        ACTIONS["pause"]({})
