"""Conversations with a stub model: answers, branches, stopping, failures; and the same in a terminal."""

from __future__ import annotations

import io
import threading
from typing import Any

import pytest
from llm import tiny
from stub_model import StubModel

from pygpukit.core.errors import InvalidSpecError
from pygpukit.llm import terminal, warming
from pygpukit.llm.conversation import Conversation
from pygpukit.llm.generation import Figures
from pygpukit.llm.message import Message

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
    assert told[0] == ("changed", "") and told[-1] == ("ended", "")
    assert [text for event, text in told if event == "token"] == ["echo 1: ", "one", "two"]
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
    assert answer.question == "a" and chat.messages == []


def test_a_failure_amid_an_answer_keeps_what_came() -> None:
    def fail(_messages: Any) -> Any:
        yield "one"
        raise InvalidSpecError("the device is gone", "prompt")

    class Failing(StubModel):
        def chat(self, messages: Any, max_new_tokens: int | None = None, **settings: Any) -> Any:
            made = super().chat(messages, max_new_tokens, **settings)
            made._words = enumerate(fail(messages))
            return made

    chat = Conversation(Failing())
    answer = chat.ask("a")
    done(chat)
    assert answer.content == "one" and "the device is gone" in answer.error
    assert said(chat) == [("user", "a"), ("assistant", "one")]


class Small(StubModel):
    """A model with a context of 40 words, that counts two more a message."""

    context = 40

    def prompt_tokens(self, messages: Any) -> int:
        return sum(len(one["content"].split()) + 2 for one in messages)

    def chat(self, messages: Any, max_new_tokens: int | None = None, **settings: Any) -> Any:
        if self.prompt_tokens(messages) >= self.context:
            raise InvalidSpecError("the prompt does not fit", "prompt")
        return super().chat(messages, max_new_tokens, **settings)


def test_a_question_that_is_too_long_is_taken_out_and_later_ones_are_answered() -> None:
    for rule in ("shift", "stop"):
        chat = Conversation(Small(), context=rule)  # type: ignore[arg-type]
        for text, kept in (("fine", 2), ("long " * 60, 2), ("also fine", 4)):
            answer = chat.ask(text)
            done(chat)
            assert len(chat.messages) == kept
            assert bool(answer.error) == text.startswith("long")
            assert answer.question == text
        chat.edit(0, "long " * 60)
        done(chat)
        assert said(chat)[0] == ("user", "fine") and len(chat.messages) == 4


def test_a_full_context_leaves_out_the_oldest_turns_whole_and_says_so() -> None:
    model = Small(lambda _messages: ["four ", "words ", "each ", "time"])
    chat = Conversation(model, "be brief")
    notes = []
    for number in range(12):
        answer = chat.ask(f"question {number} is this")
        done(chat)
        assert not answer.error
        notes.append(answer.note)
        asked = model.asked[-1]
        assert asked[0] == {"role": "system", "content": "be brief"} and asked[1]["role"] == "user"
        assert asked[-1]["content"] == f"question {number} is this"
        assert model.prompt_tokens(asked) + 10 <= 40  # room for an answer: a quarter of the context
    assert notes[0] == "" and "The 4 oldest messages no longer fit into the context of 40 tokens" in notes[2]
    # What was left out stays so: an answer after it begins alike, and leaves out no more.
    assert notes[3] == "" and len(model.asked[3]) == len(model.asked[2]) + 2
    assert len(chat.messages) == 24 and notes[2] in chat.markdown()


def test_a_full_context_stops_where_that_is_asked_for_until_turns_are_deleted() -> None:
    chat = Conversation(Small(lambda _messages: ["four ", "words ", "each ", "time"]), context="stop")
    for text in ("a b c d", "e f g h", "i j k l"):
        assert not chat.ask(text).error
        done(chat)
    answer = chat.ask("m n o p")
    done(chat)
    assert "the context is full" in answer.error and len(chat.messages) == 6
    chat.delete(0)
    answer = chat.ask("m n o p")
    done(chat)
    assert not answer.error and len(chat.messages) == 6
    with pytest.raises(InvalidSpecError, match="context='drop'"):
        Conversation(Small(), context="drop")  # type: ignore[arg-type]


