"""Policies of plugins: what they change of a task, refuse, and do wrong."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from plugins.plugin_files import distribution

import pygpukit as gp

POLICIES = """
from dataclasses import replace
import pygpukit as gp
seen = []
def change(demand):
    seen.append(demand)
    return replace(demand, memory=2**20, bandwidth=0.25, policy="guaranteed", priority=7, name="renamed")
def refuse(demand):
    raise gp.TaskRejectedError(f"{demand.name}: not now", "closed")
CHANGE = gp.plugins.Policy(change)
REFUSE = gp.plugins.Policy(refuse)
FAILS = gp.plugins.Policy(lambda demand: 1 / 0)
NOTHING = gp.plugins.Policy(lambda demand: None)
NUMBER = 3
"""


@pytest.fixture
def scheduler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[gp.scheduler.Scheduler]:
    entries = {name.lower(): f"our_policies:{name}" for name in ("CHANGE", "REFUSE", "FAILS", "NOTHING", "NUMBER")}
    distribution(tmp_path, "our_policies", {"pygpukit.policies": entries}, POLICIES)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "our_policies", raising=False)
    with gp.scheduler.Scheduler(total_memory="1GB") as one:
        yield one


def test_a_policy_changes_what_a_task_asks_for(scheduler: gp.scheduler.Scheduler) -> None:
    task = scheduler.submit(lambda x: x + 1, 41, memory="512MB", bandwidth=0.1, policy="change", deadline=1000.0)
    assert task.result() == 42 and task.name == "renamed"
    stats = scheduler.stats(task.id)
    assert task.policy is gp.scheduler.TaskPolicy.GUARANTEED and stats.priority == 7
    (demand,) = sys.modules["our_policies"].seen
    assert (demand.memory, demand.bandwidth, demand.policy, demand.priority) == (512 * 2**20, 0.1, None, 0)
    assert (demand.deadline, demand.partition, demand.total_memory) == (1000.0, "", 2**30)
    assert demand.available_memory == 2**30


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("refuse", gp.TaskRejectedError, "<lambda>: not now"),
        ("fails", gp.PluginError, "plugin 'fails' .pygpukit.policies. of our_policies 1.0: ZeroDivisionError"),
        ("nothing", gp.PluginError, "gave NoneType; it must give a gp.plugins.Demand"),
        ("number", gp.PluginError, "our_policies:NUMBER is a int; it must be a gp.plugins.Policy"),
        ("nobodys", gp.InvalidSpecError, "policy='nobodys' is unknown"),
    ],
)
def test_what_a_policy_refuses_or_does_wrong_is_raised_and_nothing_is_submitted(
    scheduler: gp.scheduler.Scheduler, name: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        scheduler.submit(lambda: 1, policy=name)
    assert scheduler.task_count == 0
    assert scheduler.submit(lambda: 2).result() == 2


@pytest.mark.parametrize("name", ["guaranteed", "best_effort", "Best-Effort", "burstable"])
def test_a_class_asks_no_plugin(scheduler: gp.scheduler.Scheduler, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pygpukit.plugins.policy.plugin", None)
    demand = {} if name.lower().startswith("best") else {"memory": 2**20, "bandwidth": 0.1}
    assert scheduler.submit(lambda: 3, policy=name, **demand).result() == 3
