"""A policy: small tasks first, and none that asks for more than half of the device's memory."""

from __future__ import annotations

from dataclasses import replace

import pygpukit as gp

_SMALL = 64 * 2**20


def decide(demand: gp.plugins.Demand) -> gp.plugins.Demand:
    """The demand with the priority of its size."""
    if demand.memory > demand.total_memory // 2:
        raise gp.TaskRejectedError(f"{demand.name} asks for {demand.memory} bytes, more than half", "over_quota")
    return replace(demand, priority=demand.priority + (demand.memory <= _SMALL))


SMALL_FIRST = gp.plugins.Policy(decide)
