"""What every dashboard widget shares: its bundle, its end of the telemetry channel, a stable repr.

A widget is a sink of `pygpukit.jupyter.telemetry`: frames come on the sampler's thread, messages of the page on the
main thread or on that of a subshell. Both only read, and send.
"""

from __future__ import annotations

import struct
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import anywidget
import traitlets

from pygpukit import _core
from pygpukit.core.backend import backend
from pygpukit.jupyter import telemetry

STATIC = Path(__file__).parent / "static"
SEQUENCES = struct.Struct("<24xQQ")  # first and next sequence number in a frame's header (docs/seams.md)
HISTORY_RECORDS = 4096  # what a page gets of the past when it begins to look
SNAPSHOT_BLOCKS = 4096  # the largest blocks; more would be more than a page can show


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
    """A live view on the process's event ring. Made by the subclasses; shown by being the value of a cell."""

    module: ClassVar[str]

    _esm = traitlets.Unicode().tag(sync=True)
    _css = traitlets.Unicode().tag(sync=True)

    def __init__(self) -> None:
        opened = backend()
        info = _core.native.device_info(0)
        self.device_label = f"{info['name']}, {opened}"
        self.visible = False
        self.since = 0
        self.since_name = 0
        self._expected_seq = 0
        super().__init__()
        self.on_msg(self._from_page)
        self._keep_reply_route()
        telemetry.add_sink(self)

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
        data, metadata = made
        return {**data, "text/html": self.fallback_html()}, metadata

    def fallback_html(self) -> str:
        """A static picture of the state now, for pages that have no kernel."""
        raise NotImplementedError

    def snapshot_tasks(self) -> list[dict[str, Any]]:
        """Rows of the tasks that this widget knows beyond the ring."""
        return []

    def send_frame(self, frame: bytes) -> None:
        """Send one telemetry frame. Where records are missing before it, the state follows: the page is right again."""
        first, following = SEQUENCES.unpack_from(frame)
        missing, self._expected_seq = first > self._expected_seq, following
        self._tell_page({"type": "frame"}, frame)
        if missing:
            self._tell_page(self.snapshot())

    def snapshot(self) -> dict[str, Any]:
        """The state that a page starts from. Records older than `seq` are contained in it."""
        seq = _core.ring_head()
        blocks = _core.pool_blocks(0)
        if len(blocks) > SNAPSHOT_BLOCKS:
            blocks = sorted(blocks, key=lambda block: block[2], reverse=True)[:SNAPSHOT_BLOCKS]
        return {
            "type": "snapshot",
            "seq": seq,
            "device": self.device_label,
            "blocks": [
                [address, size, block, tenant, name, cell, line, int(resident)]
                for block, address, size, tenant, name, cell, line, resident in blocks
            ],
            "segments": [[address, size] for address, size, mapped in _core.pool_segments(0) if mapped],
            "tasks": self.snapshot_tasks(),
        }

    def close(self) -> None:
        """End the view and its frames."""
        self.visible = False
        if self.comm is not None:  # ipywidgets closes again when the object is collected, where no lock may be taken
            telemetry.remove_sink(self)
        super().close()

    def _from_page(self, _widget: Any, content: Any, _buffers: Any) -> None:
        if not isinstance(content, dict) or content.get("type") != "view":
            return
        if content.get("visible") is not True:
            self.visible = False
            return
        # A page that begins to look may be a new one: it gets the state and the ring's past.
        self._tell_page(self.snapshot())
        frame, self.since, self.since_name = _core.telemetry_frame(0, max(1, _core.ring_head() - HISTORY_RECORDS), 0)
        self._expected_seq = self.since
        self._tell_page({"type": "frame"}, frame)
        self.visible = True
        telemetry.wake()

    def _tell_page(self, content: dict[str, Any], *buffers: bytes) -> None:
        self.send(content, list(buffers))
        self._keep_reply_route()

    def _keep_reply_route(self) -> None:
        """Let the page's messages be answered while a cell runs.

        ipykernel 7.4 sends a comm's messages to the shell that last published on it, which for a sampler thread is the
        busy main shell. Without its note of that shell it keeps to the subshell that the page asked for, as 7.3 does.
        """
        if self.comm is not None:
            self.comm.__dict__.pop("_reply_subshell_id", None)
