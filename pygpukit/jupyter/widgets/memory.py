"""MemoryWidget: live device memory, by pool, over time, by address and by owner."""

from __future__ import annotations

from pygpukit.jupyter.widgets.dashboard import Dashboard
from pygpukit.jupyter.widgets.fallback import memory_html
from pygpukit.jupyter.widgets.source import LiveSource, Source


class MemoryWidget(Dashboard):
    """Live memory of a device: used, reserved and limit in bytes, the last minutes, every block by address and owner.

    source: a replay, or None for this process. device: its number there. Show it as the value of a cell; it goes on
    while other cells run. Raises RuntimeError when the front-end bundle has not been built.
    """

    module = "memory.js"

    def __init__(self, source: Source | None = None, *, device: int = 0) -> None:
        self._place = device
        super().__init__(source)

    def live_source(self) -> LiveSource:
        return LiveSource(place=self._place)

    def fallback_html(self) -> str:
        return memory_html(self._source.state())
