"""Events of tasks that launch, are held back by a limit, and lose their place on the device for a while."""

from __future__ import annotations

import gc
import json
import threading
import time

import pytest

import pygpukit as gp
from pygpukit import _core
from pygpukit._core import native
from pygpukit.scheduler import EVENT_KINDS, MB, LaunchEvent, MemoryEvent, Scheduler, ShareEvent, ThrottleEvent

PATIENCE_S = 60
SPIN = """
extern "C" __global__ void spins(float *out, long long ticks) {
    long long begin = clock64();
    while (clock64() - begin < ticks) {}
    if (ticks < 0) out[0] = 1;
}
"""


@pytest.fixture
def desk(backend_name):
    gp.zeros(1)
    made = Scheduler(total_memory="100MB", workers=2, start=False)
    yield made
    made._shut(PATIENCE_S)


def of(desk, start, kind, task):
    events, _, lost = desk.events(start, kinds=(kind,))
    assert lost == 0
    return [event for event in events if event.number == task.record.number]


def condition(task, kind):
    (found,) = [one for one in task.conditions if one.type == kind]
    return found


def test_throttles_and_shares_of_a_limited_task(desk):
    kernel, out, start = gp.jit(SPIN, func="spins"), gp.zeros(1), _core.ring_head()
    seen, stop = [], threading.Event()

    def work():
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end and not stop.is_set():
            kernel[1, 32](out, 100_000)
            native.current_stream().synchronize()

    task = desk.submit(work, bandwidth=0.1, memory="1MB", policy="guaranteed", name="held")
    desk.start()
    end = time.monotonic() + PATIENCE_S
    try:
        while time.monotonic() < end and (len(of(desk, start, "share", task)) < 3 or not seen):
            time.sleep(0.01)
            found = condition(task, "Throttled")
            if found.status == "True":
                seen.append(found)
    finally:
        stop.set()
    task.result(PATIENCE_S)
    assert seen and seen[0].reason == "LimitReached" and seen[0].last_change_ns >= task.record.started_ns
    ended = condition(task, "Throttled")
    assert ended[1:3] == ("False", "NotRunning") and ended.last_change_ns == task.record.finished_ns
    throttles = of(desk, start, "throttle", task)
    assert all(isinstance(event, ThrottleEvent) and event.name == "held" for event in throttles)
    assert sum(event.throttled_ns for event in throttles) == task.stats().throttled_ns > 0
    assert all(event.from_ns + event.throttled_ns <= event.t_ns and event.throttles > 0 for event in throttles)
    shares = of(desk, start, "share", task)
    assert all(isinstance(event, ShareEvent) for event in shares)
    assert all(0 <= share <= 1.1 for event in shares for share in event[5:])
    assert any(event.share_100ms > 0 for event in shares)
    held = {row["name"]: row for row in desk.core.tenants()}["held"]
    assert (held["throttles"], held["throttled_ns"]) == (
        sum(event.throttles for event in throttles),
        task.stats().throttled_ns,
    )


def test_launches_have_their_occupancy(desk, backend_name):
    kernel, out, start = gp.jit(SPIN, func="spins"), gp.zeros(1), _core.ring_head()

    def work():
        kernel[3, 64](out, 1)
        kernel[1_000_000 if backend_name == "cuda" else 3, 64](out, 1)

    kernel[1, 32](out, 1)  # of no task
    task = desk.submit(work, name="launches")
    task.result(PATIENCE_S)
    small, large = of(desk, start, "launch", task)
    assert isinstance(small, LaunchEvent)
    assert (small.name, small.kernel, small.blocks, small.threads, small.shared_bytes) == (
        "launches",
        "spins",
        3,
        64,
        0,
    )
    facts = native.device_info(0)
    warps = facts["multiprocessor_count"] * facts["max_threads_per_multiprocessor"] / facts["warp_size"]
    assert small.occupancy == pytest.approx(min(1.0, 3 * 2 / warps))
    if backend_name == "cuda":
        assert large.occupancy == pytest.approx(kernel.occupancy(64).fraction)


def test_evictions_are_told_of_whom_they_concern(desk):
    start, release, began = _core.ring_head(), threading.Event(), threading.Event()
    before = {tenant: (evicted, restored) for tenant, evicted, restored in _core.pool_traffic()}
    kept = []

    def work():
        array = gp.full(4 * MB, 7, dtype="uint8")
        native.current_stream().synchronize()
        kept.append(array)
        began.set()
        assert release.wait(PATIENCE_S)
        gone = kept.pop()
        return int(gone.to_numpy()[-1])

    desk.start()
    task = desk.submit(work, memory="8MB", name="moved")
    try:
        assert began.wait(PATIENCE_S)
        assert condition(task, "MemoryResident").status == "True"
        name = _core.intern("moved")
        (block,) = [row[0] for row in _core.pool_blocks(0) if row[3] == name and row[2] >= 4 * MB]
        _core.pool_evict(0, block)
        resident, evicted = condition(task, "MemoryResident"), condition(task, "Evicted")
        assert (resident.status, evicted.status, evicted.reason) == ("False", "True", "InHostMemory")
        assert evicted.last_change_ns > task.record.started_ns
    finally:
        release.set()
    assert task.result(PATIENCE_S) == 7
    moves = of(desk, start, "memory", task)
    assert all(isinstance(move, MemoryEvent) for move in moves)
    assert [(move.action, move.bytes >= 4 * MB, move.name, move.block) for move in moves] == [
        (action, True, "moved", block) for action in ("evicted", "restored")
    ]
    traffic = {tenant: (evicted, restored) for tenant, evicted, restored in _core.pool_traffic()}["moved"]
    moved = tuple(now - then for now, then in zip(traffic, before.get("moved", (0, 0)), strict=True))
    assert moved == (moves[0].bytes,) * 2
    trace = json.loads(desk.chrome_trace())["traceEvents"]
    stretches = [e for e in trace if e["name"] == "in host memory" and e["ts"] == moves[0].t_ns / 1000]
    assert [e["args"]["bytes"] for e in stretches] == [moves[0].bytes]
    assert f'pygpukit_evicted_bytes_total{{tenant="moved"}} {traffic[0]}' in desk.prometheus().splitlines()


def test_a_block_that_is_freed_in_host_memory_is_told_also_to_late_readers(desk):
    array = gp.full(4 * MB, 7, dtype="uint8")
    native.current_stream().synchronize()
    block = max(row[0] for row in _core.pool_blocks(0) if row[2] >= 4 * MB)
    _core.pool_evict(0, block)
    gc.collect()  # what earlier tests left in host memory is not freed behind `late`
    late = _core.ring_head()
    other = gp.zeros(10)
    del array, other
    gc.collect()
    events = desk.events(late, kinds=EVENT_KINDS).events
    assert [(event.action, event.block) for event in events if isinstance(event, MemoryEvent)] == [("freed", block)]


def test_a_block_of_another_pool_that_is_freed_on_the_device_is_not_told(desk):
    first, second = (gp.memory.MemoryPool(quota=8 * MB) for _ in range(2))
    away, here = first.allocate(MB), second.allocate(MB)
    assert away.id == here.id, "each pool counts its own"
    start = _core.ring_head()
    first.evict(away)
    second.free(here)
    first.free(away)
    moves = desk.events(start, kinds=["memory"]).events
    assert [(move.action, move.block) for move in moves] == [("evicted", away.id), ("freed", away.id)]
