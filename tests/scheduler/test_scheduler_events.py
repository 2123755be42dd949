"""What the scheduler shows: snapshots, the event stream, and their Chrome trace and Prometheus forms."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest
from scheduler_help import samples

from pygpukit import _core
from pygpukit.scheduler import Scheduler, TaskEvent
from pygpukit.scheduler.chrome import chrome_trace
from pygpukit.scheduler.metrics import prometheus

EDGES = {(source, target) for source, target, _, _ in _core.task_edges()}
TERMINAL = {"Rejected", "Succeeded", "Failed", "Cancelled", "Expired"}


def replay(events):
    """Phase by task number, as the events tell it."""
    phases = {}
    for event in events:
        assert phases.get(event.number, "Submitted") == event.source
        assert (event.source, event.target) in EDGES
        phases[event.number] = event.target
    return phases


def test_the_events_replayed_are_the_state(scheduler):
    start, rng = scheduler.snapshot()["next_sequence"], random.Random(5)
    tasks = []
    for i in range(120):
        after = rng.sample(tasks, min(len(tasks), rng.randrange(3)))
        fails = rng.random() < 0.2
        tasks.append(
            scheduler.submit(
                (lambda: 1 // 0) if fails else (lambda: None),
                memory=f"{rng.choice([1, 30, 60, 101])}MB",
                priority=rng.randrange(3),
                depends_on=after,
                name=f"task {i}",
            )
        )
        for _ in range(rng.randrange(3)):
            scheduler.step()
        if rng.random() < 0.2:
            rng.choice(tasks).cancel()
    snapshot = scheduler.snapshot()
    events, following, lost = scheduler.events(start)
    assert lost == 0 and following >= snapshot["next_sequence"]
    assert [event.sequence for event in events] == sorted({event.sequence for event in events})
    assert all(start <= event.sequence < following for event in events)
    assert replay(events) == {task["number"]: task["phase"] for task in snapshot["tasks"]}
    counts = Counter(task["phase"].lower() for task in snapshot["tasks"])
    totals = snapshot["totals"]
    assert {phase: totals[phase] for phase in counts} == counts
    assert totals["submitted"] == 120 and json.dumps(snapshot)


def test_reading_goes_on_where_it_stopped_and_sees_one_scheduler(scheduler):
    other = Scheduler(total_memory="1MB", start=False)
    first = scheduler.events(scheduler.snapshot()["next_sequence"])
    assert first.events == []
    task = scheduler.submit(lambda: None)
    other.submit(lambda: None)
    second = scheduler.events(first.next_sequence)
    assert [(event.number, event.target) for event in second.events] == [(task.record.number, "Admitted")]
    assert scheduler.events(second.next_sequence).events == []
    scheduler.step()
    assert [event.target for event in scheduler.events(second.next_sequence).events] == ["Running", "Succeeded"]
    limited = scheduler.events(second.next_sequence, 1)
    assert len(limited.events) <= 1 and limited.next_sequence == second.next_sequence + 1
    other.close()


def test_snapshot_has_partitions(scheduler):
    scheduler.create_partition("half", memory="50MB")
    scheduler.submit(lambda: None, memory="10MB", partition="half")
    figures = {"memory_used_bytes": 10 << 20, "memory_quota_bytes": 50 << 20, "unfinished_tasks": 1}
    figures |= {"sms": 0, "sm_share": 0.0, "sm_switching": False, "sm_switch_ns": 0}
    figures |= {"kernels_total": 0, "pending_kernels": 0, "transfers_total": 0, "pending_transfers": 0}
    figures |= {"compute_seconds_total": 0.0, "device": 0}
    assert scheduler.snapshot()["partitions"] == {"half": figures}
    assert 'pygpukit_partition_memory_used_bytes{partition="half"} 10485760' in scheduler.prometheus().splitlines()


def test_chrome_trace_has_a_slice_a_phase(scheduler):
    scheduler.submit(lambda: None, name="<b>ends</b>")
    scheduler.step()
    scheduler.submit(lambda: None, name="waits")
    trace = json.loads(scheduler.chrome_trace())["traceEvents"]
    mine = [e for e in trace if e["pid"] == scheduler.core.ordinal]
    slices = [(e["args"]["task"], e["name"]) for e in mine if e["ph"] == "X"]
    ends = [("<b>ends</b>", phase) for phase in ("Admitted", "Running", "Succeeded")]
    assert slices == [*ends, ("waits", "Admitted")]
    assert [e["args"]["name"] for e in mine if e["ph"] == "M"] == ["<b>ends</b>", "waits"]
    first, second, *_ = (e for e in mine if e["ph"] == "X")
    assert first["ts"] + first["dur"] == pytest.approx(second["ts"]) and first["dur"] >= 0


def test_an_open_phase_is_drawn_up_to_now():
    event = TaskEvent(1, 2_000, 7, "a", "Submitted", "Queued", "WaitingForMemory")
    row, drawn = json.loads(chrome_trace([event], 5_000))["traceEvents"]
    assert (drawn["ts"], drawn["dur"], drawn["args"]["reason"]) == (2.0, 3.0, "WaitingForMemory")
    assert row["tid"] == 7 and json.loads(chrome_trace([], 0))["traceEvents"] == []


def test_prometheus_counts_what_is_there(scheduler):
    scheduler.submit(lambda: None, memory="60MB", bandwidth=0.25)
    scheduler.submit(lambda: None, memory="60MB")
    scheduler.submit(lambda: None, memory="200MB")
    before = samples(scheduler.prometheus())
    assert before["pygpukit_tasks_submitted_total",] == 3
    assert before["pygpukit_tasks", "queued"] == before["pygpukit_tasks", "admitted"] == 1
    assert before["pygpukit_tasks_finished_total", "rejected"] == 1
    assert before["pygpukit_reserved_memory_bytes",] == 60 << 20
    assert before["pygpukit_reserved_share_ratio",] == 0.25
    while scheduler.step():
        pass
    after = samples(scheduler.prometheus())
    assert all(after[key] >= value for key, value in before.items() if key[0].endswith("_total"))
    assert after["pygpukit_reserved_memory_bytes",] == 0


def _partition_fields():
    scheduler = Scheduler(total_memory=1, start=False)
    scheduler.create_partition("p")
    return scheduler.snapshot()["partitions"]["p"]


@pytest.mark.parametrize("label", ['a"b', "a\\b", "a\nb", 'a\\"\n', "", "\N{SNOWMAN}"])
def test_labels_are_escaped(label):
    totals = Scheduler(total_memory=1).core.stats()
    figures = dict.fromkeys(_partition_fields(), 0) | {"unfinished_tasks": 3}
    found = samples(prometheus(totals, {label: figures}))
    assert found["pygpukit_partition_unfinished_tasks", label] == 3
