"""Policies by name: what starts next, and what becomes of a task that there is no room for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pygpukit as gp
from pygpukit import _core
from pygpukit.scheduler import Scheduler

MakeScheduler = Callable[..., Scheduler]


@pytest.fixture
def make(request: pytest.FixtureRequest) -> MakeScheduler:
    """Schedulers of 100 bytes that nobody starts."""

    def made(**policies: Any) -> Scheduler:
        scheduler = Scheduler(total_memory=100, start=False, **policies)
        request.addfinalizer(scheduler._shut)
        return scheduler

    return made


def order_of(scheduler: Scheduler) -> list[str]:
    """The names of its tasks as step() runs them."""
    return [task.name for task in iter(scheduler.step, None)]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("turns", ["urgent", "a1", "b1", "a2", "b2"]),
        ("fifo", ["urgent", "a1", "a2", "b1", "b2"]),
        ("deadline", ["urgent", "b2", "a2", "a1", "b1"]),
        ("shortest", ["urgent", "b1", "a2", "b2", "a1"]),
    ],
)
def test_an_order_decides_inside_a_priority(make: MakeScheduler, order: str, expected: list[str]) -> None:
    scheduler = make(order=order)
    scheduler.create_partition("b")
    for name, deadline, seconds in (("a1", None, 4000), ("a2", 90_000, 2000), ("b1", None, 1000), ("b2", 80_000, 3000)):
        partition = {"partition": "b"} if name.startswith("b") else {}
        scheduler.submit(int, name=name, deadline=deadline, estimate=seconds, **partition)
    scheduler.submit(int, name="urgent", priority=1)
    assert order_of(scheduler) == expected
    assert all(task.phase == "Succeeded" for task in scheduler.tasks())


@pytest.mark.parametrize(
    ("admission", "phases", "expected"),
    [
        ("in-order", ("Queued", "Queued"), ["first", "big", "small"]),
        ("first-fit", ("Queued", "Admitted"), ["first", "small", "big"]),
        ("at-once", ("Rejected", "Admitted"), ["first", "small"]),
    ],
)
def test_what_becomes_of_a_task_without_room(
    make: MakeScheduler, admission: str, phases: tuple[str, str], expected: list[str]
) -> None:
    scheduler = make(admission=admission)
    scheduler.submit(int, memory=50, name="first")
    big, small = (scheduler.submit(int, memory=n, name=name) for n, name in ((80, "big"), (40, "small")))
    assert (big.record.phase, small.record.phase) == phases
    assert order_of(scheduler) == expected
    if admission == "at-once":
        with pytest.raises(gp.TaskRejectedError, match="MemoryInUse") as refused:
            big.result()
        assert refused.value.detail == {"asked": 80, "available": 50}
        assert scheduler.submit(int, bandwidth=1.0).record.phase == "Admitted"
        assert scheduler.submit(int, bandwidth=0.1).reason == "ShareInUse"


def test_the_defaults_are_the_first_and_the_rest_is_told(make: MakeScheduler) -> None:
    assert _core.SchedulerCore.orders() == ["turns", "fifo", "deadline", "shortest"]
    assert _core.SchedulerCore.admissions() == ["in-order", "first-fit", "at-once"]
    plain, named = make(), make(order="fifo", admission="at-once")
    assert (plain.global_stats()["order"], plain.global_stats()["admission"]) == ("turns", "in-order")
    assert repr(plain).endswith("of 100 bytes reserved)")
    assert repr(named).endswith("of 100 bytes reserved; order fifo; admission at-once)")


@pytest.mark.parametrize(
    ("policies", "field", "words"),
    [
        ({"order": "fifi"}, "order", "did you mean fifo?"),
        ({"order": "deadlines"}, "order", "did you mean deadline?"),
        ({"admission": "First-Fit"}, "admission", "did you mean first-fit?"),
        ({"admission": ""}, "admission", "use 'in-order', 'first-fit', 'at-once'"),
        ({"order": None}, "order", "order=None is unknown; use 'turns'"),
        ({"order": ["turns"]}, "order", "is unknown"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(policies: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(gp.InvalidSpecError) as refused:
        Scheduler(total_memory=100, start=False, **policies)
    assert refused.value.field == field and words in str(refused.value)


def test_the_core_refuses_an_unknown_name_by_itself() -> None:
    for policies in ({"order": "lifo"}, {"admission": "never"}):
        with pytest.raises(gp.InvalidSpecError, match="choose one of"):
            _core.SchedulerCore(100, **policies)
