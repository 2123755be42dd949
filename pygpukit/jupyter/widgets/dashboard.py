"""The base of dashboards: the frames of its source, its control requests, a picture for pages without a kernel.

A live dashboard is a sink of `pygpukit.telemetry.sampler`: frames come on the sampler's thread.
"""

from __future__ import annotations

import time
from typing import Any

from IPython import get_ipython

from pygpukit.jupyter.widgets.base import STILL_S, Widget
from pygpukit.jupyter.widgets.source import LiveSource, Source
from pygpukit.telemetry import sampler

MAX_ACTION_CHARACTERS = 64
MAX_ARGUMENTS = 16
MAX_ARGUMENT_CHARACTERS = 256


class Dashboard(Widget):
    """A view on a source, which is the process where none is given."""

    def __init__(self, source: Source | None = None) -> None:
        self._source = self.live_source() if source is None else source
        self.device = self._source.place if isinstance(self._source, LiveSource) else 0  # whose frames it gets
        self.visible = False
        self.since = 0
        self.since_name = 0
        self._cells_kept = _cells_run()
        super().__init__()

    def live_source(self) -> LiveSource:
        """The source where none is given."""
        return LiveSource()

    def fallback(self) -> dict[str, str]:
        return {"text/html": self._marked(self.fallback_html())}

    def still(self) -> dict[str, str]:
        return {"text/html": self._marked(self.picture_html())}

    def fallback_html(self) -> str:
        """A static picture of the state now and its table, for pages that have no kernel; equal in equal runs."""
        raise NotImplementedError

    def picture_html(self) -> str:
        """The same for a notebook that is saved while the view is live, which may hold what differs between runs."""
        return self.fallback_html()

    def _marked(self, html: str) -> str:
        """As what a saved notebook may hold another picture of, so that comparisons of outputs can leave it out."""
        return f'<div class="gk-live">{html}</div>' if isinstance(self._source, LiveSource) else html

    def send_frame(self, frame: bytes) -> None:
        """Called by the sampler: send one frame, and what belongs to it."""
        if self.comm is None:  # closed while a page began to look, on two threads
            self.visible = False
        elif isinstance(self._source, LiveSource):
            for content, buffers in self._source.feed.follow(frame):
                self.tell_page(content, *buffers)
            self._send_still()

    def unseen(self) -> None:
        """Called by the sampler while nobody looks: a still of what the cells left that ran since the last one."""
        cells = _cells_run()
        if cells != self._cells_kept and self._send_still():
            self._cells_kept = cells

    def close(self) -> None:
        self.visible = False
        super().close()

    def _opened(self) -> None:
        if isinstance(self._source, LiveSource):
            self._still_due_s = time.monotonic() + STILL_S
            sampler.add_sink(self)  # nothing is sent before it is looked at, but there will be a past to show

    def _closing(self) -> None:
        self._source.left(self)

    def _received(self, content: dict[str, Any]) -> bool:
        kind = content.get("type")
        if kind == "view" and isinstance(content.get("visible"), bool):
            self._view(content["visible"])
        elif kind == "request" and _is_request(content):
            self.tell_page({"type": "answer", **self._source.answer(content)})
        else:
            return False
        return True

    def _view(self, visible: bool) -> None:
        if not visible:
            self.visible = False
            return
        # A page that begins to look may be a new one: it gets the state and the past.
        self.visible = False  # no frame in between
        self._page_looks()
        self._source.looked_at(self)
        self.visible = True
        sampler.wake()


def _cells_run() -> int:
    return int(getattr(get_ipython(), "execution_count", 0))


def _is_request(content: dict[str, Any]) -> bool:
    number, action, args = content.get("id"), content.get("action"), content.get("args")
    return (
        isinstance(number, int)
        and not isinstance(number, bool)
        and isinstance(action, str)
        and len(action) <= MAX_ACTION_CHARACTERS
        and isinstance(args, dict)
        and len(args) <= MAX_ARGUMENTS
        and all(_is_plain(value) for value in args.values())
    )


def _is_plain(value: Any) -> bool:
    """True for what the dashboards' actions take: nothing nested, no long text."""
    if isinstance(value, str):
        return len(value) <= MAX_ARGUMENT_CHARACTERS
    return value is None or isinstance(value, int | float)
