"""MIG instances that partitions are placed on: which of a card's is taken for one, and how its worker finds it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pygpukit.core.backend import is_sim
from pygpukit.core.child import one_simulated_device
from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.nvml import MigInstance
from pygpukit.core.sharing import device_sharing
from pygpukit.scheduler import units


def choose(asked: str | None, device: int, taken: Collection[str]) -> MigInstance:
    """The instance with the uuid that is asked for, or the first that no partition has.

    Raises InvalidSpecError naming the field where there is none: instances are made by an administrator.
    """
    sharing = device_sharing(device)
    there = {one.uuid: one for one in sharing.instances}
    if not there:
        reason = sharing.reasons.get("instances") or sharing.reasons.get("mig") or f"MIG is {sharing.mig} there"
        remedy = "; ".join(sharing.commands()[:2])
        raise InvalidSpecError(
            f"isolation='mig' needs an instance on device {device}: {reason}. They are made by an administrator"
            + (f": {remedy}" if remedy else ""),
            "isolation",
        )
    free = [uuid for uuid in there if uuid not in taken]
    if asked is None and free:
        return there[free[0]]
    if asked is None:
        raise InvalidSpecError(
            f"isolation='mig': the {len(there)} instances of device {device} have a partition each; delete one",
            "isolation",
        )
    if asked not in there:
        raise InvalidSpecError(f"instance={asked!r} is not there; there is {', '.join(there)}", "instance")
    if asked in taken:
        raise InvalidSpecError(f"instance={asked!r} has a partition; free are {', '.join(free) or 'none'}", "instance")
    return there[asked]


def limits_on(instance: MigInstance, limits: Mapping[str, Any]) -> dict[str, Any]:
    """The limits of its partition: all of the instance where they leave something out. Raises InvalidSpecError."""
    whole = {"memory": instance.memory_bytes, "bandwidth": 1.0}
    asked = {**whole, **{name: value for name, value in limits.items() if value is not None}}
    memory, there = units.parse_memory(asked["memory"]), instance.memory_bytes
    if there is not None and memory > there:
        raise InvalidSpecError(f"memory={asked['memory']!r}; instance {instance.uuid} has {there} bytes", "memory")
    return asked


def environment(instance: MigInstance) -> dict[str, str]:
    """The variables by which a process has the instance as its device 0."""
    simulated = one_simulated_device(instance.memory_bytes or 0) if is_sim() else {}
    return {**simulated, "CUDA_VISIBLE_DEVICES": instance.uuid}
