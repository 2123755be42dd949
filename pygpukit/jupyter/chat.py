"""gp.llm.chat(): a chat with a model in a cell; %%chat: a question as a cell."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, magics_class, no_var_expand
from IPython.display import display

if TYPE_CHECKING:
    from pygpukit.jupyter.widgets.chat import ChatWidget
    from pygpukit.llm.conversation import Chats, Message


def chat(
    model: str | os.PathLike[str] | Chats,
    system: str = "",
    max_new_tokens: int | None = None,
    **settings: Any,
) -> ChatWidget:
    """A chat with a model, shown by being the value of a cell; `.messages` is the conversation, `.ask(text)` speaks.

    model: what gp.llm.load() gives, or takes. system: the system prompt, "" for the model's own. settings: those of
    model.chat() (temperature, seed, ...), greedy by default. Raises what load() raises, and RuntimeError when the
    front-end bundle has not been built.
    """
    from pygpukit.jupyter.widgets.chat import ChatWidget

    if isinstance(model, str | os.PathLike):
        from pygpukit.llm import load

        model = load(model)
    return ChatWidget(model, system, max_new_tokens, **settings)


class Asked:
    """What a %%chat cell leaves: the chat's view, and its question and answer as Markdown where there is no kernel."""

    def __init__(self, view: ChatWidget, question: str, answer: Message) -> None:
        self._view, self._question, self._answer = view, question, answer

    def __repr__(self) -> str:
        return repr(self._answer)

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        made = self._view._repr_mimebundle_(**kwargs)
        if made is None:
            return None
        data, metadata = made
        text = f"**You:** {self._question}\n\n{self._answer.markdown()}"
        return {**data, "text/plain": repr(self), "text/markdown": text}, metadata


@magics_class
class ChatMagics(Magics):  # type: ignore[misc]
    """%%chat of one shell."""

    _last: ChatWidget | None = None

    @no_var_expand
    @cell_magic("chat")
    def ask(self, line: str, cell: str) -> Asked:
        """Ask what the cell says. `%%chat NAME`: NAME is a chat or a model of the notebook; alone: the chat before.

        The answer streams into the chat's view, which is shown while it comes; interrupting the kernel stops it.
        """
        view = self._view(line.strip())
        if not cell.strip():
            raise UsageError("%%chat: the cell below the line says nothing to ask")
        display(view.only_view(), raw=True)
        question = cell.strip()
        return Asked(view, question, view.ask(question))

    def _view(self, name: str) -> ChatWidget:
        from pygpukit.jupyter.widgets.chat import ChatWidget

        if not name:
            if self._last is None:
                raise UsageError("%%chat needs the name of a chat or a model the first time: %%chat model")
            return self._last
        found = self.shell.user_ns.get(name)
        if isinstance(found, ChatWidget):
            self._last = found
        elif callable(getattr(found, "chat", None)):
            last = self._last
            self._last = last if last is not None and last.model is found else chat(found)
        else:
            raise UsageError(f"%%chat: {name!r} is {type(found).__name__}, not a chat or a model of this notebook")
        return self._last
