"""Push to talk, the Python side: blocks while the button is held, the turn as it comes, stops, foreign messages."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from hostile import VALUES
from pipeline.scripted import Kokoro, Whisper, chat, silence, speech

pytest.importorskip("anywidget")

import pygpukit as gp
from pygpukit.core.errors import InvalidSpecError
from pygpukit.jupyter import TalkWidget
from pygpukit.jupyter.widgets.talk import NOTHING, SHORT
from pygpukit.pipeline import VoicePipelineCallback

RATE, BLOCK = 16000, 800


class Page:
    """Stands for a page that shows the widget."""

    def __init__(self, widget: TalkWidget, monkeypatch: pytest.MonkeyPatch) -> None:
        self.widget = widget
        self.got: list[tuple[dict[str, Any], list[bytes]]] = []
        monkeypatch.setattr(widget, "send", lambda content, buffers=(): self.got.append((content, list(buffers))))

    def say(self, content: Any, *buffers: Any) -> None:
        self.widget._handle_custom_msg(content, list(buffers))

    def ask(self, sound: np.ndarray[Any, Any], number: int, wait: bool = True) -> None:
        self.say({"type": "press"})
        for at in range(0, sound.size, BLOCK):
            self.say({"type": "samples"}, memoryview(sound[at : at + BLOCK].tobytes()))
        self.say({"type": "release", "id": number})
        if wait:
            self.widget.wait(60)

    def state(self) -> dict[str, Any]:
        return next(content for content, _ in reversed(self.got) if content["type"] == "state")

    def sound(self, number: int) -> np.ndarray[Any, Any]:
        parts = [
            (content["at"], np.frombuffer(buffers[0], np.float32))
            for content, buffers in self.got
            if content["type"] == "sound" and content["id"] == number
        ]
        assert [at for at, _ in parts] == np.cumsum([0, *(part.size for _, part in parts)])[:-1].tolist()
        return np.concatenate([part for _, part in parts]) if parts else np.zeros(0, np.float32)


def voice(whisper: Any, llm: Any = None, tts: Any = None, **settings: Any) -> gp.pipeline.VoicePipeline:
    return gp.pipeline.VoicePipeline(whisper, llm or chat(), tts or Kokoro(), **settings)


def said(heard: str, answer: str, interrupted: bool = False) -> dict[str, Any]:
    return {"heard": heard, "answer": answer, "interrupted": interrupted}


def test_what_is_spoken_while_it_is_held_is_heard_answered_and_spoken(monkeypatch: pytest.MonkeyPatch) -> None:
    whisper = Whisper("hello", "again")
    page = Page(TalkWidget(voice(whisper)), monkeypatch)
    page.say({"type": "view"})
    assert page.got[0][0] == {"type": "state", "rate": RATE, "busy": False, "note": "", "turns": []}
    question = silence(0.3)  # a detector would hear nothing: the button says when somebody speaks
    page.ask(question, 5)
    np.testing.assert_array_equal(whisper.heard[0], question)
    told = [content for content, _ in page.got if content["type"] == "turn"]
    assert [(one["busy"], one["turn"]) for one in told[:2]] == [(True, None), (True, said("hello", ""))]
    assert told[-1]["turn"] == said("hello", "One two. Three?") and told[-1]["number"] == 0
    assert page.state() == {
        "type": "state", "rate": RATE, "busy": False, "note": "", "turns": [said("hello", "One two. Three?")]
    }  # fmt: skip
    assert page.sound(5).tolist() == [0.0] * 100 + [1.0] * 100 + [0.0] * 100
    page.ask(speech(0.4), 6)
    assert page.state()["turns"] == [said("hello", "One two. Three?"), said("again", "One two. Three?")]
    assert page.sound(6).size == 300 and repr(page.widget) == "TalkWidget(2 turns)"


def test_a_new_press_and_the_button_stop_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, going = threading.Event(), threading.Event()

    def before(text: str) -> None:
        if text == "Three?":
            begun.set()
            assert going.wait(60)

    page = Page(TalkWidget(voice(Whisper("one", "two"), tts=Kokoro(before))), monkeypatch)
    for number, act in ((1, {"type": "press"}), (2, {"type": "stop"})):
        page.ask(speech(0.5), number, wait=False)
        assert begun.wait(60)
        page.say(act)
        going.set()
        page.widget.wait(60)
        begun.clear()
        going.clear()
    assert page.state()["turns"] == [said("one", "One two.", True), said("two", "One two.", True)]
    assert page.sound(1).size == page.sound(2).size == 200
    assert page.state()["note"] == "" and not page.state()["busy"]


def test_too_short_nothing_understood_and_failures_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    page = Page(TalkWidget(voice(Whisper("", OSError("no disk"), "fine"))), monkeypatch)
    page.ask(speech(0.1), 1)
    assert page.got[-1][0] == {"type": "turn", "number": 0, "busy": False, "note": SHORT, "turn": None}
    page.ask(speech(0.5), 2)
    assert page.state()["note"] == NOTHING and page.widget.error is None
    page.ask(speech(0.5), 3)
    assert page.state()["note"] == "It failed: OSError: no disk" and isinstance(page.widget.error, OSError)
    page.ask(speech(0.5), 4)
    assert (page.state()["note"], page.state()["turns"][0]["heard"], page.widget.error) == ("", "fine", None)


def test_a_missing_microphone_is_known_and_a_long_question_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pygpukit.jupyter.widgets.talk.MAX_QUESTION_S", 1.0)
    whisper = Whisper("long")
    page = Page(TalkWidget(voice(whisper)), monkeypatch)
    page.say({"type": "refused", "text": "There is no microphone."})
    assert page.widget.reason == "There is no microphone."
    page.ask(speech(2.0), 1)
    assert whisper.heard[0].size == RATE and page.widget.dropped == RATE // BLOCK


def test_foreign_messages_do_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    widget = TalkWidget(voice(Whisper()))
    page = Page(widget, monkeypatch)
    monkeypatch.setattr(widget._allowance, "take", lambda: True)
    for value in VALUES:
        for content in (value, {"type": value}, {"type": "refused", "text": value}, {"type": "release", "id": value}):
            page.say(content)
    for data in (b"", b"abc", bytes((1 << 20) + 4)):
        page.say({"type": "samples"}, memoryview(data))
    widget.wait(60)
    assert widget.dropped > 0 and widget.pipeline.conversation_history == []


def test_the_static_form_has_the_turns_and_no_markup_of_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    widget = TalkWidget(voice(Whisper("<b>bold</b>"), chat("A & B.")))
    assert "run the cell to talk" in widget.fallback()["text/html"]
    Page(widget, monkeypatch).ask(speech(0.5), 1)
    shown = widget.fallback()["text/html"]
    assert "You: &lt;b&gt;bold&lt;/b&gt;" in shown and "Answer: A &amp; B." in shown


def test_a_callback_of_somebody_else_is_refused_and_a_cell_may_run_again() -> None:
    class Mine(VoicePipelineCallback):
        """Somebody's own."""

    with pytest.raises(InvalidSpecError, match="the pipeline has a callback"):
        TalkWidget(voice(Whisper(), callback=Mine()))
    pipeline = voice(Whisper())
    TalkWidget(pipeline)
    TalkWidget(pipeline).close()
