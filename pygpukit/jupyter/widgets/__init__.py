"""Widgets: live views on memory, scheduler, device and cells, a chat, sound; as anywidgets that need no network.

widgets.json lists them; each is imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pygpukit.core.extras import require
from pygpukit.jupyter.listed import MODULES

require("lab", "a widget", "anywidget", "ipywidgets")

if TYPE_CHECKING:
    from pygpukit.jupyter.widgets.cells import CellsWidget as CellsWidget
    from pygpukit.jupyter.widgets.chat import ChatWidget as ChatWidget
    from pygpukit.jupyter.widgets.device import DeviceWidget as DeviceWidget
    from pygpukit.jupyter.widgets.links import LinksWidget as LinksWidget
    from pygpukit.jupyter.widgets.memory import MemoryWidget as MemoryWidget
    from pygpukit.jupyter.widgets.player import PlayerWidget as PlayerWidget
    from pygpukit.jupyter.widgets.recorder import RecorderWidget as RecorderWidget
    from pygpukit.jupyter.widgets.scheduler import SchedulerWidget as SchedulerWidget
    from pygpukit.jupyter.widgets.spectrogram import SpectrogramWidget as SpectrogramWidget
    from pygpukit.jupyter.widgets.talk import TalkWidget as TalkWidget
    from pygpukit.jupyter.widgets.timeline import TimelineWidget as TimelineWidget


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(MODULES)
