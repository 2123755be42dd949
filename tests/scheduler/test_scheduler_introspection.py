"""Moves in line, conditions, and totals by tenant: against what the scheduler says of itself."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scheduler_help import PATIENCE_S, Gate, samples

from pygpukit.core.errors import InvalidSpecError
from pygpukit.scheduler import EVENT_KINDS, Condition, QueueEvent, Replay, Scheduler, ShareEvent
from pygpukit.scheduler.chrome import chrome_trace
from pygpukit.scheduler.events import LaunchEvent, MemoryEvent, TaskEvent, ThrottleEvent
from pygpukit.scheduler.metrics import prometheus

TYPES = ["QuotaReserved", "MemoryResident", "Throttled", "Evicted", "Preempted", "Requeued", "DeadlineAtRisk"]


def condition(task, kind) -> Condition:
    (found,) = [one for one in task.stats().conditions if one.type == kind]
    return found


def random_run(scheduler, seed, tasks=80):
    """Submissions, cancellations, changes and steps, in an order of their own."""
    rng, submitted = random.Random(seed), []
    scheduler.create_partition("half", memory="50MB")
    for _ in range(tasks):
        fails = rng.random() < 0.2
        task = scheduler.submit(
            (lambda: 1 // 0) if fails else (lambda: None),
            memory=f"{rng.choice([1, 30, 45, 101])}MB",
            priority=rng.randrange(3),
            partition=rng.choice([None, "half"]),
            retry=rng.randrange(2),
            name=f"kind {rng.randrange(5)}",
        )
        submitted.append(task)
        chosen = rng.choice(submitted)
        if not chosen.done():
            what = rng.randrange(8)
            if what == 0:
                chosen.cancel()
            elif what == 1:
                chosen.pause()
            elif what == 2:
                chosen.priority = rng.randrange(3)
            elif chosen.paused:
                chosen.resume()
        for _ in range(rng.randrange(2)):
            scheduler.step()
    return submitted


@pytest.mark.parametrize("seed", range(5))
def test_the_events_replayed_are_the_phases_and_the_places(scheduler, seed):
    start = scheduler.snapshot()["next_sequence"]
    random_run(scheduler, seed)
    snapshot = scheduler.snapshot()
    events, _, lost = scheduler.events(start, kinds=("task", "queue"))
    events = [event for event in events if event.sequence < snapshot["next_sequence"]]
    assert lost == 0 and any(isinstance(event, QueueEvent) for event in events)
    replay = Replay(events)
    assert replay.phases == {task["number"]: task["phase"] for task in snapshot["tasks"]}
    for task in snapshot["tasks"]:
        assert replay.position(task["number"]) == task["detail"].get("position")
    totals = snapshot["totals"]
    assert {phase.lower(): count for phase, count in replay.counts.items()} == {
        phase: totals[phase] for phase in map(str.lower, replay.counts)
    }
    waiting = Counter(task["partition"] for task in snapshot["tasks"] if "position" in task["detail"])
    assert {partition: len(line) for partition, line in replay.lines.items() if line} == waiting
    running = next(i for i, event in enumerate(events) if isinstance(event, TaskEvent) and event.target == "Running")
    with pytest.raises(ValueError, match="events before it are missing"):
        Replay(events[running:])


def test_a_task_that_moves_in_line_says_so(scheduler):
    start = scheduler.snapshot()["next_sequence"]
    holder = scheduler.submit(lambda: None, memory="60MB", priority=1)
    first, second = (scheduler.submit(lambda: None, memory="60MB") for _ in range(2))
    scheduler.set_priority(second, 1)
    moves = scheduler.events(start, kinds=["queue"]).events
    numbers = {task.record.number: task for task in (holder, first, second)}
    told = [(numbers[m.number], m.came, m.position, m.depth, m.partition) for m in moves]
    expected = [(first, True, 1, 1), (second, True, 2, 2), (second, False, 2, 1), (second, True, 1, 2)]
    assert told == [(*move, "") for move in expected]
    assert [second.detail["position"], first.detail["position"]] == [1, 2]
    assert scheduler.core.depths() == [("", 2)]
    assert moves[0].name == first.name and moves[0].t_ns > 0


def test_kinds_are_checked(scheduler):
    with pytest.raises(InvalidSpecError, match="kinds has 'gossip'; there are task, queue"):
        scheduler.events(kinds=("task", "gossip"))
    assert scheduler.events(kinds="queue").events == []


# ---- conditions ----


def test_every_task_has_each_condition_once(scheduler):
    for task in random_run(scheduler, 11, 40):
        conditions = task.stats()["conditions"]
        assert [one.type for one in conditions] == TYPES
        for one in conditions:
            assert one.status in ("True", "False", "Unknown") and one.reason
            assert one.last_change_ns >= task.record.submitted_ns
        status = {one.type: one.status for one in conditions}
        assert (status["QuotaReserved"] == "True") == (task.phase in ("Admitted", "Running"))
        assert status["Preempted"] == "False" or task.phase == "Queued"
        assert scheduler.stats(task.id).conditions == task.conditions


def test_quota_and_preemption(scheduler):
    low = scheduler.submit(lambda: None, memory="60MB")
    assert condition(low, "QuotaReserved")[1:4] == ("True", "Reserved", f"{60 << 20} bytes and 0 % of the device")
    assert condition(low, "Preempted")[1:3] == ("False", "Never")
    scheduler.submit(lambda: None, memory="60MB", priority=1)
    preempted = condition(low, "Preempted")
    assert preempted[1:4] == ("True", "WaitingForMemory", "1 so far")
    assert condition(low, "QuotaReserved")[1:3] == ("False", "WaitingForMemory")
    assert condition(low, "QuotaReserved").last_change_ns == preempted.last_change_ns > low.record.submitted_ns
    while scheduler.step():
        pass
    assert condition(low, "Preempted")[1:4] == ("False", "Ended" if low.done() else "AdmittedAgain", "1 so far")
    assert condition(low, "QuotaReserved")[1:3] == ("False", "Released")


def test_requeue_and_deadline(scheduler):
    task = scheduler.submit(lambda: 1 // 0, retry=1, deadline=3600, estimate=1)
    assert condition(task, "DeadlineAtRisk")[1:3] == ("False", "EstimateWithinDeadline")
    scheduler.step()
    assert condition(task, "Requeued")[1:4] == ("True", "WaitingForRetry", "1 so far")
    assert condition(scheduler.submit(lambda: None, deadline=3600), "DeadlineAtRisk").status == "Unknown"
    assert condition(scheduler.submit(lambda: None), "DeadlineAtRisk").reason == "NoDeadline"


def test_memory_of_one_that_runs_and_of_one_without_an_account():
    gates = {name: Gate() for name in ("kept", "plain")}
    with Scheduler(total_memory="100MB", workers=2) as scheduler:
        kept = scheduler.submit(gates["kept"], memory="1MB", bandwidth=0.1)
        plain = scheduler.submit(gates["plain"])
        try:
            assert all(gate.entered.wait(PATIENCE_S) for gate in gates.values())
            assert condition(kept, "MemoryResident")[1:4] == ("True", "OnDevice", "0 of 0 bytes are in host memory")
            assert condition(kept, "Evicted").status == "False"
            assert condition(plain, "MemoryResident")[1:3] == ("Unknown", "NoAccount")
            assert condition(plain, "Throttled")[1:3] == ("False", "NoLimit")
        finally:
            for gate in gates.values():
                gate.open.set()
        kept.result(PATIENCE_S)
        assert condition(kept, "MemoryResident")[1:3] == ("False", "NotRunning")


def test_a_partitions_multiprocessors_make_a_limit_for_who_has_none():
    gate = Gate()
    with Scheduler(total_memory="100MB") as scheduler:
        scheduler.create_partition("p", bandwidth=0.001, isolation="sm")  # a multiprocessor is far more
        task = scheduler.submit(gate, partition="p")
        try:
            scheduler.start()
            assert gate.entered.wait(PATIENCE_S)
            assert task.record.share_limit_ppm is None
            assert condition(task, "Throttled")[1:3] == ("False", "WithinLimit")
        finally:
            gate.open.set()


# ---- Prometheus ----


@pytest.mark.parametrize("seed", range(3))
def test_counters_never_fall_and_tenants_add_up(scheduler, seed):
    rng, before, tasks = random.Random(seed), {}, []
    launches, gpu_ns, slices, throttles = 0, 0, 0, 0
    for i in range(60):
        tasks.append(scheduler.submit(lambda: None, memory=f"{rng.choice([1, 60])}MB", name=f"kind {rng.randrange(4)}"))
        if rng.random() < 0.5:
            scheduler.step()
            more, used_ns = rng.randrange(5), rng.randrange(10**9)
            scheduler.core.charge(rng.choice(tasks).id, more, 4, more, 2, used_ns, 1, 8, 7, 6, 5, 3)
            launches, gpu_ns = launches + more, gpu_ns + used_ns
            slices, throttles = slices + 4, throttles + 5
        found = samples(scheduler.prometheus())
        assert all(found[key] >= value for key, value in before.items() if key[0].endswith("_total"))
        before = found
        assert sum_of(found, "pygpukit_tenant_tasks_submitted_total") == i + 1
        assert found["pygpukit_tasks_submitted_total",] == i + 1
        assert sum_of(found, "pygpukit_tenant_waiting_tasks") == sum_of(found, "pygpukit_queue_depth")
    assert sum_of(before, "pygpukit_tenant_launches_total") == launches > 0
    assert sum_of(before, "pygpukit_tenant_slices_total") == slices
    assert sum_of(before, "pygpukit_tenant_throttles_total") == throttles
    assert sum_of(before, "pygpukit_tenant_gpu_seconds_total") == pytest.approx(gpu_ns / 1e9)
    windows = {key[2] for key in before if key[0] == "pygpukit_tenant_share_ratio"}
    assert windows == {"10ms", "100ms", "1s"}


def sum_of(found, name):
    return sum(value for key, value in found.items() if key[0] == name)


def test_a_position_is_told_while_somebody_waits(scheduler):
    scheduler.submit(lambda: None, memory="60MB", name="first")
    scheduler.submit(lambda: None, memory="60MB", name="second")
    found = samples(scheduler.prometheus())
    assert found["pygpukit_tenant_queue_position", "second"] == 1 and found["pygpukit_queue_depth", ""] == 1
    assert ("pygpukit_tenant_queue_position", "first") not in found


def test_labels_are_bounded(scheduler):
    for i in range(70):
        scheduler.submit(lambda: None, name=f"tenant {i}")
    scheduler.submit(lambda: None, name="(others)")
    found = samples(scheduler.prometheus())
    tenants = [key[1] for key in found if key[0] == "pygpukit_tenant_tasks_submitted_total"]
    assert len(tenants) == 65 and found["pygpukit_tenant_tasks_submitted_total", "(others)"] == 7


TENANT = {
    **dict.fromkeys(("tasks", "requeues", "preemptions", "launches", "slices", "gpu_ns", "paced", "waited_ns"), 1),
    "throttles": 2,
    "throttled_ns": 3,
    "waiting": 1,
    "position": 4,
    "running": 1,
    "shares": [0.5, 1e-7, 0.0],
}


@given(names=st.lists(st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"]))), max_size=4))
def test_whatever_tenants_are_called_the_text_is_valid(names):
    totals = Scheduler(total_memory=1).core.stats()
    rows = [{"name": name, **TENANT} for name in names]
    found = samples(prometheus(totals, {}, rows, [("", 0)], [(name, 5, 2) for name in names]))
    for name in names:
        label = "(others)" if name is None else name
        same = sum(("(others)" if other is None else other) == label for other in names)
        assert found["pygpukit_evicted_bytes_total", label] == 5 * same
        assert found["pygpukit_tenant_queue_position", label] == 4
        assert found["pygpukit_tenant_share_ratio", label, "100ms"] == pytest.approx(1e-7 * same)


# ---- Chrome trace ----


def trace_of(events, now_ns):
    """Its events; each must have what its kind needs."""
    found = json.loads(chrome_trace(events, now_ns))["traceEvents"]
    for one in found:
        assert isinstance(one["name"], str) and isinstance(one["pid"], int) and one["ph"] in "XCiM"
        if one["ph"] != "M":
            assert one["ts"] >= 0
        if one["ph"] == "X":
            assert one["dur"] >= 0 and isinstance(one["tid"], int)
        if one["ph"] == "C":
            assert all(isinstance(value, (int, float)) for value in one["args"].values())
        if one["ph"] == "i":
            assert one["s"] in "tpg"
    return found


MS = 1_000_000
STORY = [
    TaskEvent(1, 0, 7, "a", "Submitted", "Queued", "WaitingForMemory"),
    QueueEvent(2, 0, 7, "a", "", True, 1, 1),
    QueueEvent(3, 1 * MS, 7, "a", "", False, 1, 0),
    TaskEvent(4, 1 * MS, 7, "a", "Queued", "Admitted", ""),
    TaskEvent(5, 2 * MS, 7, "a", "Admitted", "Running", ""),
    LaunchEvent(6, 3 * MS, 7, "a", 0, "k", 4, 32, 0, 0.25),
    LaunchEvent(7, 4 * MS, 7, "a", 0, "k", 4, 32, 0, 0.25),
    MemoryEvent(8, 5 * MS, 7, "a", 0, "evicted", 100, 1),
    MemoryEvent(9, 6 * MS, 7, "a", 0, "evicted", 50, 2),
    ThrottleEvent(10, 30 * MS, 7, "a", 0, 10 * MS, 9 * MS, 3),
    MemoryEvent(11, 40 * MS, 7, "a", 0, "restored", 100, 1),
    MemoryEvent(12, 50 * MS, 7, "a", 0, "freed", 50, 2),
    ShareEvent(13, 100 * MS, 7, "a", 0, 0.5, 0.4, 0.04),
    ShareEvent(14, 400 * MS, 7, "a", 0, 0.3, 0.2, 0.05),
    MemoryEvent(15, 450 * MS, 0, "b", 0, "evicted", 10, 3),
    TaskEvent(16, 500 * MS, 7, "a", "Running", "Succeeded", ""),
]


def test_a_trace_has_phases_stretches_counters_and_instants():
    found = trace_of(STORY, 600 * MS)
    slices = {(one["cat"], one["name"], one["ts"], one["dur"]) for one in found if one["ph"] == "X"}
    assert slices == {
        ("task", "Queued", 0, 1000),
        ("task", "Admitted", 1000, 1000),
        ("task", "Running", 2000, 498_000),
        ("task", "Succeeded", 500_000, 0),
        ("throttle", "throttled", 10_000, 20_000),
        ("memory", "in host memory", 5000, 45_000),
        ("memory", "in host memory", 450_000, 150_000),
    }
    (away,) = [one for one in found if one["name"] == "in host memory" and one["ts"] == 5000]
    assert away["args"] == {"bytes": 150}
    instants = [(one["name"], one["args"]["bytes"]) for one in found if one["ph"] == "i"]
    assert instants == [("evicted", 100), ("evicted", 50), ("restored", 100), ("freed", 50), ("evicted", 10)]
    counters: dict[str, list[tuple[float, float]]] = {}
    for one in found:
        if one["ph"] == "C":
            (value,) = one["args"].values()
            counters.setdefault(one["name"], []).append((one["ts"] / 1000, value))
    assert sorted(counters["queue depth of the default partition"]) == [(0, 1), (1, 0)]
    assert counters["a: SM occupancy of its launches"] == [(3, 0.25), (500, 0)], "where it changes"
    tenth = sorted(counters["a: share of device 0 over 100 ms"])
    assert tenth == [(100, 0.4), (300, 0.0), (400, 0.2), (500, 0.0)], "nothing was told in between: it got nothing"
    assert sorted(counters["a: share of device 0 over 1 s"]) == [(100, 0.04), (400, 0.05), (500, 0.0)]
    rows = {one["args"]["name"] for one in found if one["ph"] == "M"}
    assert rows == {"a", "b", "throttled by their limits", "memory that was evicted"}


@pytest.mark.parametrize("seed", range(3))
def test_stretches_in_host_memory_are_what_the_moves_tell(seed):
    """Each goes from a tenant's first block that leaves to its last that is back, and tells the most bytes."""
    rng, events, away, expected, open_ = random.Random(seed), [], {}, [], {}
    for t in range(1, 300):
        if away and rng.random() < 0.5:
            block = rng.choice(sorted(away))
            tenant, nbytes = away.pop(block)
            action = rng.choice(["restored", "freed"])
        else:
            tenant, nbytes, block, action = rng.choice("ab"), rng.randrange(1, 9), t, "evicted"
            away[block] = (tenant, nbytes)
        events.append(MemoryEvent(t, t * 1000, 0, tenant, 0, action, nbytes, block))
        held = sum(size for owner, size in away.values() if owner == tenant)
        began, most = open_.get(tenant, (t, 0))
        if held:
            open_[tenant] = (began, max(most, held))
        else:
            expected.append((began, t - began, open_.pop(tenant)[1]))
    expected += [(began, 300 - began, most) for began, most in open_.values()]
    found = [one for one in trace_of(events, 300_000) if one["name"] == "in host memory"]
    assert sorted((one["ts"], one["dur"], one["args"]["bytes"]) for one in found) == sorted(expected)
    assert len(expected) > 5


