"""Live dashboards: `gp.dashboard.memory()`, `scheduler()`, `device()`, `links()`, `cells()`; `record(path)`,
`replay(path)`; and `timeline(profile)`.

Nothing of Jupyter is imported before a widget is asked for; recording and reading traces need none of it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pygpukit.core.device import DeviceLike, index_of
from pygpukit.telemetry.recorder import Recorder
from pygpukit.telemetry.trace import TraceError

if TYPE_CHECKING:
    from pygpukit.dashboard.player import Replay
    from pygpukit.jupyter.widgets import (
        CellsWidget,
        DeviceWidget,
        LinksWidget,
        MemoryWidget,
        SchedulerWidget,
        TimelineWidget,
    )
    from pygpukit.jupyter.widgets.scheduler import HasTasks
    from pygpukit.profiling import Profile

__all__ = ["Recorder", "TraceError", "cells", "device", "links", "memory", "record", "replay", "scheduler", "timeline"]


def memory(device: DeviceLike = 0) -> MemoryWidget:
    """Live memory of a device: blocks by address and owner, used and reserved bytes, evictions, peaks by cell.

    Show it as the value of a cell; those of several devices side by side are several widgets. Raises
    DeviceMismatchError for an unknown device, RuntimeError when the front-end bundle has not been built.
    """
    from pygpukit.jupyter.widgets import MemoryWidget

    return MemoryWidget(device=index_of(device, "memory"))


def scheduler(scheduler: HasTasks | None = None) -> SchedulerWidget:
    """Live tasks of `scheduler`, or of every one: Gantt, shares, latencies, log, controls.

    Raises TypeError for what has no tasks(), RuntimeError when the front-end bundle has not been built.
    """
    from pygpukit.jupyter.widgets import SchedulerWidget

    return SchedulerWidget(scheduler)


def device(device: DeviceLike = 0) -> DeviceWidget:
    """The numbers that NVML reports of a device, about once a second; where there is no NVML, each field says so.

    Raises DeviceMismatchError for an unknown device, RuntimeError when the front-end bundle has not been built.
    """
    from pygpukit.jupyter.widgets import DeviceWidget

    return DeviceWidget(device=index_of(device, "device"))


def links() -> LinksWidget:
    """The links between the devices as a matrix: kind, rate of the wire, bytes a second now, bytes moved so far.

    Raises RuntimeError when the front-end bundle has not been built.
    """
    from pygpukit.jupyter.widgets import LinksWidget

    return LinksWidget()


def cells() -> CellsWidget:
    """GPU time, launches, peak, kept and unnamed bytes of each executed cell, also as a badge on the cell."""
    from pygpukit.jupyter.widgets import CellsWidget

    return CellsWidget()


def timeline(profile: Profile | None = None) -> TimelineWidget:
    """A profile's works over time: zoom, search, rows by stream or tenant, sums of a selection, and what the device
    waited for.

    profile: of gp.profiling.profile(), whose block has ended; None = the one that ended last, and each that ends from
    then on. Raises InvalidSpecError for anything else, RuntimeError when the front-end bundle has not been built.
    """
    from pygpukit.jupyter.widgets import TimelineWidget

    return TimelineWidget(profile)


def record(path: str | os.PathLike[str]) -> Recorder:
    """Record telemetry to a new file until `stop()`, or for a `with` block. Works on any backend.

    Raises FileExistsError where the file exists already, and OSError where it cannot be written.
    """
    return Recorder(path)


def replay(path: str | os.PathLike[str], speed: float = 1.0) -> Replay:
    """A recorded trace as a source of views: `replay(path).memory()`. Needs no GPU and changes nothing of this process.

    speed: trace seconds in a second, above 0; inf shows the end at once. The same trace gives the same messages in the
    same order each time. Raises TraceError for a file that is no trace, is cut off, or has another version, ValueError
    for a speed, OSError for a file that cannot be read.
    """
    from pygpukit.dashboard.player import Replay

    return Replay(path, speed)


def __dir__() -> list[str]:
    """The module's public names, without what it imports."""
    return sorted(__all__)
