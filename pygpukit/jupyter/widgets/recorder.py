"""RecorderWidget: the microphone of whoever looks at the page, into a ring buffer on the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pygpukit.core.errors import InvalidSpecError
from pygpukit.jupyter.widgets.base import Widget
from pygpukit.ops.audio.buffer import AudioBuffer, from_pcm
from pygpukit.ops.audio.streaming import AudioRingBuffer

MAX_BLOCK_BYTES = 1 << 20
MAX_TEXT_CHARACTERS = 500


class RecorderWidget(Widget):
    """Records when Record is pressed in the page, and the browser lets it: that needs HTTPS or localhost.

    sample_rate: in Hz. seconds: how much is kept; what came first goes first. `.sound` is what is there. Raises
    InvalidSpecError, and RuntimeError when the front-end bundle has not been built.
    """

    module = "recorder.js"

    def __init__(self, sample_rate: int = 16000, seconds: float = 60.0) -> None:
        if not (isinstance(sample_rate, int) and 3000 <= sample_rate <= 192_000 and seconds > 0):
            raise InvalidSpecError(
                f"RecorderWidget: sample_rate is {sample_rate!r} and seconds {seconds!r}; browsers record at 3000 to "
                "192000 Hz, and something has to be kept",
                "sample_rate",
            )
        self.sample_rate = sample_rate
        self.state = "stopped"  # as the page told last: "recording", "stopped", or "refused"
        self.reason = ""  # why it does not record
        self._ring = AudioRingBuffer(int(sample_rate * seconds), sample_rate)
        self._listeners: list[Callable[[AudioBuffer], Any]] = []
        super().__init__()

    @property
    def sound(self) -> AudioBuffer:
        """The recorded sound that is kept, on the device."""
        return AudioBuffer(self._ring.read(self._ring.samples_available), self.sample_rate)

    def on_block(self, listener: Callable[[AudioBuffer], Any]) -> None:
        """Call listener with every block that comes, about twenty a second, on the thread that messages come on."""
        self._listeners.append(listener)

    def clear(self) -> None:
        """Forget what was recorded."""
        self._ring.clear()
        self._send_state()

    def stop(self) -> None:
        """Ask every page to stop."""
        self.tell_page({"type": "stop"})

    def fallback(self) -> dict[str, str]:
        return {"text/html": '<div class="gk-sound">A recorder: run the cell to record.</div>'}

    def still(self) -> dict[str, str]:
        kept = f" of {self._ring.duration_available:.2f} s, which are not saved" if self._ring.samples_available else ""
        return {"text/html": f'<div class="gk-sound">A recorder{kept}: run the cell to record.</div>'}

    def __repr__(self) -> str:
        return f"RecorderWidget({self._ring.duration_available:.2f} s, {self.sample_rate} Hz)"

    def _from_page(self, widget: Any, content: Any, buffers: Any) -> None:
        """Blocks of samples come beside the channel's other messages: as often as the page's clock says."""
        if isinstance(content, dict) and content.get("type") == "samples":
            if not self._take(buffers):
                self.dropped += 1
        else:
            super()._from_page(widget, content, buffers)

    def _take(self, buffers: Any) -> bool:
        data = bytes(buffers[0]) if isinstance(buffers, list) and len(buffers) == 1 else b""
        if not 0 < len(data) <= MAX_BLOCK_BYTES or len(data) % 4:
            return False
        block = from_pcm(np.nan_to_num(np.frombuffer(data, np.float32), posinf=0.0, neginf=0.0), self.sample_rate)
        self._ring.write(block)
        for listener in self._listeners:
            listener(block)
        return True

    def _received(self, content: dict[str, Any]) -> bool:
        kind, text = content.get("type"), content.get("text", "")
        if not isinstance(text, str) or len(text) > MAX_TEXT_CHARACTERS:
            return False
        if kind == "view":
            self._page_looks()
            self._send_state()
            self._send_still(now=True)
        elif kind in ("recording", "stopped", "refused"):
            self.state, self.reason = str(kind), text
            self._send_still(now=True)
        else:
            return False
        return True

    def _send_state(self) -> None:
        self.tell_page({"type": "state", "rate": self.sample_rate, "kept": self._ring.samples_available})