@pytest.mark.parametrize("seed", range(3))
def test_a_random_run_gives_a_valid_trace(scheduler, seed):
    random_run(scheduler, seed, 40)
    for part in (EVENT_KINDS, ("queue", "memory"), ("share",)):
        trace_of(scheduler.events(kinds=part).events, 1 << 62)
    assert trace_of(scheduler.events(kinds=EVENT_KINDS).events, 1 << 62)
    json.loads(scheduler.chrome_trace())


def test_events_are_read_while_others_write():
    """A reader on one thread, submitters on others: nothing is told twice or out of order."""
    with Scheduler(total_memory="100MB", workers=2) as scheduler:
        start, seen = scheduler.snapshot()["next_sequence"], []

        def submit():
            for _ in range(50):
                scheduler.submit(lambda: None, memory="60MB")

        threads = [threading.Thread(target=submit) for _ in range(2)]
        for thread in threads:
            thread.start()
        following = start
        while any(thread.is_alive() for thread in threads) or scheduler.core.stats()["succeeded"] < 100:
            events, following, lost = scheduler.events(following, kinds=("task", "queue"))
            assert lost == 0
            seen += events
        seen += scheduler.events(following, kinds=("task", "queue")).events
        sequences = [event.sequence for event in seen]
        assert sequences == sorted(set(sequences))
        replay = Replay(seen)
        assert replay.counts == {"Succeeded": 100} and not any(replay.lines.values())
