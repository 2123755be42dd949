"""MemoryWidget: live device memory, by pool, over time, by address and by owner."""

from __future__ import annotations

from pygpukit import _core
from pygpukit.jupyter.widgets.base import Dashboard
from pygpukit.jupyter.widgets.fallback import memory_html


class MemoryWidget(Dashboard):
    """Live memory of device 0: used, reserved and limit in bytes, the last minute, every block by address and owner.

    Takes no arguments. Show it as the value of a cell; it goes on while other cells run. Raises RuntimeError when the
    front-end bundle has not been built.
    """

    module = "memory.js"

    def fallback_html(self) -> str:
        return memory_html(self.device_label, _core.pool_stats(0), _core.pool_segments(0), _core.pool_blocks(0))
