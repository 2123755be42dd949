"""Conversations with a stub model: answers, branches, stopping, failures; and the same in a terminal."""

from __future__ import annotations

import io
import threading
from typing import Any

import pytest
from llm import tiny
from stub_model import StubModel

from pygpukit.core.errors import InvalidSpecError
from pygpukit.llm import terminal
from pygpukit.llm.conversation import Conversation

WAIT_S = 60


def done(conversation: Conversation) -> None:
    assert conversation.wait(WAIT_S)


def said(conversation: Conversation) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in conversation.messages]


def test_an_answer_comes_token_by_token_on_another_thread() -> None:
    told: list[tuple[str, str]] = []
    threads = set()

    def hear(event: str, message: Any, token: Any) -> None:
        told.append((event, token.text if token else ""))
        if event == "token":
            threads.add(threading.current_thread())

    chat = Conversation(StubModel(), told=hear)
    answer = chat.ask("one two")
    done(chat)
    assert told == [("changed", ""), ("token", "echo 1: "), ("token", "one"), ("token", "two"), ("ended", "")]
    assert threading.current_thread() not in threads
    assert answer.content == "echo 1: onetwo" and answer.finish_reason == "stop"
    assert answer.figures is not None and answer.figures.new_tokens == 3


def test_the_model_gets_the_system_prompt_and_what_was_said_before() -> None:
    model = StubModel()
    chat = Conversation(model, "be brief", top=3)
    chat.ask("a")
    done(chat)
    chat.ask("b")
    done(chat)
    assert model.asked[1] == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "echo 2: a"},
        {"role": "user", "content": "b"},
    ]
    assert model.settings == {"top": 3}


def test_edits_and_new_answers_are_branches_that_can_be_gone_back_to() -> None:
    chat = Conversation(StubModel())
    for text in ("a", "b"):
        chat.ask(text)
        done(chat)
    first = said(chat)
    chat.edit(0, "c")
    done(chat)
    assert said(chat) == [("user", "c"), ("assistant", "echo 1: c")]
    assert [one.content for one in chat.siblings(chat.messages[0])] == ["a", "c"]
    again = chat.regenerate()
    done(chat)
    assert len(chat.siblings(again)) == 2
    chat.choose(0)
    assert said(chat) == first
    chat.clear()
    assert chat.messages == []


def test_stop_ends_an_answer_within_one_step_and_keeps_what_came() -> None:
    model = StubModel(gated=True)
    came = threading.Event()
    chat = Conversation(model, told=lambda event, _message, _token: came.set() if event == "token" else None)
    answer = chat.ask("a b c")
    model.release()
    assert came.wait(WAIT_S)
    with pytest.raises(InvalidSpecError, match="still coming"):
        chat.ask("more")
    chat.stop()
    done(chat)
    assert answer.content == "echo 1: " and answer.finish_reason == "cancelled"
    assert model.generations[0].count == 1 and model.generations[0].closed
    chat.stop()  # of nothing


def test_a_stop_before_the_model_began_counts() -> None:
    model = StubModel(gated=True)
    chat = Conversation(model)
    answer = chat.ask("a")
    chat.stop()
    done(chat)
    assert answer.finish_reason == "cancelled" and answer.content == ""


def test_what_fails_is_said_in_the_answer() -> None:
    def fail(_messages: Any) -> list[str]:
        raise InvalidSpecError("the prompt is 3 tokens too long", "prompt")

    chat = Conversation(StubModel(fail))
    answer = chat.ask("a")
    done(chat)
    assert answer.finish_reason == "failed" and "3 tokens too long" in answer.error and not chat.busy
    assert "3 tokens too long" in chat.markdown()


@pytest.mark.parametrize("number", [-1, 1, 7, True, None, "0"])
def test_edits_of_what_is_no_question_are_refused(number: Any) -> None:
    chat = Conversation(StubModel())
    chat.ask("a")
    done(chat)
    before = said(chat)
    with pytest.raises(InvalidSpecError):
        chat.edit(number, "b")
    with pytest.raises(InvalidSpecError, match="empty"):
        chat.ask(" ")
    assert said(chat) == before


def test_what_a_model_would_refuse_is_refused_before_anything_is_asked() -> None:
    for wrong in (3, None, object()):
        with pytest.raises(TypeError, match=r"model=.* has no chat\(\)"):
            Conversation(wrong)  # type: ignore[arg-type]
    model = tiny.model("llama", context=16)
    settings: list[tuple[str, Any]] = [("temprature", 1), ("max_new_tokens", "x"), ("top_k", 1.5), ("stop", 3)]
    for name, value in settings:
        with pytest.raises(InvalidSpecError, match=name):
            Conversation(model, **{name: value})
    with pytest.raises(TypeError, match="system=3; give text"):
        Conversation(model, 3)  # type: ignore[arg-type]
    chat = Conversation(StubModel(), "be brief")
    with pytest.raises(TypeError, match="text=3; give text"):
        chat.ask(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="system=None; give text"):
        chat.system = None  # type: ignore[assignment]
    assert chat.system == "be brief" and said(chat) == [] and not chat.busy


def test_the_transcript_is_the_same_for_the_same_conversation() -> None:
    transcripts = set()
    for _ in range(2):
        chat = Conversation(StubModel(), "be brief")
        chat.ask("a")
        done(chat)
        transcripts.add(chat.markdown())
    assert transcripts == {"*System: be brief*\n\n**You:** a\n\n**Model:** echo 2: a"}


def talk(lines: list[str], model: StubModel) -> str:
    out, left = io.StringIO(), iter(lines)

    def ask(_prompt: str) -> str:
        line = next(left, None)
        if line is None:
            raise EOFError
        return line

    terminal.talk(model, ask=ask, out=out)
    return out.getvalue()


def test_the_terminal_streams_and_knows_its_commands() -> None:
    model = StubModel()
    out = talk(["hello", "/system be brief", "there", "/clear", "again", "/nope", ""], model)
    assert "echo 1: hello\n[2 tokens" in out and "echo 4: there" in out and "echo 2: again" in out
    assert "System prompt: be brief" in out and "There is no command /nope" in out
    assert [len(asked) for asked in model.asked] == [1, 4, 2]


def test_ctrl_c_stops_the_answer_and_not_the_conversation(monkeypatch: pytest.MonkeyPatch) -> None:
    model = StubModel(gated=True)
    interrupted = threading.Event()
    wait = threading.Event.wait

    def interrupt(event: threading.Event, timeout: float | None = None) -> bool:
        if threading.current_thread() is threading.main_thread() and model.generations and not interrupted.is_set():
            interrupted.set()
            raise KeyboardInterrupt
        return wait(event, timeout)

    answers = iter([lambda: "one two", lambda: (model.release(9), "three")[1]])
    monkeypatch.setattr(threading.Event, "wait", interrupt)
    out = io.StringIO()

    def ask(_prompt: str) -> str:
        following = next(answers, None)
        if following is None:
            raise EOFError
        return following()

    # The first question's answer waits for tokens that never come, until it is interrupted.
    original = Conversation.wait

    def wait_for_model(self: Conversation, timeout_s: float | None = None) -> bool:
        while not model.generations:
            pass
        return original(self, timeout_s)

    monkeypatch.setattr(Conversation, "wait", wait_for_model)
    terminal.talk(model, ask=ask, out=out)
    assert "[stopped" in out.getvalue() and "three" in out.getvalue()
