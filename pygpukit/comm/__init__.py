"""Several devices of one host working together: groups of ranks and what they exchange (docs/comm.md)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pygpukit.comm.group import Group
from pygpukit.comm.planning import Plan, plan
from pygpukit.comm.rank import Rank
from pygpukit.core.errors import CollectiveError

if TYPE_CHECKING:
    from pygpukit.comm.processes.group import ProcessGroup as ProcessGroup

__all__ = ["CollectiveError", "Group", "Plan", "ProcessGroup", "Rank", "plan"]


def __getattr__(name: str) -> Any:
    if name != "ProcessGroup":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = import_module("pygpukit.comm.processes.group").ProcessGroup  # a layer above this one
    return value


def __dir__() -> list[str]:
    """The module's public names, without what it imports."""
    return sorted(__all__)
