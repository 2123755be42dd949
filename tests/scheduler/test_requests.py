"""Keyword arguments of a submission: which are the scheduler's, which the function's, and what says so."""

from __future__ import annotations

import inspect

import pytest

import pygpukit as gp
from pygpukit import _core
from pygpukit._core import native
from pygpukit.core.errors import InvalidSpecError
from pygpukit.scheduler import Scheduler, request

PARAMETERS = inspect.signature(Scheduler.submit).parameters
ASKED = [name for name, parameter in PARAMETERS.items() if parameter.kind is inspect.Parameter.KEYWORD_ONLY]


def test_the_signature_tells_every_option_and_the_core_takes_it():
    taken = inspect.signature(_core.SchedulerCore.submit).parameters
    assert set(ASKED) == set(request._OPTIONS) | {"memory", "bandwidth"}
    assert set(taken) - {"self"} == {field for field, _ in request._OPTIONS.values()} | {"memory_bytes", "share_ppm"}
    assert next(iter(inspect.signature(Scheduler(total_memory="1MB").submit).parameters)) == "fn"


def test_the_function_gets_what_is_not_the_schedulers(scheduler):
    given = {
        "memory": "2KB",
        "bandwidth": 0.2,
        "policy": "burstable",
        "priority": 3,
        "depends_on": scheduler.submit(int, task_id="first"),
        "deadline": 1000.0,
        "task_id": "second",
        "name": "named",
        "partition": "p",
        "retry": 2,
        "idempotent": True,
        "memory_limit": "3KB",
        "bandwidth_limit": 0.3,
        "estimate": 0.5,
        "device": 0,
    }
    assert sorted([*given, "devices"]) == sorted(ASKED)
    scheduler.create_partition("p", memory="1MB", bandwidth=0.5)
    task = scheduler.submit(lambda *args, **kwargs: (args, kwargs), 1, 2, x=3, memories=4, **given)
    record = task.record
    assert (record.id, record.name, record.partition, record.priority) == ("second", "named", "p", 3)
    assert (record.memory_bytes, record.memory_limit, record.policy) == (2048, 3072, "Burstable")
    assert (record.share_ppm, record.share_limit_ppm, record.deadline_ns > 0) == (200_000, 300_000, True)
    assert task.reason == "WaitingForDependency"
    scheduler.step()
    scheduler.step()
    assert task.result(0) == ((1, 2), {"x": 3, "memories": 4})


def test_a_default_that_is_said_is_as_one_left_out(scheduler):
    defaults = {name: PARAMETERS[name].default for name in ASKED}
    said, left_out = scheduler.submit(int, **defaults).record, scheduler.submit(int).record
    fields = ("name", "phase", "memory_bytes", "share_ppm", "memory_limit", "share_limit_ppm", "partition", "policy")
    for field in (*fields, "priority", "deadline_ns"):
        assert getattr(said, field) == getattr(left_out, field)
    with pytest.raises(InvalidSpecError, match="priority=None"):
        scheduler.submit(int, priority=None)


def test_ids_that_nobody_named_are_numbered(scheduler):
    made = [scheduler.submit(int).id for _ in range(12)]
    prefix = made[0].removesuffix("1")
    assert made == [f"{prefix}{number}" for number in range(1, 13)]
    assert not Scheduler(total_memory="1MB").submit(int).id.startswith(prefix)


def test_the_documented_positions_of_a_function_without_arguments() -> None:
    class Work:
        def run(self) -> str:
            return "ran"

    with Scheduler(total_memory="1GB") as scheduler:
        for fn in (lambda: "ran", Work().run):
            with pytest.warns(DeprecationWarning, match="give memory=, bandwidth= and policy= by name"):
                task = scheduler.submit(fn, 1 << 20, 0.2, "guaranteed")
            assert (task.memory, task.bandwidth, task.policy.name) == (1 << 20, 0.2, "GUARANTEED")
            assert task.result(60) == "ran"
        with pytest.warns(DeprecationWarning):
            task = scheduler.submit(lambda: 3, "2MB", priority=4)
        assert (task.memory, task.bandwidth, task.priority, task.result(60)) == (2 << 20, 0.0, 4, 3)
        with pytest.raises(TypeError, match="takes no arguments by position, and 4 were given"):
            scheduler.submit(lambda: 3, 1, 0.1, "burstable", 5)
        with pytest.raises(TypeError, match="policy is given by position and by name"):
            scheduler.submit(lambda: 3, 1, 0.1, "burstable", policy="burstable")
        for names in ({"memory": 5}, {"bandwidth": 0.1}):
            with pytest.raises(TypeError, match=f"{next(iter(names))} is given by position and by name"):
                scheduler.submit(lambda: 3, 1, 0.1, **names)
        assert not [task for task in scheduler.tasks() if task.phase not in ("Succeeded", "Running", "Admitted")]
        # Functions that take something by position have what is given.
        assert scheduler.submit(lambda *args: args, 1, 0.5).result(60) == (1, 0.5)
        assert scheduler.submit(lambda a, b=2: (a, b), 1).result(60) == (1, 2)


def test_statistics_tell_the_place_in_line_and_what_was_evicted(backend_name: str) -> None:
    scheduler = Scheduler(total_memory=1 << 20, start=False)
    tasks = [scheduler.submit(lambda: None, memory=1 << 20, name=f"in line {i}") for i in range(3)]
    assert [task.stats().queue_position for task in tasks] == [0, 1, 2]
    with scheduler:
        for task in tasks:
            task.result(60)
    assert [task.stats().queue_position for task in tasks] == [0, 0, 0]

    def work() -> None:
        x = gp.ones(1 << 16)
        native.synchronize()
        _core.pool_evict(0, x.block)
        assert x.sum().item() == 1 << 16

    with Scheduler() as scheduler:
        task = scheduler.submit(work, name="one that was evicted")
        task.result(60)
    figures = task.stats()
    assert figures.evicted_bytes == figures.restored_bytes >= 4 << 16
    assert tasks[0].stats().evicted_bytes == 0
