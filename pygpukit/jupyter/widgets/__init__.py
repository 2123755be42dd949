"""Widgets: live views on memory, scheduler, device and cells, and a chat, as anywidgets that need no network."""

from pygpukit.jupyter.widgets.cells import CellsWidget
from pygpukit.jupyter.widgets.chat import ChatWidget
from pygpukit.jupyter.widgets.device import DeviceWidget
from pygpukit.jupyter.widgets.memory import MemoryWidget
from pygpukit.jupyter.widgets.scheduler import SchedulerWidget

__all__ = ["CellsWidget", "ChatWidget", "DeviceWidget", "MemoryWidget", "SchedulerWidget"]
