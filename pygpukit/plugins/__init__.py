"""Plugins: operations, backends, models and policies of other distributions, by entry points (docs/plugins.md)."""

from __future__ import annotations

import builtins

from pygpukit.core.errors import PluginError
from pygpukit.plugins.check import Report, check
from pygpukit.plugins.entries import GROUPS, Plugin
from pygpukit.plugins.entries import plugins as list
from pygpukit.plugins.operation import Backend, Operation
from pygpukit.plugins.policy import Demand, Policy
from pygpukit.plugins.replace import Replacement, replace, replaceable

__all__ = [
    "GROUPS",
    "Backend",
    "Demand",
    "Operation",
    "Plugin",
    "PluginError",
    "Policy",
    "Replacement",
    "Report",
    "check",
    "list",
    "replace",
    "replaceable",
]


def __dir__() -> builtins.list[str]:
    """The module's public names, without what it imports."""
    return sorted(__all__)
