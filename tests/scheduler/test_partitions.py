"""Partitions, priorities, deadlines and retries of the scheduler from Python."""

from __future__ import annotations

import pytest
from scheduler_help import PATIENCE_S

from pygpukit.core.errors import InvalidSpecError, TaskRejectedError
from pygpukit.scheduler import MB, isolation_levels, partition_limits, processes


def test_a_quota_is_kept_for_its_partition(scheduler):
    scheduler.create_partition("p", memory="40MB", bandwidth=0.5)
    rest = scheduler.submit(int, memory="60MB")
    waits = scheduler.submit(int, memory="1MB")
    kept = scheduler.submit(int, memory="40MB", bandwidth=0.5, partition="p")
    assert (rest.phase, waits.phase, kept.phase) == ("Admitted", "Queued", "Admitted")
    assert (kept.partition, kept.stats().partition, waits.partition) == ("p", "p", "")
    over = scheduler.submit(int, memory="41MB", partition="p")
    assert (over.reason, over.detail) == ("ExceedsPartition", {"asked": 41 * MB, "available": 40 * MB})
    with pytest.raises(InvalidSpecError, match="unfinished") as caught:
        scheduler.partitions.delete_partition("p")
    assert caught.value.field == "partition"
    view = scheduler.partitions.get("p")
    assert (view.usage.memory_used, view.usage.compute_used, view.usage.unfinished_tasks) == (40 * MB, 0.5, 1)
    assert (view.memory_utilization(), view.limits.memory_quota) == (1.0, 40 * MB)
    while scheduler.step():
        pass
    assert scheduler.partitions.get("p").usage.memory_used == scheduler.reserved_memory == 0
    assert scheduler.partitions.delete_partition("p").id == "p" and scheduler.partitions.partition_ids() == []


def test_resizing_rejects_what_can_never_fit(scheduler):
    scheduler.create_partition("p", memory="50MB")
    holds = scheduler.submit(int, memory="40MB", partition="p")
    waits = scheduler.submit(int, memory="30MB", partition="p")
    scheduler.resize_partition("p", memory="20MB")
    assert (holds.phase, waits.phase, waits.reason) == ("Admitted", "Rejected", "ExceedsPartition")
    with pytest.raises(TaskRejectedError, match="ExceedsPartition"):
        waits.result(PATIENCE_S)


@pytest.mark.parametrize(
    ("limits", "field"),
    [
        ({"memory": "lots"}, "memory"),
        ({"memory": "101MB"}, "memory"),
        ({"bandwidth": 1.5}, "bandwidth"),
        ({"lend_memory": "1MB"}, "lend"),
        ({"borrow_bandwidth": -1}, "borrow_bandwidth"),
        ({"priorities": (1, 0)}, "priorities"),
        ({"priorities": 3}, "priorities"),
        ({"weight": 0}, "weight"),
        ({"max_streams": 0}, "max_streams"),
        ({"isolation": "vault"}, "isolation"),
        ({"isolation": "mig"}, "isolation"),
    ],
)
def test_malformed_limits_name_the_field(scheduler, limits, field):
    with pytest.raises(InvalidSpecError) as caught:
        scheduler.create_partition("p", **limits)
    assert caught.value.field == field and scheduler.partitions.partition_ids() == []


def test_quotas_never_add_up_to_more_than_the_device(scheduler):
    scheduler.create_partition("p", memory="60MB", bandwidth=0.7)
    for field, quota in {"memory": "41MB", "bandwidth": 0.31}.items():
        with pytest.raises(InvalidSpecError, match=f"{field}: .* not promised yet") as caught:
            scheduler.create_partition("q", **{field: quota})
        assert caught.value.field == field
    scheduler.create_partition("r", bandwidth=0.3)
    for enlarge in (scheduler.resize_partition, scheduler.set_partition_share):
        with pytest.raises(InvalidSpecError, match="bandwidth: ") as caught:
            enlarge("p", bandwidth=0.71)
        assert caught.value.field == "bandwidth"
    scheduler.delete_partition("r")
    for partition_id in ("p", "", "p" * 300, 3):
        with pytest.raises(InvalidSpecError, match=r"resize it|1 to 256|not a string") as caught:
            scheduler.create_partition(partition_id)
        assert caught.value.field == "partition_id" and str(caught.value).startswith("partition_id")
    with pytest.raises(InvalidSpecError, match="no partition 'q'; there is 'p'"):
        scheduler.resize_partition("q")
    stats = scheduler.partitions.stats()
    assert (stats.partition_count, stats.available_memory) == (1, 40 * MB)
    assert (stats.total_compute_allocated, stats.available_compute) == (0.7, 0.3)


def test_a_band_of_priorities(scheduler):
    scheduler.create_partition("p", priorities=(0, 2))
    task = scheduler.submit(int, priority=3, partition="p")
    assert task.reason == "PriorityNotAllowed"
    with pytest.raises(TaskRejectedError, match="priority 3; partition 'p' allows 0 to 2"):
        task.result(PATIENCE_S)


def test_isolation_is_told_as_it_is():
    levels = isolation_levels()
    assert list(levels) == ["shared", "timesliced", "sm", "process", "mig"]
    assert [name for name, apart in levels.items() if apart["faults"]] == ["timesliced", "process", "mig"]
    assert partition_limits().isolation == "shared"


def test_a_level_that_is_not_there_is_refused_with_those_that_are(scheduler, monkeypatch):
    monkeypatch.setattr(processes, "AVAILABLE", False)
    with pytest.raises(InvalidSpecError, match=r"'timesliced' is not available here; use shared or sm$"):
        scheduler.create_partition("p", isolation="timesliced")


def test_a_higher_priority_takes_the_place_of_what_has_not_started(scheduler):
    ran = []
    low = scheduler.submit(ran.append, "low", memory="80MB")
    high = scheduler.submit(ran.append, "high", memory="50MB", priority=1)
    assert (low.phase, low.detail["preemptions"], high.phase) == ("Queued", 1, "Admitted")
    while scheduler.step():
        pass
    assert ran == ["high", "low"] and low.execution_count == 1


def test_retries_run_the_function_again(scheduler):
    runs = []

    def fails_twice():
        runs.append(len(runs))
        if len(runs) < 3:
            raise OSError("not yet")
        return "at last"

    task = scheduler.submit(fails_twice, retry=2)
    assert task.result(PATIENCE_S) == "at last" and task.execution_count == 3
    assert task.detail["requeues"] == 2
    hopeless = scheduler.submit(lambda: 1 // 0, retry=1)
    with pytest.raises(ZeroDivisionError):
        hopeless.result(PATIENCE_S)
    assert hopeless.execution_count == 2


def test_a_deadline_that_cannot_be_met_is_refused(scheduler):
    late = scheduler.submit(int, deadline=1.0, estimate=2.0)
    assert (late.phase, late.reason) == ("Rejected", "DeadlineUnmeetable")
    assert late.detail["asked"] == 2_000_000_000 > late.detail["available"]
    assert scheduler.submit(lambda: "in time", deadline=60, estimate=2.0).result(PATIENCE_S) == "in time"
