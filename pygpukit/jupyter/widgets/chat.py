"""ChatWidget: a conversation with a model in a cell; its answers stream into every view of it."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from pygpukit.core.errors import GPUError, InvalidSpecError
from pygpukit.core.markdown import inert
from pygpukit.jupyter.widgets import chat_rows
from pygpukit.jupyter.widgets.base import Widget
from pygpukit.llm.conversation import Conversation, Event
from pygpukit.llm.message import Message

if TYPE_CHECKING:
    from pygpukit.llm.conversation import Chats
    from pygpukit.llm.fitting import ContextRule
    from pygpukit.llm.generation import Token

MAX_TEXT_CHARACTERS = 1_000_000
MAX_CHATS = 100  # in the list; beyond it the oldest goes
TOP = 5  # probable tokens that the page shows of each place


class ChatWidget(Widget):
    """A chat with a model: streaming answers, stop, edit and fork, token probabilities, a list of chats.

    model: what gp.llm.load() gives. system: the system prompt, "" for the model's own. context: what happens when the
    context is full, "shift" (the oldest turns are left out, and a line says so) or "stop" (the question is refused).
    settings: those of model.chat(), greedy by default. `messages` is the conversation; ask() speaks from Python into
    the same views. What the model's first answer waits for begins when a page shows the chat. Raises RuntimeError when
    the front-end bundle has not been built.
    """

    module = "chat.js"

    def __init__(
        self,
        model: Chats,
        system: str = "",
        max_new_tokens: int | None = None,
        context: ContextRule = "shift",
        **settings: Any,
    ) -> None:
        settings.setdefault("top", TOP)
        mine = weakref.ref(self)  # an answer that is coming keeps no widget that nobody holds

        def on_event(event: Event, message: Message | None, token: Token | None) -> None:
            widget = mine()
            if widget is not None:
                widget._on_event(event, message, token)

        self._conversation = Conversation(model, system, max_new_tokens, on_event, context, **settings)
        self._chats = [self._conversation]
        self._asked = ""  # by a page, and neither answered nor refused yet
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
        """True while an answer is coming."""
        return self._conversation.busy

    def ask(self, text: str, wait: bool = True) -> Message:
        """Say something; the answer streams into the views, and is returned when it has ended, or at once without wait.

        Ctrl-C stops the answer, which keeps what has come. Raises InvalidSpecError while another answer is coming.
        """
        return self._waited(self._conversation.ask(text), wait)

    def edit(self, number: int, text: str, wait: bool = True) -> Message:
        """Say a message of the user otherwise, on a branch of its own; number is the message's."""
        return self._waited(self._conversation.edit(number, text), wait)

    def regenerate(self, number: int | None = None, wait: bool = True, **settings: Any) -> Message:
        """Another answer in the place of one, by default the last: sampled, with a seed of its own."""
        return self._waited(self._conversation.regenerate(number, **settings), wait)

    def delete(self, number: int) -> None:
        """Take out a turn: the question of this number, or of the answer of this number, with its answers."""
        self._conversation.delete(number)

    def set(self, max_new_tokens: int | None = None, **settings: Any) -> None:
        """Other settings from the next answer on: these beside those of before, None for the model's own."""
        self._conversation.set(max_new_tokens, **settings)

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
        """Forget every message of this conversation."""
        self._conversation.clear()

    @property
    def chats(self) -> list[str]:
        """The conversations by their first questions, oldest first."""
        return [chat_rows.title(talk) for talk in self._chats]

    def new(self) -> None:
        """Begin a conversation with the same settings; the others stay in the list, see `chats` and go_to()."""
        talk = self._conversation
        self._must_be_idle()
        if talk.messages:
            conversation = Conversation(
                talk.model, talk.system, talk.max_new_tokens, talk._notify, talk.context_rule, **talk.settings
            )
            self._chats = [*(one for one in self._chats if one.messages), conversation][-MAX_CHATS:]
            self._go(conversation)

    def beside(self) -> ChatWidget:
        """A chat with a view of its own, with the same model and settings, that knows nothing of this one."""
        talk = self._conversation
        return ChatWidget(talk.model, talk.system, talk.max_new_tokens, talk.context_rule, **talk.settings)

    def go_to(self, place: int) -> None:
        """Go to a conversation of the list. Raises InvalidSpecError where there is none, or an answer is coming."""
        if not isinstance(place, int) or isinstance(place, bool) or not 0 <= place < len(self._chats):
            raise InvalidSpecError(f"there is no chat {place!r}; there are {len(self._chats)}", "place")
        self._must_be_idle()
        self._go(self._chats[place])

    def _go(self, talk: Conversation) -> None:
        self._conversation = talk
        self._on_event("changed", None, None)

    def _must_be_idle(self) -> None:
        if self._conversation.busy:
            raise InvalidSpecError("an answer is still coming: stop() it, or wait() for it", "chats")

    def __repr__(self) -> str:
        return f"ChatWidget({self._conversation.model.name!r})"

    def fallback(self) -> dict[str, str]:
        talk = self._conversation
        named = inert(talk.model.name)
        return {"text/markdown": talk.markdown() or f"*A chat with {named}: run the cell to talk.*"}

    def only_view(self) -> dict[str, Any]:
        """The view alone for display(raw=True): what it is without a kernel stands elsewhere."""
        data, _ = self._repr_mimebundle_() or ({}, {})
        return {kind: value for kind, value in data.items() if not kind.startswith("text/")}

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
        acts: dict[str, Callable[[], object]] = {
            "view": self._show,
            "ask": lambda: talk.ask(text or ""),
            "edit": lambda: talk.edit(cast("int", number), text or ""),
            "again": lambda: talk.regenerate(number),
            "choose": lambda: talk.choose(cast("int", number)),
            "delete": lambda: talk.delete(cast("int", number)),
            "system": lambda: setattr(talk, "system", text or ""),
            "settings": lambda: self._set(content.get("settings")),
            "stop": talk.stop,
            "clear": talk.clear,
            "new": self.new,
            "go": lambda: self.go_to(cast("int", number)),
        }
        act = acts.get(kind) if isinstance(kind, str) else None
        if act is None:
            return False
        asks = kind in ("ask", "edit")
        if asks and not talk.busy:
            self._asked = text or ""
        try:
            act()
        except (GPUError, TypeError) as error:
            self.tell_page({"type": "refused", "text": str(error), "question": text if asks else ""})
        return True

    def _set(self, settings: Any) -> None:
        if not isinstance(settings, dict) or not set(settings) <= {"max_new_tokens", "temperature", "top_p"}:
            raise InvalidSpecError("a page sets max_new_tokens, temperature and top_p", "settings")
        self._conversation.set(**settings)

    def _show(self) -> None:
        self._page_looks()
        self._send_state()
        with self._sending:
            self._send_still(now=True)
        self._conversation.warm_up()

    def _on_event(self, event: Event, message: Message | None, token: Token | None) -> None:
        if self.comm is None:
            return  # nobody looks; who begins to gets the state
        with self._sending:  # a page that asks for the state meanwhile gets it before or after, and not amid
            if message is None:
                self._send_state()
            elif event == "token" and token is not None:
                row, figures = chat_rows.token(token), chat_rows.figures(message)
                self.tell_page({"type": "tokens", "number": message.number, "at": row[0], "rows": [row], **figures})
            elif event == "stage":
                self.tell_page({"type": "stage", **chat_rows.stage(message)})
            elif event == "ended":
                self.tell_page({"type": "ended", **chat_rows.end(message)})
            elif event == "refused":
                self._send_state(busy=False)
                question = message.question if message.question == self._asked else ""
                self.tell_page({"type": "refused", "text": message.error, "question": question})
            if event in ("changed", "ended", "refused"):
                self._send_still(now=True)
            if event in ("ended", "refused"):
                self._asked = ""

    def _send_state(self, **other: Any) -> None:
        with self._sending:
            listed = {"chats": self.chats, "chat": self._chats.index(self._conversation)}
            self.tell_page({"type": "state", **chat_rows.state(self._conversation), **listed, **other})
