"""ChatWidget: a conversation with a model in a cell; its answers stream into every view of it."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any, cast

from pygpukit.core.errors import GPUError
from pygpukit.jupyter.widgets.base import Widget
from pygpukit.llm.conversation import Conversation, Event, Message

if TYPE_CHECKING:
    from pygpukit.llm.conversation import Chats
    from pygpukit.llm.generation import Token

MAX_TEXT_CHARACTERS = 1_000_000
TOP = 5  # probable tokens that the page shows of each place


class ChatWidget(Widget):
    """A chat with a model: streaming answers, stop, edit and fork, token probabilities, a system prompt.

    model: what gp.llm.load() gives. system: the system prompt, "" for the model's own. settings: those of model.chat(),
    greedy by default. `messages` is the conversation; ask() speaks from Python into the same views. Raises RuntimeError
    when the front-end bundle has not been built.
    """

    module = "chat.js"

    def __init__(self, model: Chats, system: str = "", max_new_tokens: int | None = None, **settings: Any) -> None:
        settings.setdefault("top", TOP)
        mine = weakref.ref(self)  # an answer that is coming keeps no widget that nobody holds

        def told(event: Event, message: Message | None, token: Token | None) -> None:
            widget = mine()
            if widget is not None:
                widget._told(event, message, token)

        self._conversation = Conversation(model, system, max_new_tokens, told, **settings)
        self._sending = threading.RLock()
        super().__init__()

    @property
    def model(self) -> Chats:
        """The model that answers."""
        return self._conversation.model

    @property
    def messages(self) -> list[Message]:
        """The conversation from its beginning, on the branch that is chosen; each has role, content and more."""
        return self._conversation.messages

    @property
    def system(self) -> str:
        """The system prompt; what is set counts from the next answer on."""
        return self._conversation.system

    @system.setter
    def system(self, text: str) -> None:
        self._conversation.system = text

    @property
    def busy(self) -> bool:
        """Whether an answer is coming."""
        return self._conversation.busy

    def ask(self, text: str, wait: bool = True) -> Message:
        """Say something; the answer streams into the views, and is returned when it has ended, or at once without wait.

        Ctrl-C stops the answer, which keeps what has come. Raises InvalidSpecError while another answer is coming.
        """
        return self._waited(self._conversation.ask(text), wait)

    def edit(self, number: int, text: str, wait: bool = True) -> Message:
        """Say a message of the user otherwise, on a branch of its own; number is the message's."""
        return self._waited(self._conversation.edit(number, text), wait)

    def regenerate(self, number: int | None = None, wait: bool = True) -> Message:
        """Another answer in the place of one, by default the last."""
        return self._waited(self._conversation.regenerate(number), wait)

    def choose(self, number: int) -> None:
        """Go to the branch of a message."""
        self._conversation.choose(number)

    def stop(self) -> None:
        """End the answer that is coming within one step."""
        self._conversation.stop()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the answer that is coming; False when the time was over before it."""
        return self._conversation.wait(timeout_s)

    def clear(self) -> None:
        """Forget every message."""
        self._conversation.clear()

    def __repr__(self) -> str:
        return f"ChatWidget({self._conversation.model.name!r})"

    def fallback(self) -> dict[str, str]:
        text = self._conversation.markdown()
        return {"text/markdown": text} if text else {}

    def only_view(self) -> dict[str, Any]:
        """The view's data for display(raw=True), without the transcript: an answer that is to come stands elsewhere."""
        data, _ = self._repr_mimebundle_() or ({}, {})
        return {kind: value for kind, value in data.items() if kind not in ("text/markdown", "text/html")}

    def _waited(self, message: Message, wait: bool) -> Message:
        if wait:
            self._conversation.wait()
            if message.error:
                raise GPUError(message.error)
        return message

    def _received(self, content: dict[str, Any]) -> bool:
        kind, text, number = content.get("type"), content.get("text"), content.get("number")
        if not isinstance(text, str | None) or len(text or "") > MAX_TEXT_CHARACTERS:
            return False
        talk = self._conversation
        acts = {
            "view": self._send_state,
            "ask": lambda: talk.ask(text or ""),
            "edit": lambda: talk.edit(cast("int", number), text or ""),
            "again": lambda: talk.regenerate(number),
            "choose": lambda: talk.choose(cast("int", number)),
            "system": lambda: setattr(talk, "system", text or ""),
            "stop": talk.stop,
            "clear": talk.clear,
        }
        act = acts.get(kind) if isinstance(kind, str) else None
        if act is None:
            return False
        try:
            act()
        except GPUError as error:
            self.tell_page({"type": "refused", "text": str(error)})
        return True

    def _told(self, event: Event, message: Message | None, token: Token | None) -> None:
        if self.comm is None:
            return  # nobody looks; who begins to gets the state
        with self._sending:  # a page that asks for the state meanwhile gets it before or after, and not amid
            if event == "token" and token is not None and message is not None:
                row, figures = _row(token), _figures(message)
                self.tell_page({"type": "tokens", "number": message.number, "at": row[0], "rows": [row], **figures})
            elif event == "ended" and message is not None:
                self.tell_page({"type": "ended", **_end(message)})
            else:
                self._send_state()

    def _send_state(self) -> None:
        talk = self._conversation
        with self._sending:
            rows = []
            for message in talk.messages:
                places = [one.number for one in talk.siblings(message)]
                row: dict[str, Any] = {"number": message.number, "role": message.role, "places": places}
                if message.role == "user":
                    row["text"] = message.text
                else:
                    row |= {"rows": [_row(token) for token in list(message.tokens)], **_end(message)}
                rows.append(row)
            state = {"model": talk.model.name, "system": talk.system, "busy": talk.busy, "messages": rows}
            self.tell_page({"type": "state", **state})


def _row(token: Token) -> list[Any]:
    """A token as the page takes it: place, text, thinking, logarithm of its probability, probable ones."""
    top = [[one.text, round(one.logprob, 4)] for one in token.top]
    logprob = None if token.logprob is None else round(token.logprob, 4)
    return [token.index, token.text, token.thinking, logprob, top]


def _figures(message: Message) -> dict[str, Any]:
    figures = message.figures
    if figures is None:
        return {"figures": None}
    return {
        "figures": {
            "rate": figures.tokens_per_second,
            "first": figures.first_token,
            "tokens": figures.new_tokens,
            "used": figures.context_used,
            "context": figures.context,
            "bytes": figures.kv_bytes,
        }
    }


def _end(message: Message) -> dict[str, Any]:
    return {"number": message.number, "reason": message.finish_reason, "error": message.error, **_figures(message)}
