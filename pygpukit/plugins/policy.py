"""Policy: the demand of a task, changed or refused by a plugin before the scheduler takes it in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pygpukit.core.errors import PluginError, TaskRejectedError
from pygpukit.plugins.entries import plugin


@dataclass(frozen=True)
class Demand:
    """The demand of one submission, and what there is.

    name: of the task. memory: bytes; bandwidth: share of the device, 0 to 1; 0 is none. policy: "guaranteed",
    "burstable", "best_effort", or None where the class follows from the demand. deadline: seconds from now, None for
    none. partition: "" for none. total_memory, available_memory: bytes of the scheduler, and what is not promised.
    """

    name: str
    memory: int
    bandwidth: float
    policy: str | None
    priority: int
    deadline: float | None
    partition: str
    total_memory: int
    available_memory: int


@dataclass(frozen=True)
class Policy:
    """An admission and placement policy: `submit(..., policy="NAME")` asks it.

    decide: takes a Demand and gives the one to submit, by `dataclasses.replace()`; it raises TaskRejectedError to
    refuse. It runs on the submitting thread and must not wait.
    """

    decide: Callable[[Demand], Demand]


def policy(name: str) -> Callable[[Demand], Demand] | None:
    """The decision of a plugin's policy, None where no plugin has the name. Raises PluginError; the decision itself
    raises TaskRejectedError, and PluginError for anything else."""
    one = plugin("pygpukit.policies", name)
    if one is None:
        return None
    value = one.load()
    if not isinstance(value, Policy):
        raise one.error(f"{one.value} is a {type(value).__name__}; it must be a gp.plugins.Policy")

    def decide(demand: Demand) -> Demand:
        try:
            changed = value.decide(demand)
        except (TaskRejectedError, PluginError):
            raise
        except Exception as error:
            raise one.error(f"{type(error).__name__}: {error}") from error
        if not isinstance(changed, Demand):
            raise one.error(f"decide() gave {type(changed).__name__}; it must give a gp.plugins.Demand")
        return changed

    return decide
