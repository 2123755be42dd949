"""isolation="sm": tasks of a partition run on multiprocessors of their own, and the others on the rest."""

from __future__ import annotations

import gc
import threading
import time

import numpy as np
import pytest
from alone import alone
from scheduler_help import wait_until

import pygpukit as gp
from pygpukit._core import native
from pygpukit.core.errors import InvalidSpecError
from pygpukit.scheduler import Scheduler

PATIENCE_S = 60
SOURCE = """
extern "C" __global__ void where(unsigned *seen, int rounds) {
#ifdef PYGPUKIT_SIM
    unsigned sm = pk_sim_smid();
#else
    unsigned sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
#endif
    float x = threadIdx.x;
    for (int i = 0; i < rounds; ++i) x = fmaf(x, 0.999f, 1.0f);
    if (threadIdx.x == 0) atomicAdd(&seen[sm], x == -1.0f ? 2u : 1u);
}
"""
SLOTS = 1024


@pytest.fixture(autouse=True)
def _on_either(backend_name: str) -> None:
    """Every test here runs on both backends."""


@pytest.fixture
def total() -> int:
    return gp.get_device_info().multiprocessor_count


@pytest.fixture
def scheduler():
    with Scheduler(workers=4) as made:
        yield made


def where(stream: gp.Stream | None = None) -> set[int]:
    """The multiprocessors that the blocks of a kernel ran on, which is large enough for all there are."""
    kernel = gp.jit(SOURCE, func="where")
    real = gp.backend() == "cuda"
    seen = gp.zeros(SLOTS, "uint32")
    if stream is None:
        kernel[2048, 256](seen, 20_000) if real else kernel[256, 32](seen, 2000)
    else:
        with stream:
            kernel[2048, 256](seen, 20_000) if real else kernel[256, 32](seen, 2000)
        stream.synchronize()
    return set(np.flatnonzero(seen.to_numpy()).tolist())


def check(found: set[int], sms: int) -> None:
    """Threads of the simulator may be fewer than its multiprocessors."""
    if gp.backend() == "cuda":
        assert len(found) == sms
    assert 1 <= len(found) <= sms


def test_a_partition_has_its_multiprocessors_to_itself() -> None:
    alone(__file__, "to_itself")  # streams of other tests may keep a space


def to_itself() -> None:
    with Scheduler(workers=4) as scheduler:
        to_itself_of(scheduler, gp.get_device_info().multiprocessor_count)


def to_itself_of(scheduler, total) -> None:
    scheduler.create_partition("a", bandwidth=0.25, isolation="sm")
    scheduler.create_partition("b", bandwidth=0.3, isolation="sm", memory="1MB")
    scheduler.create_partition("c", bandwidth=0.1)  # shares the rest
    places = [scheduler.submit(where, partition=name) for name in ("a", "b", "c", "a")]
    places.append(scheduler.submit(where))
    a, b, c, again, rest = [task.result(PATIENCE_S) for task in places]
    view = {name: scheduler.partitions.get(name) for name in "abc"}
    sms = {name: view[name].sms for name in "abc"}
    assert sms["c"] == 0 and view["c"].sm_share == 0.0
    assert total * 0.25 <= sms["a"] < total * 0.25 + 2 and total * 0.3 <= sms["b"] < total * 0.3 + 2
    assert view["a"].sm_share == pytest.approx(sms["a"] / total, abs=1e-6)
    check(a | again, sms["a"])
    check(b, sms["b"])
    check(c | rest, total - sms["a"] - sms["b"])
    assert not a & b and not (a | b | again) & (c | rest)
    wait_until(
        lambda: gc.collect() >= 0 and not scheduler.partitions.get("a").sm_switching
    )  # a dispatcher may not have left its space yet
    figures = scheduler.snapshot()["partitions"]["a"]
    assert (figures["sms"], figures["sm_share"], figures["sm_switching"]) == (sms["a"], view["a"].sm_share, False)
    for name in "abc":
        scheduler.partitions.delete_partition(name)
    check(scheduler.submit(where).result(PATIENCE_S), total)


def test_streams_that_a_task_makes_stay_inside(scheduler, total):
    scheduler.create_partition("a", bandwidth=0.25, isolation="sm")
    sms = scheduler.partitions.get("a").sms
    own = scheduler.submit(where, partition="a").result(PATIENCE_S)
    inside = scheduler.submit(lambda: where(gp.Stream(priority="high")), partition="a").result(PATIENCE_S)
    check(own | inside, sms)
    outside = where(gp.Stream())  # of no task: on the whole device
    check(outside, total)


