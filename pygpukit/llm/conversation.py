"""Conversation: messages with a model; answers come on a thread of their own, edits fork, nothing said is lost."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from pygpukit.core.errors import InvalidSpecError
from pygpukit.llm.generating import Generating
from pygpukit.llm.generation import Figures, Token

Role: TypeAlias = Literal["user", "assistant"]
Event: TypeAlias = Literal["changed", "token", "ended"]


class Chats(Protocol):
    """What a conversation needs of a model: CausalTransformerModel has it."""

    name: str

    def chat(self, messages: Any, max_new_tokens: int | None = None, **settings: Any) -> Any: ...


@dataclass(eq=False)
class Message:
    """One message. number: its place in the order of making; parent: the number of the message that it follows.

    Of an answer: tokens (with their probabilities), finish_reason ("stop", "length", "cancelled", "failed", or None
    while it comes), figures, and error, the sentence why it failed.
    """

    number: int
    role: Role
    parent: int | None
    text: str = ""
    tokens: list[Token] = field(default_factory=list)
    finish_reason: str | None = None
    figures: Figures | None = None
    error: str = ""

    @property
    def content(self) -> str:
        """The text, without thinking."""
        return self.text + "".join(token.text for token in self.tokens)

    @property
    def thinking(self) -> str:
        """What the model thought before it answered; "" of most."""
        return "".join(token.thinking for token in self.tokens)

    def markdown(self) -> str:
        """Who said it, and what."""
        said = self.content.strip() or (f"*{self.error}*" if self.error else "*nothing*")
        return f"**{'You' if self.role == 'user' else 'Model'}:** {said}"

    def _repr_markdown_(self) -> str:
        return self.markdown()

    def __repr__(self) -> str:
        return f"{self.role}: {self.content}"

    def __str__(self) -> str:
        return self.content


class Conversation:
    """Messages with a model. ask(), edit() and regenerate() begin an answer and return its message at once; wait()
    waits for it. told(event, message, token) is called of what happens, on the thread on which it does.

    settings: those of model.chat(), greedy by default. Safe from several threads; one answer at a time.
    Raises TypeError for what is no model or no text, InvalidSpecError naming a setting that model.chat() would refuse.
    """

    def __init__(
        self,
        model: Chats,
        system: str = "",
        max_new_tokens: int | None = None,
        told: Callable[[Event, Message | None, Token | None], None] | None = None,
        **settings: Any,
    ) -> None:
        if not callable(getattr(model, "chat", None)):
            raise TypeError(f"model={model!r} has no chat(); give what gp.llm.load() gives")
        if isinstance(model, Generating):
            model._settings(max_new_tokens, **settings)  # now, not in the first answer
        self.model, self.max_new_tokens, self.settings = model, max_new_tokens, settings
        self._system = _text(system, "system")
        self._session = copy_context()  # answers run in the session that the conversation was made in
        self._told = told or (lambda _event, _message, _token: None)
        self._all: list[Message] = []
        self._head: int | None = None
        self._lock = threading.RLock()
        self._generation: Any = None
        self._stopping = False
        self._idle = threading.Event()
        self._idle.set()

    @property
    def messages(self) -> list[Message]:
        """The conversation from its beginning, on the branch that is chosen."""
        with self._lock:
            path, at = [], self._head
            while at is not None:
                path.append(self._all[at])
                at = self._all[at].parent
            return path[::-1]

    @property
    def system(self) -> str:
        """The system prompt, "" for the model's own; what is set counts from the next answer on."""
        return self._system

    @system.setter
    def system(self, text: str) -> None:
        self._system = _text(text, "system")
        self._told("changed", None, None)

    @property
    def busy(self) -> bool:
        """Whether an answer is coming."""
        return not self._idle.is_set()

    def siblings(self, message: Message) -> list[Message]:
        """The message and what was said in its place on other branches, oldest first."""
        with self._lock:
            return [one for one in self._all if one.parent == message.parent and one.role == message.role]

    def ask(self, text: str) -> Message:
        """Say something and begin its answer. Raises InvalidSpecError for no text, or while an answer is coming."""
        return self._begin(lambda: self._say(text, self._head))

    def edit(self, number: int, text: str) -> Message:
        """Say it otherwise, on a branch of its own, and begin the answer; number is that of a message of the user."""
        return self._begin(lambda: self._say(text, self._of(number, "user").parent))

    def regenerate(self, number: int | None = None) -> Message:
        """Begin another answer in the place of one, by default the last; the other stays as a branch."""

        def place() -> int | None:
            if number is None and self._head is None:
                raise InvalidSpecError("there is no answer yet: ask something first", "number")
            return self._of(self._head if number is None else number, "assistant").parent

        return self._begin(place)

    def choose(self, number: int) -> None:
        """Go to the branch of a message, and on it to what was said last."""
        with self._lock:
            self._must_be_idle()
            head = self._of(number).number
            for message in self._all[head + 1 :]:  # who answers is newer than what is answered
                if message.parent == head:
                    head = message.number
            self._head = head
        self._told("changed", None, None)

    def clear(self) -> None:
        """Forget every message. Raises InvalidSpecError while an answer is coming."""
        with self._lock:
            self._must_be_idle()
            self._all, self._head = [], None
        self._told("changed", None, None)

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
        """The transcript: equal for equal conversations."""
        head = [f"*System: {self._system}*"] if self._system else []
        return "\n\n".join([*head, *(message.markdown() for message in self.messages)])

    def _must_be_idle(self) -> None:
        if self.busy:
            raise InvalidSpecError("an answer is still coming: stop() it, or wait() for it", "messages")

    def _of(self, number: int | None, role: Role | None = None) -> Message:
        if isinstance(number, int) and not isinstance(number, bool) and 0 <= number < len(self._all):
            message = self._all[number]
            if role is None or message.role == role:
                return message
        raise InvalidSpecError(f"there is no message {number!r}{f' of role {role}' if role else ''}", "number")

    def _add(self, role: Role, parent: int | None, text: str = "") -> Message:
        message = Message(len(self._all), role, parent, text)
        self._all.append(message)
        self._head = message.number
        return message

    def _say(self, text: str, parent: int | None) -> int:
        if not _text(text, "text").strip():
            raise InvalidSpecError("there is nothing to ask: the text is empty", "text")
        return self._add("user", parent, text).number

    def _begin(self, question: Callable[[], int | None]) -> Message:
        """Begin the answer to a question, which is made or found while no other answer is coming."""
        with self._lock:
            self._must_be_idle()
            message = self._add("assistant", question())
            self._idle.clear()
            self._stopping = False
            said = [{"role": one.role, "content": one.content} for one in self.messages[:-1]]
            if self._system:
                said.insert(0, {"role": "system", "content": self._system})
        try:
            self._told("changed", None, None)  # without the lock: who hears may take one of its own, and ask for more
        finally:
            run = self._session.copy().run
            threading.Thread(target=run, args=(self._run, message, said), name="pygpukit-chat", daemon=True).start()
        return message

    def _run(self, message: Message, said: list[dict[str, str]]) -> None:
        try:
            with contextlib.closing(self.model.chat(said, self.max_new_tokens, **self.settings)) as generation:
                with self._lock:
                    self._generation = generation
                    if self._stopping:
                        generation.stop()
                for token in generation:
                    message.tokens.append(token)
                    message.figures = generation.figures
                    self._told("token", message, token)
            message.finish_reason = generation.finish_reason or "cancelled"
        except Exception as error:  # whatever it is, it belongs to this answer: nobody else would hear of it
            message.finish_reason, message.error = "failed", f"{type(error).__name__}: {error}"
        finally:
            with self._lock:
                self._generation = None
            try:
                self._told("ended", message, None)
            finally:
                self._idle.set()


def _text(value: str, name: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name}={value!r}; give text")
    return value
