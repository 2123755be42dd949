"""Dashboard widgets: live views on memory and scheduler, as anywidgets that need no network."""

from pygpukit.jupyter.widgets.memory import MemoryWidget
from pygpukit.jupyter.widgets.scheduler import SchedulerWidget

__all__ = ["MemoryWidget", "SchedulerWidget"]
