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
    assert page.got[0] == {
        "type": "state",
        "model": "stub",
        "system": "",
        "busy": False,
        "messages": [],
        "settings": {"max_new_tokens": None, "temperature": None, "top_p": None},
        "chats": ["New chat"],
        "chat": 0,
    }
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


class Small(StubModel):
    """A model with a context of 40 words that says what it was asked."""

    context = 40

    def prompt_tokens(self, messages: Any) -> int:
        return sum(len(one["content"].split()) + 2 for one in messages)


def test_a_refused_question_goes_back_to_the_page_that_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    chat = gp.llm.chat(Small())
    page = Page(chat, monkeypatch)
    page.say({"type": "ask", "text": "fine"})
    assert chat.wait(WAIT_S)
    long = "long " * 60
    page.say({"type": "ask", "text": long})
    assert chat.wait(WAIT_S)
    (refused,) = page.of("refused")
    assert refused["question"] == long and "too long" in refused["text"]
    assert [row.get("text") for row in page.of("state")[-1]["messages"]] == ["fine", None] and not page.of("state")[-1][
        "busy"
    ]
    with pytest.raises(GPUError, match="too long"):  # from Python: it is told there, and the page's box stays as it is
        chat.ask(long)
    assert page.of("refused")[-1]["question"] == ""
    assert str(chat.ask("again"))


def test_what_is_done_until_the_first_token_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    chat = gp.llm.chat(Small())
    page = Page(chat, monkeypatch)
    chat.ask("one two three")
    assert [one["stage"] for one in page.of("stage")] == ["Getting ready", "Reading 3 tokens"]
    kinds = [one["type"] for one in page.got]
    assert max(at for at, kind in enumerate(kinds) if kind == "stage") < kinds.index("tokens")


