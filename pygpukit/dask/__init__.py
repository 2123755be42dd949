"""Devices of one host or many by Dask: arrays travel, a worker a device, map over files, models served (docs/dask.md).

Extra `dask`. Importing this loads nothing of Dask.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "pygpukit.dask.cluster": "cluster",
    "pygpukit.dask.frames": "register",
    "pygpukit.dask.mapping": "map",
    "pygpukit.dask.service": "Service",
    "pygpukit.dask.serving": "serve",
    "pygpukit.dask.ways": "stats",
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = ["Service", "cluster", "map", "register", "serve", "stats"]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pygpukit.core.extras import require

    require("dask", f"pygpukit.dask.{name}", "distributed")
    value = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


def dask_setup(worker: object) -> None:
    """Called by `dask worker --preload pygpukit.dask`: this worker can be sent arrays."""
    from pygpukit.dask.frames import register

    register()
