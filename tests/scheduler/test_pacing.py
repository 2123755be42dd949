"""The gate: what contending tasks launch is deferred, keeps its order, is charged, and can be interrupted."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time

import numpy as np
import pytest

import pygpukit as gp
from pygpukit._core import native
from pygpukit.core.errors import DriverError, TaskCancelledError
from pygpukit.scheduler import Scheduler

PATIENCE_S = 60
BURST_NS = 2_000_000  # of device time, which a task may be ahead of its limit
SOURCE = """
extern "C" __global__ void NAME(float *out, int rounds) {
    float x = threadIdx.x;
    for (int i = 0; i < rounds; ++i) x = fmaf(x, 0.999f, 1.0f);
    if (x == -1.0f) out[0] = x;
}
"""
STEP = """
extern "C" __global__ void step(unsigned *x, unsigned factor, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = x[i] * factor + i;
}
"""
SPIN = """
extern "C" __global__ void charged(float *out, long long ticks) {
    long long begin = clock64();
    while (clock64() - begin < ticks) {}
    if (ticks < 0) out[0] = 1;
}
"""
COOPERATIVE = 1


def kernel_of(name: str, backend_name: str, many: int = 0):
    """A kernel that takes some 100 us on either backend, bound to its arguments. many: so often in one call, without
    the interpreter."""
    kernel = gp.jit(SOURCE.replace("NAME", name), func=name)
    bound = kernel[64, 256] if backend_name == "cuda" else kernel[1, 32]
    out, rounds = gp.zeros(1), 20_000 if backend_name == "cuda" else 500
    if many:
        return lambda: native.launch_many(bound, (out, rounds), many)
    return lambda: bound(out, rounds)


def wait_until(seen, what):
    """Poll until seen() is true; fails naming what was waited for."""
    end = time.monotonic() + PATIENCE_S
    while not seen():
        assert time.monotonic() < end, what
        time.sleep(0.001)


@contextlib.contextmanager
def contended(backend_name: str):
    """A scheduler in which one task launches without end, so that what others launch is deferred."""
    launch, stop = kernel_of("rival", backend_name), threading.Event()

    def rival():
        while not stop.is_set():
            launch()

    with Scheduler(workers=3) as scheduler:
        task = scheduler.submit(rival, bandwidth=0.2, task_id="rival")
        try:
            wait_until(lambda: task.stats().launches >= 5, "the rival's first launches")
            yield scheduler
        finally:
            stop.set()
            task.result(PATIENCE_S)


def copied(array):
    other = gp.empty(array.shape, array.dtype)
    native.copy(other, array)
    return other


def wall_ns(launch, count):
    launch()
    native.current_stream().synchronize()
    begin = time.perf_counter_ns()
    for _ in range(count):
        launch()
    native.current_stream().synchronize()
    return time.perf_counter_ns() - begin


def test_a_task_is_charged_with_its_device_time(backend_name):
    kernel, out = gp.jit(SPIN, func="charged"), gp.zeros(1)
    scheduler = Scheduler(start=False)
    task = scheduler.submit(wall_ns, lambda: kernel[1, 1](out, 100_000), 200, bandwidth=0.5)
    scheduler.step()
    took_ns, stats = task.result(PATIENCE_S), task.stats()
    assert stats.launches == 201 and took_ns < stats.run_ns
    assert 201 * 25_000 < stats.gpu_ns < 1.2 * stats.run_ns, "a launch takes 50 us or more"
    assert stats.achieved_share == pytest.approx(stats.gpu_ns / stats.run_ns)
    assert stats.throttled_ns == 0 and stats.share_1s == 0, "it has no limit, and has ended"
    again = scheduler.submit(int)
    scheduler.step()
    assert again.stats().gpu_ns == 0
    scheduler.close()


def test_fills_copies_and_graphs_are_charged_too(backend_name):
    def fills():
        full = gp.full(1 << 18, 3.0)
        native.current_stream().synchronize()
        return full

    source = gp.zeros(1 << 18)

    def copies():
        return copied(source).to_numpy()

    launch = kernel_of("captured", backend_name)
    launch()

    def graphs():
        with gp.Stream() as stream, stream.capture() as graph:
            for _ in range(5):
                launch()
        for _ in range(3):
            graph.launch()
        gp.synchronize()

    for work in (fills, copies, graphs):
        with Scheduler() as scheduler:
            task = scheduler.submit(work, bandwidth=0.5)
            task.result(PATIENCE_S)
            assert task.stats().gpu_ns > 0 and task.stats().launches > 0, work.__name__


def test_contending_tasks_are_measured_one_at_a_time(backend_name):
    stop, shares = threading.Event(), []

    def backlog(launch):
        while not stop.is_set():
            launch()

    def has_enough(task):
        stats = task.stats()
        shares.append(stats.share_100ms)
        return stats.gpu_ns > 100_000_000 and stats.waited_ns > 0 and stats.pacing_delay_count > 0

    with Scheduler(workers=2) as scheduler:
        launches = {name: kernel_of(name, backend_name) for name in ("rival", "other")}
        scheduler.submit(launches["rival"]).result(PATIENCE_S)  # makes the device's gate
        begin_ns = scheduler.snapshot()["devices"][0]["now_ns"]
        tasks = [scheduler.submit(backlog, launch, bandwidth=0.5, task_id=name) for name, launch in launches.items()]
        try:
            wait_until(lambda: all(has_enough(task) for task in tasks), "0.1 s of the device for each")
            wait_until(lambda: has_enough(tasks[1]) and shares[-1] > 0, "a share of the last 100 ms")
            device = scheduler.snapshot()["devices"][0]
        finally:
            stop.set()
        for task in tasks:
            task.result(PATIENCE_S)
        wait_until(lambda: scheduler.snapshot()["devices"][0]["tasks"] == {}, "their end at the gate")
    got_ns = {name: device["tasks"][name]["gpu_ns"] for name in launches}
    assert all(device["tasks"][name]["waited_ns"] for name in launches)
    assert sum(got_ns.values()) <= (device["now_ns"] - begin_ns) * 1.02, got_ns
    assert max(shares) <= 1.1


def test_a_guaranteed_task_is_limited_to_its_share(backend_name):
    launch, scheduler = kernel_of("limited", backend_name), Scheduler(start=False)

    def work():
        begin = time.perf_counter_ns()
        wall_ns(launch, 400)
        got_ns = task.stats().gpu_ns - BURST_NS
        wall_ns(launch, 1)  # which waits until what it got is paid for, however long a launch took
        return got_ns / (time.perf_counter_ns() - begin)

    task = scheduler.submit(work, bandwidth=0.25, memory="1MB", policy="guaranteed")
    scheduler.step()
    assert 0 < task.result(PATIENCE_S) < 0.4 and task.stats().throttled_ns > 0
    mine = [t for t in scheduler.snapshot()["devices"][0]["throttles"] if t["task"] == task.id]
    assert mine and all(t["from_ns"] < t["until_ns"] for t in mine)
    scheduler.close()


def mixed_work(seed):
    """Launches whose order shows in the result, between all that must not pass them."""
    random = np.random.default_rng(seed)
    values = random.integers(0, 2**32, 777, dtype=np.uint32)
    step = gp.jit(STEP, func="step")
    bound, other = step[4, 256], gp.Stream()
    x = gp.from_numpy(values)
    for factor in random.integers(1, 2**31, 40).tolist():
        bound(x, factor, x.size)
    early = x.to_numpy()  # a copy to the host
    x[:100] = 7  # a fill
    bound(x, 3, x.size)
    with gp.Stream() as graph_stream, graph_stream.capture() as graph:
        step[4, 256](x, 5, x.size)
    gp.synchronize()
    graph.launch()
    gp.synchronize()
    done = gp.Event()
    bound(x, 9, x.size)
    done.record()
    other.wait_event(done)
    with other:  # work of another stream after an event of this one, and memory that goes back to it
        for _ in range(20):
            y = copied(x)
            step[4, 256](y, 11, y.size)
            del y
        step[4, 256](x, 13, x.size)
        other.synchronize()
    bound(x, 17, x.size)
    late = (copied(x).to_numpy(), gp.exp(gp.from_numpy(values[:300].astype(np.float32) / 2**33)).to_numpy())
    return early, *late


def test_results_are_the_same_bits_however_contended(backend_name):
    expected = [mixed_work(seed) for seed in range(2)]
    with contended(backend_name) as scheduler:
        # Their limits defer them even where the rival's thread rests for long.
        tasks = [scheduler.submit(mixed_work, seed, bandwidth=0.3, bandwidth_limit=0.9) for seed in range(2)]
        for task, wanted in zip(tasks, expected, strict=True):
            for got, want in zip(task.result(PATIENCE_S), wanted, strict=True):
                assert got.tobytes() == want.tobytes() and got.shape == want.shape
            assert task.pacing_delay_count > 0, "nothing was deferred"


def test_what_is_deferred_is_not_done(backend_name):
    """A stream with deferred launches is busy, and an event recorded after them is passed after them."""

    def work(launch):
        stream, event = native.current_stream(), native.Event(False)
        after, end = [], time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            for _ in range(10):
                launch()
            busy = not stream.query()  # unless this thread rested until they were done
            event.record(stream)
            event.synchronize()
            after.append(stream.query())
            if busy:
                return after
        return "never busy"

    with contended(backend_name) as scheduler:
        launch = kernel_of("pending", backend_name)
        task = scheduler.submit(work, launch, bandwidth=0.1)
        after = task.result(PATIENCE_S)
        assert after == [True] * len(after)
        assert task.stats().launches == 10 * len(after)


def test_a_refused_launch_is_told_at_the_next_call(backend_name):
    info = native.device_info(native.current_device())
    blocks = 100 * int(info["multiprocessor_count"]) * int(info["max_threads_per_multiprocessor"])
    kernel = gp.jit(SOURCE.replace("NAME", "too_large"), func="too_large")
    too_large = kernel._bind((blocks, 1, 1), (32, 1, 1), 0, None, COOPERATIVE)  # bind() would refuse it

    def work():
        too_large(gp.zeros(1), 1)
        native.current_stream().synchronize()

    with contended(backend_name) as scheduler:
        launch = kernel_of("fine", backend_name)
        task = scheduler.submit(work, bandwidth=0.3, bandwidth_limit=0.9)  # is deferred also when the rival rests
        with pytest.raises(DriverError, match="too_large, launched before and deferred, was refused"):
            task.result(PATIENCE_S)
        assert scheduler.submit(wall_ns, launch, 5).result(PATIENCE_S) > 0, "the gate works on"


def test_launch_many_is_many_launches(backend_name):
    step = gp.jit(STEP, func="step")
    x = gp.from_numpy(np.arange(300, dtype=np.uint32))
    native.launch_many(step[2, 256], (x, 3, 300), 5)
    expected = np.arange(300, dtype=np.uint32)
    for _ in range(5):
        expected = expected * np.uint32(3) + np.arange(300, dtype=np.uint32)
    np.testing.assert_array_equal(x.to_numpy(), expected)
    with pytest.raises(ValueError, match="at least 1"):
        native.launch_many(step[2, 256], (x, 3, 300), 0)
    with pytest.raises(TypeError):
        native.launch_many(step[2, 256], (x, "three", 300), 1)


def endless(launch, seen):
    try:
        while True:
            launch()
    except TaskCancelledError as error:
        seen.append(error)
        raise


def is_ahead(task):
    """Whether the task has launched what the device was not given yet."""
    stats = task.stats()
    return stats.pacing_delay_count >= 3 and stats.kernels > stats.launches


MANY = pytest.mark.parametrize("many", [0, 100_000], ids=["one by one", "many"])


@MANY
def test_a_task_that_waits_for_room_can_be_cancelled(backend_name, many):
    def left_over():
        """How many launches of a task that is cancelled while one waits never ran."""
        launch, seen = kernel_of("stopped", backend_name, many), []
        with Scheduler() as scheduler:
            # Once it had its burst a launch waits for 50 ms, and its line holds one: it is full nearly always.
            task = scheduler.submit(endless, launch, seen, bandwidth=0.002, memory="1MB", policy="guaranteed")
            wait_until(lambda: task.stats().throttles and is_ahead(task), "launches that wait")
            assert task.cancel()
            wait_until(lambda: seen, "the end of its launches")
        assert task.phase == "Cancelled"
        return task.stats().kernels - task.stats().launches

    # A busy host may come to cancel it when the one that waited has its turn, and the next is not there yet.
    assert any(left_over() > 0 for _ in range(5)), "some of its launches never ran"


@MANY
def test_ctrl_c_reaches_a_waiting_launch(backend_name, many):
    launch = kernel_of("interrupted", backend_name, many)
    scheduler = Scheduler(start=False)
    task = scheduler.submit(endless, launch, [], bandwidth=0.1, memory="1MB", policy="guaranteed")

    def interrupt():
        wait_until(lambda: is_ahead(task), "launches that wait")
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        threading.Thread(target=interrupt).start()
        scheduler.step()
    assert task.phase == "Cancelled"
    after = scheduler.submit(wall_ns, kernel_of("after", backend_name), 3)
    scheduler.step()
    assert after.result(PATIENCE_S) > 0, "the gate works on"
    scheduler.close()


def test_a_task_that_fails_leaves_the_gate_open(backend_name):
    launch = kernel_of("raises", backend_name)

    def fails():
        launch()
        launch()
        raise LookupError("on the way")

    with Scheduler() as scheduler:
        for _ in range(3):
            with pytest.raises(LookupError):
                scheduler.submit(fails, bandwidth=0.9).result(PATIENCE_S)
        assert scheduler.submit(wall_ns, launch, 5).result(PATIENCE_S) > 0


def test_outside_of_tasks_nothing_is_charged(backend_name):
    launch = kernel_of("outside", backend_name)
    with Scheduler() as scheduler:
        task = scheduler.submit(wall_ns, launch, 2, bandwidth=0.5)
        task.result(PATIENCE_S)
        before = task.stats().gpu_ns
        wall_ns(launch, 20)
        assert task.stats().gpu_ns == before


def test_waiting_for_the_device_does_not_wait_for_what_others_launch_meanwhile(backend_name):
    """Beside a task that always has something deferred: only what is there when the wait begins is waited for."""

    def work(launch):
        launch()
        gp.synchronize()
        return True

    with contended(backend_name) as scheduler:
        task = scheduler.submit(work, kernel_of("waits", backend_name), bandwidth=0.1)
        assert task.result(PATIENCE_S)
        gp.synchronize()


def test_a_guaranteed_task_has_an_urgent_stream() -> None:
    def urgency() -> str:
        return gp.current_stream().priority.name

    promised = {"memory": 1024, "bandwidth": 0.1}
    with Scheduler(workers=1) as scheduler:  # one thread, with a stream of each kind
        for policy, expected in {"guaranteed": "HIGH", "burstable": "LOW", "best_effort": "LOW"}.items():
            specified = {} if policy == "best_effort" else promised
            assert scheduler.submit(urgency, policy=policy, **specified).result() == expected
        assert scheduler.submit(urgency, policy="guaranteed", **promised).result() == "HIGH"
