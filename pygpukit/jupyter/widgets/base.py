"""What every dashboard widget shares: its bundle, its end of the page's channel, a stable repr.

A live widget is a sink of `pygpukit.telemetry.sampler`: frames come on the sampler's thread, messages of the page on
the main thread or on that of a subshell. Both only read, and send.
"""

from __future__ import annotations

import math
import time
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import anywidget
import traitlets

from pygpukit.jupyter import comms
from pygpukit.jupyter.allowance import Allowance
from pygpukit.jupyter.widgets import shown
from pygpukit.jupyter.widgets.source import LiveSource, Source
from pygpukit.telemetry import sampler

STATIC = Path(__file__).parent / "static"
MAX_ACTION_CHARACTERS = 64
MAX_ARGUMENTS = 16
MAX_ARGUMENT_CHARACTERS = 256
PICTURE_S = 2.0  # between two pictures for the saved notebook, at least
PICTURE_SHARE = 0.002  # of a core, at most, that they may take


@cache
def bundle(name: str) -> str:
    """The text of a built front-end file, read once. Raises RuntimeError that says how to build it when it is missing.

    Text, because anywidget keeps a watcher, and with it every instance, alive for a path.
    """
    try:
        return (STATIC / name).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise RuntimeError(
            f"the widget bundle {name} is not in {STATIC.name}/: run `python tools/build_frontend.py` in the checkout "
            "(it needs Node.js 20 or newer), or install a built wheel"
        ) from None


class Dashboard(anywidget.AnyWidget):  # type: ignore[misc]
    """A view on a source, which is the process where none is given. Shown by being the value of a cell.

    It is closed when its cell has run again and shows it no more, unless something else shows it; showing it opens it
    again.
    """

    module: ClassVar[str]

    _esm = traitlets.Unicode().tag(sync=True)
    _css = traitlets.Unicode().tag(sync=True)

    def __init__(self, source: Source | None = None) -> None:
        self._source = self.live_source() if source is None else source
        self.visible = False
        self.since = 0
        self.since_name = 0
        self.dropped = 0
        self._allowance = Allowance()
        self._picture = ""
        self._picture_due_s = math.inf
        super().__init__()
        self.on_msg(self._from_page)

    def live_source(self) -> LiveSource:
        """The source where none is given."""
        return LiveSource()

    @traitlets.default("_esm")
    def _default_esm(self) -> str:
        return bundle(self.module)

    @traitlets.default("_css")
    def _default_css(self) -> str:
        return bundle("widgets.css")

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
        made = super()._repr_mimebundle_(**kwargs)
        if made is None:
            return None
        shown.note(self)
        data, metadata = made
        return {**data, "text/html": self._marked(self.fallback_html())}, metadata

    def fallback_html(self) -> str:
        """A static picture of the state now and its table, for pages that have no kernel; equal in equal runs."""
        raise NotImplementedError

    def picture_html(self) -> str:
        """The same for a notebook that is saved while the view is live, which may hold what differs between runs."""
        return self.fallback_html()

    def _marked(self, html: str) -> str:
        """As what a saved notebook may hold another picture of, so that comparisons of outputs can leave it out."""
        return f'<div class="gk-live">{html}</div>' if isinstance(self._source, LiveSource) else html

    @property
    def model_id(self) -> str:
        """The id of the page's model. Whoever asks shows the view: it opens again when it was closed."""
        self.open()
        return str(super().model_id)

    def open(self) -> None:
        """Let the page have its model; nothing happens when it has."""
        if self.comm is None:
            self.layout.open()
            super().open()
            comms.answer_quietly(self.comm, self._handle_msg)
            comms.keep_reply_route(self.comm)
            if isinstance(self._source, LiveSource):
                sampler.add_sink(self)  # nothing is sent before it is looked at, but there will be a past to show

    def send_frame(self, frame: bytes) -> None:
        """Called by the sampler: send one frame, and what belongs to it."""
        if self.comm is None:  # closed while a page began to look, on two threads
            self.visible = False
        elif isinstance(self._source, LiveSource):
            for content, buffers in self._source.feed.follow(frame):
                self.tell_page(content, *buffers)
            self._send_picture()

    def _send_picture(self) -> None:
        """Now and then what a notebook that is saved now shows: the lab extension puts it where the cell's was."""
        began_s = time.monotonic()
        comm = self.comm  # which another thread may close meanwhile
        if began_s < self._picture_due_s or comm is None:
            return
        html = self._marked(self.picture_html())
        if html != self._picture:
            self._picture = html
            self.tell_page({"type": "picture", "model": comm.comm_id, "html": html})
        took_s = time.monotonic() - began_s
        self._picture_due_s = began_s + max(PICTURE_S, took_s / PICTURE_SHARE)

    def close(self) -> None:
        """End the view and its messages."""
        self.visible = False
        if self.comm is not None:  # ipywidgets closes again when the object is collected, where no lock may be taken
            self._source.left(self)
            if not shown.shares_layout(self):
                self.layout.close()
        super().close()
        self.__dict__.pop("_repr_mimebundle_", None)  # None, so that what is closed is not shown; it opens instead

    def tell_page(self, content: dict[str, Any], *buffers: bytes) -> None:
        """Send one message to every page that shows this."""
        self.send(content, list(buffers))

    def _from_page(self, _widget: Any, content: Any, _buffers: Any) -> None:
        """A page's message. What is not of the channel is dropped and counted, see `dropped`."""
        kind = content.get("type") if isinstance(content, dict) and self._allowance.take() else None
        if kind == "view" and isinstance(content.get("visible"), bool):
            self._view(content["visible"])
        elif kind == "request" and _is_request(content):
            self.tell_page({"type": "answer", **self._source.answer(content)})
        else:
            self.dropped += 1

    def _view(self, visible: bool) -> None:
        if not visible:
            self.visible = False
            return
        # A page that begins to look may be a new one: it gets the state and the past.
        self.visible = False  # no frame in between
        self._picture, self._picture_due_s = "", time.monotonic() + PICTURE_S
        self._source.looked_at(self)
        self.visible = True
        sampler.wake()


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
    """What the dashboards' actions take: nothing nested, no long text."""
    if isinstance(value, str):
        return len(value) <= MAX_ARGUMENT_CHARACTERS
    return value is None or isinstance(value, int | float)