def test_work_and_results_are_those_of_any_task(scheduler):
    scheduler.create_partition("a", bandwidth=0.25, isolation="sm")

    def work() -> np.ndarray:
        x = gp.arange(10_000, dtype="float32").reshape(100, 100)
        return (gp.matmul(x, x) + 1).to_numpy()

    inside = [scheduler.submit(work, partition="a", bandwidth=0.1) for _ in range(4)]
    expected = scheduler.submit(work).result(PATIENCE_S)
    for task in inside:
        np.testing.assert_array_equal(task.result(PATIENCE_S), expected)


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        ({"bandwidth": 0.6, "isolation": "sm"}, "are free, and a group of them stays"),
        ({"isolation": "sm"}, "give bandwidth more than 0"),
        ({"bandwidth": 0.1, "isolation": "mig"}, "'mig' needs an instance on device 0: MIG is off"),
    ],
)
def test_what_cannot_be_had_changes_nothing(scheduler, limits, text):
    scheduler.create_partition("a", bandwidth=0.4, isolation="sm")
    sms, before = scheduler.partitions.get("a").sms, scheduler.submit(where, partition="a").result(PATIENCE_S)
    with pytest.raises(InvalidSpecError, match=text) as caught:
        scheduler.create_partition("b", **limits)
    assert caught.value.field == "isolation" and scheduler.partitions.partition_ids() == ["a"]
    with pytest.raises(InvalidSpecError, match="exists"):
        scheduler.create_partition("a", bandwidth=0.1, isolation="sm")
    with pytest.raises(InvalidSpecError, match="not promised") as caught:
        scheduler.create_partition("c", bandwidth=0.1, memory="9999GB", isolation="sm")
    assert caught.value.field == "memory"
    assert scheduler.partitions.get("a").sms == sms
    check(before | scheduler.submit(where, partition="a").result(PATIENCE_S), sms)


def test_resizing_switches_when_tasks_under_way_have_ended() -> None:
    alone(__file__, "resizing")  # streams of other tests may keep a space


def resizing() -> None:
    with Scheduler(workers=4) as scheduler:
        resizing_of(scheduler, gp.get_device_info().multiprocessor_count)


def resizing_of(scheduler, total) -> None:
    scheduler.create_partition("a", bandwidth=0.25, isolation="sm")
    small = scheduler.partitions.get("a").sms
    inside, go = threading.Event(), threading.Event()

    def stays() -> set[int]:
        inside.set()
        assert go.wait(PATIENCE_S)
        return where()

    old = scheduler.submit(stays, partition="a")
    assert inside.wait(PATIENCE_S)
    scheduler.resize_partition("a", bandwidth=0.5, isolation="sm")
    view = scheduler.partitions.get("a")
    assert view.sms > small and view.sm_switching
    new = scheduler.submit(where, partition="a").result(PATIENCE_S)
    check(new, view.sms)
    go.set()
    check(old.result(PATIENCE_S), small)
    wait_until(lambda: gc.collect() >= 0 and not scheduler.partitions.get("a").sm_switching)
    after = scheduler.partitions.get("a")
    assert after.sm_switch_ns > view.sm_switch_ns > 0
    scheduler.resize_partition("a", bandwidth=0.25, isolation="sm")
    assert scheduler.partitions.get("a").sms == small


def test_a_scheduler_gives_back_what_its_partitions_had(total):
    first = Scheduler()
    first.create_partition("a", bandwidth=0.7, isolation="sm")
    second = Scheduler()
    with pytest.raises(InvalidSpecError, match="are free"):
        second.create_partition("a", bandwidth=0.5, isolation="sm")
    first.partitions.clear()
    second.create_partition("a", bandwidth=0.5, isolation="sm")
    first.create_partition("b", bandwidth=0.25, isolation="sm")
    del second
    first.resize_partition("b", bandwidth=0.7, isolation="sm")
    assert first.partitions.get("b").sms >= 0.7 * total
    first.close()
    assert first.partitions.partition_ids() == []
    third = Scheduler()
    third.create_partition("c", bandwidth=0.7, isolation="sm")
    third.close()


def test_shares_are_of_the_device(scheduler, total):
    """A task that keeps its multiprocessors busy has no more of the device than they are."""
    scheduler.create_partition("a", bandwidth=0.25, isolation="sm", borrow_bandwidth=0.25)
    stop = threading.Event()

    def busy() -> None:
        kernel = gp.jit(SOURCE, func="where")
        seen = gp.zeros(SLOTS, "uint32")
        bound = kernel[2048, 256] if gp.backend() == "cuda" else kernel[64, 32]
        while not stop.is_set():
            bound(seen, 2000)
            native.current_stream().synchronize()

    task = scheduler.submit(busy, partition="a")
    try:
        share, looks, end = 0.0, 0, time.monotonic() + PATIENCE_S
        while (looks < 50 or share == 0) and time.monotonic() < end:
            time.sleep(0.02)
            share, looks = max(share, task.stats()["share_100ms"]), looks + 1
        assert 0 < share <= scheduler.partitions.get("a").sm_share + 1e-6
    finally:
        stop.set()
    task.result(PATIENCE_S)
