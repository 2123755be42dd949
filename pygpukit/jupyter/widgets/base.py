"""The base of all widgets: its bundle, its end of the page's channel, its life, a static form.

Messages of the page come on the main thread or on that of a subshell.
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

STATIC = Path(__file__).parent / "static"
STILL_S = 2.0  # between two stills for the saved notebook, at least
STILL_SHARE = 0.002  # of a core, at most, that they may take
# By this the lab extension knows an output as a view of ours.
MARK = {"pygpukit": {"view": True}}


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


class Widget(anywidget.AnyWidget):  # type: ignore[misc]
    """A view with a bundle of its own. Shown by being the value of a cell.

    It is closed when its cell has run again and shows it no more, unless something else shows it; showing it opens it
    again.
    """

    module: ClassVar[str]

    _esm = traitlets.Unicode().tag(sync=True)
    _css = traitlets.Unicode().tag(sync=True)

    def __init__(self) -> None:
        self.dropped = 0
        self._allowance = Allowance()
        self._still: dict[str, str] = {}
        self._still_due_s = math.inf
        super().__init__()
        self.on_msg(self._from_page)

    @traitlets.default("_esm")
    def _default_esm(self) -> str:
        return bundle(self.module)

    @traitlets.default("_css")
    def _default_css(self) -> str:
        return bundle("widgets.css")

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
        mimes = super()._repr_mimebundle_(**kwargs)
        if mimes is None:
            return None
        shown.note(self)
        data, metadata = mimes
        return {**data, **self.fallback()}, {**metadata, **MARK}

    def fallback(self) -> dict[str, str]:
        """The static form for pages that have no kernel: HTML or Markdown, by MIME type; equal in equal runs."""
        raise NotImplementedError

    def still(self) -> dict[str, str]:
        """The same for a notebook that is saved while the view is live, which may hold what differs between runs."""
        return self.fallback()

    def _page_looks(self) -> None:
        """A page begins to look, which may be a new one: it has no still."""
        self._still, self._still_due_s = {}, time.monotonic() + STILL_S

    def _send_still(self, now: bool = False) -> bool:
        """Send the form of a notebook that is saved now, now and then, or now: the lab extension puts it into the
        False where it was not its time."""
        began_s = time.monotonic()
        comm = self.comm  # which another thread may close meanwhile
        if comm is None or self._still_due_s == math.inf or (began_s < self._still_due_s and not now):
            return False
        still = self.still()
        if still != self._still:
            self._still = still
            self.tell_page({"type": "still", "model": comm.comm_id, "data": still})
        took_s = time.monotonic() - began_s
        self._still_due_s = began_s + max(STILL_S, took_s / STILL_SHARE)
        return True

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
            self._opened()

    def _opened(self) -> None:
        """A page can see the view from now on."""

    def close(self) -> None:
        """End the view and its messages."""
        if self.comm is not None:  # ipywidgets closes again when the object is collected, where no lock may be taken
            self._closing()
            if not shown.shares_layout(self):
                self.layout.close()
        super().close()
        self.__dict__.pop("_repr_mimebundle_", None)  # None, so that what is closed is not shown; it opens instead

    def _closing(self) -> None:
        """The view ends: let go of what it follows."""

    def tell_page(self, content: dict[str, Any], *buffers: bytes) -> None:
        """Send one message to every page that shows this."""
        self.send(content, list(buffers))

    def _from_page(self, _widget: Any, content: Any, _buffers: Any) -> None:
        """A page's message. What is not of the channel is dropped and counted, see `dropped`."""
        if not (isinstance(content, dict) and self._allowance.take() and self._received(content)):
            self.dropped += 1

    def _received(self, content: dict[str, Any]) -> bool:
        """Do what a message says; False when it is not of the channel."""
        raise NotImplementedError