def test_an_answer_that_meets_the_end_of_the_context_says_so() -> None:
    def ended(reason: str, new: int) -> str:
        figures = Figures(10, 0, new, 16, 0, 0.1, 0.1)
        return Message(1, "assistant", 0, finish_reason=reason, figures=figures).ended

    assert ended("length", 6) == "Cut where the context of 16 tokens ended."
    assert ended("length", 5) == "Cut at its greatest length."
    assert ended("cancelled", 5) == "Stopped." and ended("stop", 6) == ""


def test_a_deleted_turn_takes_its_answers_along_and_leaves_what_follows() -> None:
    chat = Conversation(StubModel())
    for text in ("a", "b", "c"):
        chat.ask(text)
        done(chat)
    chat.regenerate(chat.messages[3].number)
    done(chat)
    chat.choose(chat.messages[2].number)  # the branch with c lies on the other answer
    chat.choose(4)
    chat.delete(chat.messages[3].number)  # that of the answer, with its question
    assert [content for _, content in said(chat)] == ["a", "echo 1: a", "c", "echo 5: c"]
    chat.delete(4)
    assert [content for _, content in said(chat)] == ["a", "echo 1: a"]
    chat.delete(0)
    assert chat.messages == []
    with pytest.raises(InvalidSpecError, match="no message 0"):
        chat.delete(0)
    chat.ask("d")
    done(chat)
    assert said(chat) == [("user", "d"), ("assistant", "echo 1: d")]


def test_again_samples_with_another_seed_each_time() -> None:
    model = StubModel()
    chat = Conversation(model, top=3)
    chat.ask("a")
    done(chat)
    assert model.settings == {"top": 3}
    seeds = []
    for _ in range(3):
        chat.regenerate()
        done(chat)
        seeds.append(model.settings["seed"])
        assert model.settings["temperature"] > 0 and model.settings["top"] == 3
    assert len(set(seeds)) == 3
    own = Conversation(model, temperature=0.3, seed=100)
    own.ask("a")
    done(own)
    own.regenerate()
    done(own)
    assert (model.settings["temperature"], model.settings["seed"]) == (0.3, 101)
    own.regenerate(temperature=0.0)
    done(own)
    assert model.settings["temperature"] == 0.0


def test_settings_change_from_the_next_answer_on_or_not_at_all() -> None:
    model = tiny.model("llama", context=16)
    chat = Conversation(model)
    with pytest.raises(InvalidSpecError, match="top_p"):
        chat.set(temperature=0.5, top_p=7)
    assert chat.settings == {}
    chat.set(8, temperature=0.5)
    assert (chat.max_new_tokens, chat.settings) == (8, {"temperature": 0.5})
    chat.set(temperature=None)
    assert (chat.max_new_tokens, chat.settings) == (None, {})


def test_a_terminal_gets_nothing_to_obey() -> None:
    hostile = ["\x1b]52;c;aGk=\x07", "\x1b]0;title\x07", "\x1b[2J", "\u202egnp", "\x9b31m", "a\rb", "\u2066"]
    out = talk(["hello", "/system \x1b[2Jbe brief"], StubModel(lambda _messages: ["?\x1b[2J", *hostile]))
    assert not set(out) & set("\x1b\x07\x9b\r\u202e\u2066") and r"\x1b]52;c;aGk=\x07" in out
    chat = Conversation(StubModel(lambda _messages: hostile))
    answer = chat.ask("\x1b[2J")
    done(chat)
    for text in (repr(answer), repr(chat.messages[0]), chat.markdown()):
        assert not set(text) & set("\x1b\x07\x9b\r\u202e\u2066")


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


def test_a_model_whose_first_answer_has_begun_is_not_got_ready_beside_it() -> None:
    """A page shows the chat just after a cell has asked: what gets the model ready would take the answer's place."""
    entered, go_on = threading.Event(), threading.Event()

    def answer(messages: Any) -> list[str]:
        entered.set()
        assert go_on.wait(WAIT_S)
        return ["fine"]

    model = Small(answer)
    conversation = Conversation(model)
    conversation.ask("a")
    assert entered.wait(WAIT_S)
    conversation.warm_up()
    warming.wait(model, lambda: go_on.set() or False)
    go_on.set()
    done(conversation)
    assert [messages[-1]["content"] for messages in model.asked] == ["a"]
    Conversation(other := Small(lambda messages: ["b"])).warm_up()  # of one that nobody asked, it is
    warming.wait(other, lambda: False)
    assert [messages[-1]["content"] for messages in other.asked] == ["Hello"]
