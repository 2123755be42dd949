"""The notebook side: magics, dashboards, telemetry and control. Nothing of Jupyter is imported before it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pygpukit.jupyter.widgets import CellsWidget as CellsWidget
    from pygpukit.jupyter.widgets import ChatWidget as ChatWidget
    from pygpukit.jupyter.widgets import DeviceWidget as DeviceWidget
    from pygpukit.jupyter.widgets import LinksWidget as LinksWidget
    from pygpukit.jupyter.widgets import MemoryWidget as MemoryWidget
    from pygpukit.jupyter.widgets import PlayerWidget as PlayerWidget
    from pygpukit.jupyter.widgets import RecorderWidget as RecorderWidget
    from pygpukit.jupyter.widgets import SchedulerWidget as SchedulerWidget
    from pygpukit.jupyter.widgets import SpectrogramWidget as SpectrogramWidget
    from pygpukit.jupyter.widgets import TalkWidget as TalkWidget
    from pygpukit.jupyter.widgets import TimelineWidget as TimelineWidget

__all__ = [
    "CellsWidget",
    "ChatWidget",
    "DeviceWidget",
    "LinksWidget",
    "MemoryWidget",
    "PlayerWidget",
    "RecorderWidget",
    "SchedulerWidget",
    "SpectrogramWidget",
    "TalkWidget",
    "TimelineWidget",
    "load_ipython_extension",
    "unload_ipython_extension",
]


def __getattr__(name: str) -> Any:
    from pygpukit.jupyter.listed import MODULES

    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pygpukit.jupyter import widgets

    return getattr(widgets, name)


def load_ipython_extension(shell: Any) -> None:
    """%load_ext pygpukit.jupyter is %load_ext pygpukit."""
    from pygpukit.jupyter.extension import load_ipython_extension as load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Undo load_ipython_extension()."""
    from pygpukit.jupyter.extension import unload_ipython_extension as unload

    unload(shell)


def __dir__() -> list[str]:
    """The module's public names, without what it imports."""
    return sorted(__all__)
