"""CellsWidget: the per-cell ledger, and a badge on each cell."""

from __future__ import annotations

from pygpukit.jupyter.widgets.dashboard import Dashboard
from pygpukit.jupyter.widgets.fallback import cells_html


class CellsWidget(Dashboard):
    """GPU time, launches, peak, kept and unnamed bytes of each executed cell; needs `%load_ext pygpukit`.

    source: a replay, or None for this process. Raises RuntimeError when the front-end bundle has not been built.
    """

    module = "cells.js"

    def fallback_html(self) -> str:
        return cells_html(self._source.state())
