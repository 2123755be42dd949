"""Dashboard widgets: live views on memory, scheduler, device and cells, as anywidgets that need no network."""

from pygpukit.jupyter.widgets.cells import CellsWidget
from pygpukit.jupyter.widgets.device import DeviceWidget
from pygpukit.jupyter.widgets.memory import MemoryWidget
from pygpukit.jupyter.widgets.scheduler import SchedulerWidget

__all__ = ["CellsWidget", "DeviceWidget", "MemoryWidget", "SchedulerWidget"]
