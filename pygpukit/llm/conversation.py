"""Conversation: messages with a model; answers come on a thread of their own, edits fork, nothing said is lost."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, Literal, Protocol, TypeAlias

from pygpukit.core import doing
from pygpukit.core.errors import InvalidSpecError
from pygpukit.llm import warming
from pygpukit.llm.fitting import ContextRule, check_rule, fit
from pygpukit.llm.generating import Generating
from pygpukit.llm.generation import Figures, Token
from pygpukit.llm.message import Message
from pygpukit.llm.tree import Mark, Tree

Event: TypeAlias = Literal["changed", "stage", "token", "ended", "refused"]
# A regenerate of what is greedy by default chooses among probable tokens.
AGAIN = {"temperature": 0.8, "top_p": 0.95, "min_p": 0.05}


class Chats(Protocol):
    """The interface of a model that a conversation uses: CausalTransformerModel has it."""

    name: str

    def chat(self, messages: Any, max_new_tokens: int | None = None, **settings: Any) -> Any: ...


class Conversation:
    """Messages with a model. ask(), edit() and regenerate() begin an answer and return its message at once; wait()
    waits for it. told(event, message, token) is called of what happens, on the thread on which it does.

    settings: those of model.chat(), greedy by default. context: what happens when the context is full. "shift": the
    oldest turns are left out, whole, so that the rest takes half of the context; the system prompt stays, and `note` of
    the answer says so. "stop": the question is refused. A question that is refused, or whose answer fails before its
    first token, is taken out again; `error` of the answer says why. Safe from several threads; one answer at a time.
    Raises TypeError for what is no model or no text, InvalidSpecError naming a setting that model.chat() would refuse.
    """

    def __init__(
        self,
        model: Chats,
        system: str = "",
        max_new_tokens: int | None = None,
        told: Callable[[Event, Message | None, Token | None], None] | None = None,
        context: ContextRule = "shift",
        **settings: Any,
    ) -> None:
        if not callable(getattr(model, "chat", None)):
            raise TypeError(f"model={model!r} has no chat(); give what gp.llm.load() gives")
        self.model, self.context_rule = model, check_rule(context)
        self._check(max_new_tokens, settings)
        self.max_new_tokens, self.settings = max_new_tokens, settings
        self._system = _text(system, "system")
        self._session = copy_context()  # answers run in the session that the conversation was made in
        self._notify = told or (lambda _event, _message, _token: None)
        self._tree = Tree()
        self._lock = threading.RLock()
        self._generation: Any = None
        self._stopping = False
        self._idle = threading.Event()
        self._idle.set()

    @property
    def messages(self) -> list[Message]:
        """The conversation from its beginning, on the branch that is chosen."""
        with self._lock:
            return self._tree.path()

    @property
    def system(self) -> str:
        """The system prompt, "" for the model's own; what is set counts from the next answer on."""
        return self._system

    @system.setter
    def system(self, text: str) -> None:
        self._system = _text(text, "system")
        self._notify("changed", None, None)

    @property
    def busy(self) -> bool:
        """True if an answer is coming."""
        return not self._idle.is_set()

    def set(self, max_new_tokens: int | None = None, **settings: Any) -> None:
        """Other settings from the next answer on: these beside those of before, None for the model's own.

        Raises InvalidSpecError naming one that model.chat() would refuse; then none is changed.
        """
        new = {name: value for name, value in {**self.settings, **settings}.items() if value is not None}
        self._check(max_new_tokens, new)
        self.max_new_tokens, self.settings = max_new_tokens, new
        self._notify("changed", None, None)

    def siblings(self, message: Message) -> list[Message]:
        """The message and what was said in its place on other branches, oldest first."""
        with self._lock:
            return self._tree.siblings(message)

    def warm_up(self) -> None:
        """Begin what the model's first answer waits for, on a thread of its own; nothing when it was begun before."""
        warming.begin(self.model, self._system, self.settings, self._session.copy().run)

    def ask(self, text: str) -> Message:
        """Say something and begin its answer. Raises InvalidSpecError for no text, or while an answer is coming."""
        return self._begin(lambda: self._say(text, self._tree.head))

    def edit(self, number: int, text: str) -> Message:
        """Say it otherwise, on a branch of its own, and begin the answer; number is that of a message of the user."""
        return self._begin(lambda: self._say(text, self._tree.of(number, "user").parent))

    def regenerate(self, number: int | None = None, **settings: Any) -> Message:
        """Begin another answer in the place of one, by default the last; the other stays as a branch.

        It is sampled, also where the conversation is greedy, with a seed of its own: that of the conversation and how
        many answers were there before. settings are for this answer.
        """

        def place() -> int | None:
            if number is None and self._tree.head is None:
                raise InvalidSpecError("there is no answer yet: ask something first", "number")
            return self._tree.of(self._tree.head if number is None else number, "assistant").parent

        return self._begin(place, again=settings)

    def choose(self, number: int) -> None:
        """Go to the branch of a message, and on it to what was said last."""
        with self._lock:
            self._must_be_idle()
            self._tree.choose(number)
        self._notify("changed", None, None)

    def delete(self, number: int) -> None:
        """Take out a turn: the question of this number, or of the answer of this number, with its answers.

        What was said after it stays. Raises InvalidSpecError while an answer is coming.
        """
        with self._lock:
            self._must_be_idle()
            self._tree.delete(number)
        self._notify("changed", None, None)

    def clear(self) -> None:
        """Forget every message. Raises InvalidSpecError while an answer is coming."""
        with self._lock:
            self._must_be_idle()
            self._tree = Tree()
        self._notify("changed", None, None)

    def stop(self) -> None:
        """End the answer that is coming within one step; what has come stays. Nothing happens when none is."""
        with self._lock:
            self._stopping = True
            if self._generation is not None:
                self._generation.stop()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the answer. Ctrl-C stops it, and is raised when it has ended. False when the time was over."""
        try:
            return self._idle.wait(timeout_s)
        except KeyboardInterrupt:
            self.stop()
            self._idle.wait()
            raise

    def markdown(self) -> str:
        """The transcript: equal for equal conversations. What was said can do nothing in it, whoever draws it."""
        head = [Message(0, "system", None, self._system).markdown()] if self._system else []
        return "\n\n".join([*head, *(message.markdown() for message in self.messages)])

    def _check(self, max_new_tokens: int | None, settings: dict[str, Any]) -> None:
        if isinstance(self.model, Generating):
            self.model._settings(max_new_tokens, **settings)  # now, not in the first answer

    def _must_be_idle(self) -> None:
        if self.busy:
            raise InvalidSpecError("an answer is still coming: stop() it, or wait() for it", "messages")

    def _say(self, text: str, parent: int | None) -> int:
        if not _text(text, "text").strip():
            raise InvalidSpecError("there is nothing to ask: the text is empty", "text")
        return self._tree.add("user", parent, text).number

    def _begin(self, question: Callable[[], int | None], again: dict[str, Any] | None = None) -> Message:
        """Begin the answer to a question, which is made or found while no other answer is coming."""
        with self._lock:
            self._must_be_idle()
            settings = self.settings
            before = self._tree.mark()
            try:
                message = self._tree.add("assistant", question())
                if again is not None:
                    settings = self._other(message, again)
            except BaseException:
                self._tree.back(before)
                raise
            self._idle.clear()
            self._stopping = False
            said = self._tree.path()[:-1]
        try:
            self._notify("changed", None, None)  # without the lock: who hears may take one of its own, and ask for more
        finally:
            run = self._session.copy().run
            arguments = (self._run, message, said, settings, before)
            threading.Thread(target=run, args=arguments, name="pygpukit-chat", daemon=True).start()
        return message

    def _other(self, message: Message, options: dict[str, Any]) -> dict[str, Any]:
        """The settings of an answer that is to differ from those before it."""
        settings = self.settings if self.settings.get("temperature") else {**self.settings, **AGAIN}
        seed = (self.settings.get("seed") or 0) + len(self._tree.siblings(message)) - 1
        settings = {**settings, "seed": seed, **options}
        self._check(self.max_new_tokens, settings)
        return settings

    def _run(self, message: Message, said: list[Message], settings: dict[str, Any], before: Mark) -> None:
        def hear(what: str) -> None:
            if not message.tokens:
                message.stage = what
                self._notify("stage", message, None)

        refused = False
        try:
            with doing.heard_by(hear), contextlib.closing(self._answer(message, said, settings)) as generation:
                with self._lock:
                    self._generation = generation
                    if self._stopping:
                        generation.stop()
                doing.say(_reading(generation.figures))
                for token in generation:
                    message.tokens.append(token)
                    message.figures = generation.figures
                    self._notify("token", message, token)
            message.finish_reason = generation.finish_reason or "cancelled"
        except Exception as error:  # whatever it is, it belongs to this answer: nobody else would hear of it
            message.finish_reason, message.error = "failed", f"{type(error).__name__}: {error}"
            refused = not message.tokens
        finally:
            with self._lock:
                self._generation = None
                if refused:
                    self._tree.back(before)
            message.stage = ""
            try:
                self._notify("refused" if refused else "ended", message, None)
            finally:
                self._idle.set()

    def _answer(self, message: Message, said: list[Message], settings: dict[str, Any]) -> Any:
        """Begins the answer, to as much of what was said as the context holds."""
        message.question = said[-1].text
        doing.say("Getting ready")
        warming.wait(self.model, lambda: self._stopping)
        fitted = fit(self.model, self._system, said, self.max_new_tokens, self.context_rule, settings)
        message.first, message.note = fitted.first, fitted.note
        return self.model.chat(fitted.messages, self.max_new_tokens, **settings)


def _reading(figures: Figures) -> str:
    """The work before the first token."""
    new = figures.prompt_tokens - figures.reused_tokens
    known = f", {figures.reused_tokens} are known" if figures.reused_tokens else ""
    return f"Reading {new} token{'' if new == 1 else 's'}{known}"


def _text(value: str, name: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name}={value!r}; give text")
    return value
