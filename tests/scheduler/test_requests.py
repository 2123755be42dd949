"""Keyword arguments of a submission: which are the scheduler's, which the function's, and what says so."""

from __future__ import annotations

import inspect

import pytest

from pygpukit import _core
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
    }
    assert sorted(given) == sorted(ASKED)
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
