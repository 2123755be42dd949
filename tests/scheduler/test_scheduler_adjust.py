"""Changes to tasks and partitions under way, from Python: what becomes of them, and that a bad one changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from scheduler_help import Gate, wait_until

from pygpukit.core.errors import InvalidSpecError
from pygpukit.scheduler import Scheduler, adjustments

MB = 1 << 20


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    made = Scheduler(total_memory=100 * MB, workers=2, start=False)
    yield made
    made._shut()


def test_a_task_that_waits_is_served_by_its_new_priority(scheduler: Scheduler) -> None:
    order: list[str] = []
    tasks = {name: scheduler.submit(order.append, name, name=name) for name in "abc"}
    before = adjustments()
    scheduler.set_priority(tasks["c"], 7)
    tasks["b"].priority = 3
    assert (tasks["c"].priority, tasks["b"].priority, tasks["a"].priority) == (7, 3, 0)
    assert adjustments() == before + 2
    while scheduler.step() is not None:
        pass
    assert order == ["c", "b", "a"]


def test_a_task_that_runs_gets_another_share(scheduler: Scheduler) -> None:
    gate = Gate()
    task = scheduler.submit(gate, memory="10MB", bandwidth=0.3, policy="guaranteed")
    scheduler.start()
    assert gate.entered.wait(60)
    scheduler.set_share(task, 0.5)
    assert (task.bandwidth, task.stats()["bandwidth_limit"]) == (0.5, 0.5)
    assert scheduler.global_stats()["reserved_share_ppm"] == 500_000
    task.bandwidth = 0.25
    assert task.record.share_ppm == 250_000
    gate.open.set()
    assert task.result() == "out"
    with pytest.raises(RuntimeError, match="has ended"):
        scheduler.set_share(task, 0.1)
    with pytest.raises(RuntimeError, match="has ended"):
        task.priority = 1


def test_what_is_given_back_lets_one_that_waits_in(scheduler: Scheduler) -> None:
    first = scheduler.submit(lambda: 1, bandwidth=0.9)
    second = scheduler.submit(lambda: 2, bandwidth=0.4)
    assert (first.phase, second.phase, second.reason) == ("Admitted", "Queued", "WaitingForShare")
    scheduler.set_share(first, 0.6)
    assert second.phase == "Admitted"


@pytest.mark.parametrize("bad", [None, True, "5", 1.5, 2**31, float("nan"), []])
def test_what_is_no_priority_is_refused(scheduler: Scheduler, bad: Any) -> None:
    task = scheduler.submit(int)
    with pytest.raises(InvalidSpecError) as caught:
        scheduler.set_priority(task, bad)
    assert caught.value.field == "priority" and task.priority == 0


@pytest.mark.parametrize("bad", [True, "0.5", -0.1, 1.5, float("nan"), float("inf"), 1e-9, []])
def test_what_is_no_share_is_refused(scheduler: Scheduler, bad: Any) -> None:
    task = scheduler.submit(int, bandwidth=0.2)
    with pytest.raises(InvalidSpecError) as caught:
        scheduler.set_share(task, bad)
    assert caught.value.field == "bandwidth" and task.bandwidth == 0.2


def test_a_share_that_is_not_free_is_refused_with_its_numbers(scheduler: Scheduler) -> None:
    task = scheduler.submit(int, bandwidth=0.2)
    scheduler.submit(int, bandwidth=0.7)
    with pytest.raises(InvalidSpecError, match="20 % more of the device, and 10 % is free"):
        scheduler.set_share(task, 0.4)
    with pytest.raises(InvalidSpecError, match="bandwidth_limit"):
        scheduler.set_share(task, 0.2, limit=0.1)
    assert task.bandwidth == 0.2
    with pytest.raises(KeyError, match="no task 'nobody'"):
        scheduler.set_share("nobody", 0.1)


def test_a_partition_keeps_another_share_and_all_else(scheduler: Scheduler) -> None:
    scheduler.create_partition("serving", memory="20MB", bandwidth=0.3, priorities=(0, 4), weight=3)
    task = scheduler.submit(int, bandwidth=0.1, partition="serving")
    scheduler.set_partition_share("serving", 0.5)
    limits = scheduler.partitions.get("serving").limits
    assert (limits.compute_share, limits.memory_quota) == (0.5, 20 * MB)
    assert (limits.priorities, limits.weight) == ((0, 4), 3)
    with pytest.raises(InvalidSpecError, match="priority"):
        scheduler.set_priority(task, 5)
    with pytest.raises(InvalidSpecError):
        scheduler.set_partition_share("serving", 2)
    with pytest.raises(InvalidSpecError, match="there is 'serving'") as unknown:
        scheduler.set_partition_share("training", 0.5)
    assert unknown.value.field == "partition_id"
    assert scheduler.partitions.get("serving").limits.compute_share == 0.5


def test_it_may_be_done_from_a_task_of_the_scheduler(scheduler: Scheduler) -> None:
    gate = Gate()
    held = scheduler.submit(gate, name="held", bandwidth=0.2)
    scheduler.start()
    wait_until(lambda: held.phase == "Running")
    assert scheduler.submit(scheduler.set_share, held, 0.1).result() is None
    assert held.bandwidth == 0.1
    gate.open.set()
