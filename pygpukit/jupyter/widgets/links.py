"""LinksWidget: what is between the devices, and the bytes a second that this process moves over it."""

from __future__ import annotations

from pygpukit.jupyter.widgets.dashboard import Dashboard
from pygpukit.jupyter.widgets.fallback import links_html
from pygpukit.jupyter.widgets.source import LiveSource
from pygpukit.telemetry.rows import link_rows


class LinksWidget(Dashboard):
    """The links between all devices as a matrix: kind, rate of the wire, bytes a second now and bytes moved so far.

    Show it as the value of a cell. Raises RuntimeError when the front-end bundle has not been built.
    """

    module = "links.js"

    def live_source(self) -> LiveSource:
        return LiveSource(links=True)

    def fallback_html(self) -> str:
        return links_html(self._source.state().label, link_rows())
