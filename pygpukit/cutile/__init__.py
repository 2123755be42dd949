"""cuTile's kernels on arrays: `@ct.kernel` functions, run over NumPy with every access checked (docs/cutile.md)."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "pygpukit.cutile.available": "cutile_available cutile_version get_cutile",
    "pygpukit.cutile.kernel": "Kernel ct launch",
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = ["Kernel", "ct", "cutile_available", "cutile_version", "get_cutile", "launch"]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
