"""The chat widget's Python side: what it sends to a page, what it takes of one, its transcript, and %%chat."""

from __future__ import annotations

import gc
import json
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hostile import VALUES
from stub_model import StubModel

pytest.importorskip("anywidget")
pytest.importorskip("ipykernel")

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

import pygpukit as gp
from pygpukit.core.errors import GPUError, InvalidSpecError
from pygpukit.jupyter.widgets import ChatWidget

WAIT_S = 60


class Page:
    """Stands for a page that shows a chat."""

    def __init__(self, chat: ChatWidget, monkeypatch: pytest.MonkeyPatch) -> None:
        self.chat = chat
        self.got: list[dict[str, Any]] = []
        monkeypatch.setattr(chat, "send", lambda content, buffers=(): self.got.append(content))

    def say(self, content: Any) -> None:
        self.chat._handle_custom_msg(content, [])

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [one for one in self.got if one["type"] == kind]

    def text(self) -> str:
        return "".join(row[1] for one in self.of("tokens") for row in one["rows"])


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)


@pytest.fixture
def shell() -> Iterator[Any]:
    made = InteractiveShell()
    made.run_line_magic("load_ext", "pygpukit")
    yield made
    made.run_line_magic("unload_ext", "pygpukit")


def test_a_page_asks_and_gets_state_tokens_and_end(monkeypatch: pytest.MonkeyPatch) -> None:
    chat = gp.llm.chat(StubModel())
    page = Page(chat, monkeypatch)
    page.say({"type": "view"})
    assert page.got[0] == {"type": "state", "model": "stub", "system": "", "busy": False, "messages": []}
    page.say({"type": "ask", "text": "one two"})
    assert chat.wait(WAIT_S)
    assert page.text() == "echo 1: onetwo"
    rows = [row for one in page.of("tokens") for row in one["rows"]]
    assert [row[0] for row in rows] == [0, 1, 2]
    assert rows[0][3] == pytest.approx(-0.2877) and rows[0][4][1] == ["else", pytest.approx(-1.3863)]
    (ended,) = page.of("ended")
    assert ended["reason"] == "stop" and ended["figures"]["tokens"] == 3 and ended["figures"]["context"] == 512
    assert [message.role for message in chat.messages] == ["user", "assistant"]


def test_a_new_page_gets_the_conversation_so_far_also_amid_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    model = StubModel(gated=True)
    chat = gp.llm.chat(model)
    page = Page(chat, monkeypatch)
    answer = chat.ask("one two", wait=False)
    model.release(2)
    wait_for(lambda: len(answer.tokens) == 2)
    page.say({"type": "view"})
    state = page.of("state")[-1]
    assert state["busy"] and [row[1] for row in state["messages"][1]["rows"]] == ["echo 1: ", "one"]
    page.say({"type": "stop"})
    assert chat.wait(WAIT_S)
    assert page.of("ended")[0]["reason"] == "cancelled"
    assert model.generations[0].count <= 3


def test_edit_again_choose_system_and_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    chat = gp.llm.chat(StubModel())
    page = Page(chat, monkeypatch)
    chat.ask("a")
    for message in (
        {"type": "system", "text": "be brief"},
        {"type": "edit", "number": 0, "text": "b"},
        {"type": "again", "number": 3},
        {"type": "choose", "number": 0},
    ):
        page.say(message)
        assert chat.wait(WAIT_S)
    assert chat.system == "be brief"
    assert [message.content for message in chat.messages] == ["a", "echo 1: a"]
    assert page.of("state")[-1]["messages"][0]["places"] == [0, 2]
    page.say({"type": "clear"})
    assert chat.messages == [] and chat.dropped == 0


def test_what_cannot_be_done_is_said_to_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    chat = gp.llm.chat(StubModel())
    page = Page(chat, monkeypatch)
    page.say({"type": "edit", "number": 7, "text": "b"})
    page.say({"type": "ask", "text": "  "})
    first, second = (one["text"] for one in page.of("refused"))
    assert "no message 7 of role user" in first and "nothing to ask" in second
    assert chat.messages == []


def test_foreign_messages_do_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    chat = gp.llm.chat(StubModel())
    page = Page(chat, monkeypatch)
    monkeypatch.setattr(chat._allowance, "take", lambda: True)
    for value in VALUES:
        for content in (value, {"type": value}, {"type": "ask", "text": value}, {"type": "edit", "number": value}):
            page.say(content)
            assert chat.wait(WAIT_S)
    assert all(message.role in ("user", "assistant") for message in chat.messages) and chat.dropped > 0


