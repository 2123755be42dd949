"""TalkWidget: push to talk. Hold a button in the page and speak; what was heard and the answer come back."""

from __future__ import annotations

import threading
import time
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.text import escape
from pygpukit.jupyter.widgets.base import Widget
from pygpukit.jupyter.widgets.player import CHUNK_BYTES, PUSHED_BURST, PUSHED_BYTES_PER_S
from pygpukit.jupyter.widgets.recorder import MAX_BLOCK_BYTES, MAX_TEXT_CHARACTERS
from pygpukit.pipeline.turns import ConversationTurn, VoicePipelineCallback

if TYPE_CHECKING:
    from pygpukit.pipeline.voice import VoicePipeline

MAX_QUESTION_S = 60.0  # what is spoken beyond it is left out
MIN_QUESTION_S = 0.2
SHORT = "That was too short: hold the button while you speak."
NOTHING = "Nothing was understood."


class TalkWidget(Widget):
    """A conversation by voice: the button, or its space key, is held to speak; pressing it stops the answer.

    pipeline: a VoicePipeline without a callback of its own: the widget is told of the conversation. Its detector is not
    asked: the button says when somebody speaks. The answer is heard in the page that asked; it is computed on a thread,
    and `error` is what it failed with last, or None. Raises InvalidSpecError, and RuntimeError when the front-end
    bundle has not been built.
    """

    module = "talk.js"

    def __init__(self, pipeline: VoicePipeline) -> None:
        # The newest of several widgets is told.
        if type(pipeline.callback) not in (VoicePipelineCallback, _PageCallback):
            raise InvalidSpecError(
                "TalkWidget: the pipeline has a callback, but the widget is told of the conversation; make it without",
                "pipeline",
            )
        self.pipeline = pipeline
        self.error: Exception | None = None
        self.reason = ""  # why the page does not record, as it told last
        self._question: list[np.ndarray[Any, Any]] = []
        self._sending = threading.RLock()
        self._answering = threading.Lock()  # one answer after the other
        self._busy_with: int | None = None  # the page's number of the newest question, until it is answered
        self._coming: ConversationTurn | None = None
        self._stopped = False
        self._left, self._left_at = PUSHED_BURST, 0.0
        self._threads: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
        pipeline.callback = _PageCallback(self)
        pipeline.start_listening()
        super().__init__()

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait for the answers that are coming, each at most so long."""
        for thread in list(self._threads):
            thread.join(timeout_s)

    def fallback(self) -> dict[str, str]:
        turns = self.pipeline.conversation_history
        if not turns:
            return {"text/html": '<div class="gk-sound">A conversation by voice: run the cell to talk.</div>'}
        rows = "".join(
            f"<li><p>You: {escape(turn.user_text)}</p><p>Answer: {escape(turn.assistant_text or '...')}"
            f"{' (interrupted)' if turn.was_interrupted else ''}</p></li>"
            for turn in turns
        )
        return {"text/html": f'<ol class="gk-sound">{rows}</ol>'}

    def __repr__(self) -> str:
        count = len(self.pipeline.conversation_history)
        return f"TalkWidget({count} turn{'' if count == 1 else 's'})"

    def _closing(self) -> None:
        self.pipeline.interrupt()

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
        if sum(block.size for block in self._question) >= MAX_QUESTION_S * self._rate:
            return False
        self._question.append(np.nan_to_num(np.frombuffer(data, np.float32), posinf=0.0, neginf=0.0))
        return True

    def _received(self, content: dict[str, Any]) -> bool:
        kind, text, number = content.get("type"), content.get("text", ""), content.get("id")
        if kind == "view":
            self._page_looks()
            self._send_state()
        elif kind == "press":
            self._question = []
            self.pipeline.interrupt()
        elif kind == "release" and isinstance(number, int) and not isinstance(number, bool):
            self._ask(number)
        elif kind == "stop":
            self.pipeline.interrupt()
        elif kind == "refused" and isinstance(text, str) and len(text) <= MAX_TEXT_CHARACTERS:
            self.reason = text
        else:
            return False
        return True

    @property
    def _rate(self) -> int:
        return self.pipeline.sample_rate

    def _ask(self, number: int) -> None:
        question, self._question = self._question, []
        sound = np.concatenate(question) if question else np.zeros(0, np.float32)
        if sound.size < MIN_QUESTION_S * self._rate:
            self._send_turn(SHORT)
            return
        self._busy_with = number
        self._send_turn()
        thread = threading.Thread(target=self._answer, args=(number, sound), name="pygpukit-talk", daemon=True)
        self._threads.add(thread)
        thread.start()

    def _answer(self, number: int, sound: np.ndarray[Any, Any]) -> None:
        sentences = self.pipeline.hear(sound)  # at once: it stops the answer that is coming
        with self._answering:
            at, note = 0, ""
            before = len(self.pipeline.conversation_history)
            self.error, self._stopped = None, False
            try:
                for samples in sentences:
                    self._speak(number, at, samples)
                    at += samples.size
            except Exception as error:
                self.error, note = error, f"It failed: {type(error).__name__}: {error}"[:MAX_TEXT_CHARACTERS]
            if not note and not self._stopped and len(self.pipeline.conversation_history) == before:
                note = NOTHING
            self._coming = None
            if self._busy_with == number:
                self._busy_with = None
            self._send_state(note)

    def _speak(self, number: int, at: int, samples: np.ndarray[Any, Any]) -> None:
        """A sentence for the page, no faster than Jupyter's server lets through."""
        for begin in range(0, samples.size, CHUNK_BYTES // 4):
            part = np.ascontiguousarray(samples[begin : begin + CHUNK_BYTES // 4], np.float32)
            now = time.monotonic()
            self._left = min(PUSHED_BURST, self._left + (now - self._left_at) * PUSHED_BYTES_PER_S) - part.nbytes
            self._left_at = now
            time.sleep(max(0.0, -self._left / PUSHED_BYTES_PER_S))
            if self._stopped:
                return
            message = {"type": "sound", "id": number, "rate": self.pipeline.tts.sample_rate, "at": at + begin}
            self.tell_page(message, part.tobytes())

    def _send_turn(self, note: str = "") -> None:
        """Send the page what changed of the turn that is coming."""
        with self._sending:
            number, turn = len(self.pipeline.conversation_history), self._coming
            message = {"type": "turn", "number": number, "busy": self._busy_with is not None, "note": note}
            self.tell_page({**message, "turn": None if turn is None else _row(turn)})

    def _send_state(self, note: str = "") -> None:
        with self._sending:
            turns = [_row(turn) for turn in self.pipeline.conversation_history]
            coming = [] if self._coming is None else [_row(self._coming)]
            message = {"type": "state", "rate": self._rate, "busy": self._busy_with is not None, "note": note}
            self.tell_page({**message, "turns": [*turns, *coming]})
            self._send_still(now=True)


class _PageCallback(VoicePipelineCallback):
    """Shows the turn as it comes. It keeps no widget that nobody holds."""

    def __init__(self, widget: TalkWidget) -> None:
        self._widget = weakref.ref(widget)

    def on_transcription_complete(self, text: str) -> None:
        widget = self._widget()
        if widget is not None and text:
            widget._coming = ConversationTurn(user_text=text)
            widget._send_turn()

    def on_generation_token(self, token: str) -> None:
        widget = self._widget()
        if widget is not None and widget._coming is not None:
            widget._coming.assistant_text += token
            widget._send_turn()

    def on_interruption(self) -> None:
        widget = self._widget()
        if widget is not None:
            widget._stopped = True


def _row(turn: ConversationTurn) -> dict[str, Any]:
    return {"heard": turn.user_text, "answer": turn.assistant_text.strip(), "interrupted": turn.was_interrupted}