def test_the_first_answers_load_begins_when_a_page_shows_the_chat(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Small(gated=True)
    chat = gp.llm.chat(model, "be brief")
    assert model.asked == []
    page = Page(chat, monkeypatch)
    for _ in range(3):
        page.say({"type": "view"})
    wait_for(lambda: len(model.asked) == 1)
    assert model.asked[0][0] == {"role": "system", "content": "be brief"} and chat.messages == []
    page.say({"type": "ask", "text": "a question"})
    wait_for(lambda: "Getting the model ready" in [one["stage"] for one in page.of("stage")])
    assert len(model.asked) == 1  # the question waits for it
    model.release(100)
    assert chat.wait(WAIT_S)
    assert [asked[-1]["content"] for asked in model.asked] == ["Hello", "a question"]
    assert page.text().startswith("echo 2")


def test_a_page_deletes_turns_sets_what_counts_from_now_on_and_has_several_chats(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = StubModel()
    chat = gp.llm.chat(model, seed=1)
    page = Page(chat, monkeypatch)
    for text in ("a", "b"):
        chat.ask(text)
    page.say({"type": "delete", "number": 0})
    assert [message.content for message in chat.messages] == ["b", "echo 3: b"]
    page.say({"type": "settings", "settings": {"max_new_tokens": 9, "temperature": 0.5, "top_p": None}})
    assert page.of("state")[-1]["settings"] == {"max_new_tokens": 9, "temperature": 0.5, "top_p": None}
    page.say({"type": "new"})
    page.say({"type": "new"})  # one that is new stays the one that is new
    assert page.of("state")[-1]["chats"] == ["b", "New chat"] and page.of("state")[-1]["chat"] == 1
    chat.ask("c")
    assert model.settings == {"seed": 1, "top": 5, "temperature": 0.5} and len(model.asked[-1]) == 1
    page.say({"type": "go", "number": 0})
    assert [message.content for message in chat.messages] == ["b", "echo 3: b"] and chat.chats == ["b", "c"]
    for wrong in ({"type": "go", "number": 7}, {"type": "settings", "settings": {"seed": 3}}, {"type": "settings"}):
        page.say(wrong)
    assert len(page.of("refused")) == 3 and chat.dropped == 0


def test_what_a_saved_notebook_shows_follows_the_conversation(monkeypatch: pytest.MonkeyPatch) -> None:
    chat = gp.llm.chat(StubModel(lambda _messages: ["<img src=x onerror=hit()> ", "![x](http://a/b)"]))
    page = Page(chat, monkeypatch)
    page.say({"type": "view"})
    page.say({"type": "ask", "text": "<b>"})
    assert chat.wait(WAIT_S)
    still = page.of("still")[-1]
    assert still["model"] == chat.model_id
    expected = "**You:** &lt;b>\n\n**Model:** &lt;img src=x onerror=hit()> !&#91;x](http://a/b)"
    assert still["data"] == {"text/markdown": expected} == chat.fallback()
    data, metadata = chat._repr_mimebundle_()
    assert data["text/markdown"] == expected and metadata["pygpukit"] == {"view": True}


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
    assert data["text/markdown"] == "*A chat with stub: run the cell to talk.*"
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
    with pytest.raises(UsageError, match="has no chat and no model"):
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


def test_the_magic_puts_values_in_the_place_of_names(shell: Any) -> None:
    model = StubModel()
    shell.user_ns |= {"model": model, "n": 3, "x": gp.ones(5), "text": "{n}"}
    asked = {
        "{n} of {x.shape}": "3 of (5,)",
        "{text} {{n}} {unknown} { n } {n": "{n} {n} {unknown} { n } {n",
        "for (;;) { f(); } {}": "for (;;) { f(); } {}",
    }
    for cell, text in asked.items():
        shell.run_cell_magic("chat", "model", cell)
        assert model.asked[-1][-1]["content"] == text
    shell.run_cell_magic("chat", "--plain", "{n}")
    assert model.asked[-1][-1]["content"] == "{n}"
    before = len(model.asked)
    with pytest.raises(UsageError, match=r"\{n.shape\}: .*no attribute"):
        shell.run_cell_magic("chat", "", "{n.shape}")
    assert len(model.asked) == before


def test_the_magic_asks_in_a_chat_of_its_own(shell: Any) -> None:
    model = StubModel()
    shell.user_ns["talk"] = talk = gp.llm.chat(model, "be brief", temperature=0.5)
    for line in ("--new", "talk --new --plain", "--new talk"):
        talk.ask("before")
        before = len(talk.messages)
        shell.run_cell_magic("chat", line, "{n} first")
        assert [one["content"] for one in model.asked[-1]] == ["be brief", "{n} first"]
        assert len(talk.messages) == before and shell.user_ns["talk"] is talk
    asked = shell.run_cell_magic("chat", "", "second")  # goes on with that one
    assert [one["content"] for one in model.asked[-1]][1::2] == ["{n} first", "second"]
    assert asked._view is not talk and asked._view._conversation.settings["temperature"] == 0.5


def test_the_magic_alone_takes_the_chat_that_is_there(shell: Any) -> None:
    with pytest.raises(
        UsageError, match=r'no chat and no model yet.*chat = gp.llm.chat\("qwen2.5-coder-0.5b-instruct"\)'
    ):
        shell.run_cell_magic("chat", "", "a")
    shell.user_ns["talk"] = gp.llm.chat(StubModel(), "be brief")
    assert repr(shell.run_cell_magic("chat", "", "a")) == "assistant: echo 2: a"


def test_the_magic_shows_its_view_while_it_comes_and_once_in_the_end(
    shell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pygpukit.jupyter import chat as magic

    told: list[Any] = []
    monkeypatch.setattr(magic, "display", lambda data, raw: told.append(sorted(data)))
    monkeypatch.setattr(magic, "clear_output", lambda wait: told.append("cleared"))
    monkeypatch.setattr(type(shell), "kernel", object(), raising=False)
    shell.user_ns["model"] = StubModel()
    asked = shell.run_cell_magic("chat", "model", "a <b>")
    assert told == [["application/vnd.jupyter.widget-view+json"], "cleared"]
    data, metadata = asked._repr_mimebundle_()
    assert data["text/markdown"].startswith("**You:** a &lt;b>") and metadata["pygpukit"] == {"view": True}


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
