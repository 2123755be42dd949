"""Models: their names, where they come from, and the files they are kept in. Every name is fetched on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pygpukit.models.checkpoint import Checkpoint, open_checkpoint
    from pygpukit.models.fetch import get
    from pygpukit.models.listing import table

__all__ = ["Checkpoint", "get", "open_checkpoint", "table"]

_HOME_OF = {
    "Checkpoint": "checkpoint",
    "get": "fetch",
    "open_checkpoint": "checkpoint",
    "table": "listing",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'pygpukit.models' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"pygpukit.models.{_HOME_OF[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
