"""Several devices of one host working together: groups of ranks and what they exchange (docs/comm.md)."""

from pygpukit.comm.group import Group
from pygpukit.comm.planning import Plan, plan
from pygpukit.comm.rank import Rank
from pygpukit.core.errors import CollectiveError

__all__ = ["CollectiveError", "Group", "Plan", "Rank", "plan"]


def __dir__() -> list[str]:
    """The module's public names, without what it imports."""
    return sorted(__all__)