def test_ask_waits_returns_the_answer_and_raises_what_failed() -> None:
    def answer(messages: Any) -> list[str]:
        if messages[-1]["content"] == "fail":
            raise InvalidSpecError("the prompt is 3 tokens too long", "prompt")
        return ["fine"]

    chat = gp.llm.chat(StubModel(answer))
    assert str(chat.ask("go")) == "fine" and not chat.busy
    with pytest.raises(GPUError, match="3 tokens too long"):
        chat.ask("fail")
    assert str(chat.ask("go")) == "fine"


def test_the_transcript_is_markdown() -> None:
    chat = gp.llm.chat(StubModel())
    data, _ = chat._repr_mimebundle_()
    assert "text/markdown" not in data
    chat.ask("a")
    data, _ = chat._repr_mimebundle_()
    assert data["text/markdown"] == "**You:** a\n\n**Model:** echo 1: a"
    assert data["text/plain"] == "ChatWidget('stub')"
    chat.close()


def test_pages_that_look_while_python_asks_hold_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    chat = gp.llm.chat(StubModel())
    page = Page(chat, monkeypatch)
    monkeypatch.setattr(chat._allowance, "take", lambda: True)
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            page.say({"type": "view"})

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    for _ in range(50):
        assert chat.wait(WAIT_S)
        chat.ask("a", wait=False)
        chat._conversation.wait(WAIT_S)
        chat.clear()
    over.set()
    looking.join(WAIT_S)
    assert not looking.is_alive()


def test_a_chat_that_nobody_holds_is_collected() -> None:
    chat = gp.llm.chat(StubModel())
    chat.ask("a")
    chat.close()
    gone = weakref.ref(chat)
    del chat
    gc.collect()
    assert gone() is None


def test_nothing_of_it_runs_on_the_main_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    where = []

    def answer(_messages: Any) -> list[str]:
        where.append(threading.current_thread())
        return ["x"]

    gp.llm.chat(StubModel(answer)).ask("a")
    assert where[0] is not threading.main_thread()


def test_the_magic_asks_a_model_or_a_chat_and_goes_on_with_the_last(shell: Any) -> None:
    model = StubModel()
    shell.user_ns["model"] = model
    with pytest.raises(UsageError, match="needs the name"):
        shell.run_cell_magic("chat", "", "a")
    asked = shell.run_cell_magic("chat", "model", "a\n")
    data, _ = asked._repr_mimebundle_()
    assert data["text/markdown"] == "**You:** a\n\n**Model:** echo 1: a"
    asked = shell.run_cell_magic("chat", "", "b")
    data, _ = asked._repr_mimebundle_()
    assert data["text/markdown"] == "**You:** b\n\n**Model:** echo 3: b"
    assert "application/vnd.jupyter.widget-view+json" in data
    shell.user_ns["talk"] = gp.llm.chat(model, "be brief")
    asked = shell.run_cell_magic("chat", "talk", "c")
    assert repr(asked) == "assistant: echo 2: c"
    for name, cell, words in (("nothing", "a", "not a chat or a model"), ("model", " ", "says nothing")):
        with pytest.raises(UsageError, match=words):
            shell.run_cell_magic("chat", name, cell)


def test_a_token_is_a_message_of_the_same_size_however_long_the_answer_is(monkeypatch: pytest.MonkeyPatch) -> None:
    chat = ChatWidget(StubModel(lambda messages: ["word "] * 4000))
    page = Page(chat, monkeypatch)
    page.say({"type": "view"})
    chat.ask("go on")
    sizes = [len(json.dumps(one)) for one in page.of("tokens")]
    assert len(sizes) == 4000
    assert max(sizes[-100:]) <= max(sizes[100:200]) + 40  # numbers have more digits


def test_stop_ends_an_answer_within_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    model = StubModel(lambda messages: ["word "] * 50, gated=True)
    chat = ChatWidget(model)
    page = Page(chat, monkeypatch)
    page.say({"type": "view"})
    chat.ask("go on", wait=False)
    model.release(5)
    wait_for(lambda: len(page.of("tokens")) == 5)
    page.say({"type": "stop"})
    model.release(50)
    assert chat.wait(WAIT_S)
    assert chat.messages[-1].finish_reason == "cancelled" and len(chat.messages[-1].tokens) <= 6
