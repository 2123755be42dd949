"""gp.llm.chat(): a chat with a model in a cell; %%chat: a question as a cell."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, magics_class, no_var_expand
from IPython.display import clear_output, display

if TYPE_CHECKING:
    from pygpukit.jupyter.widgets.chat import ChatWidget
    from pygpukit.llm.conversation import Chats
    from pygpukit.llm.fitting import ContextRule
    from pygpukit.llm.message import Message

# {name}, {name.attribute}; {{name}} is for {name} itself.
_VARIABLE = re.compile(r"\{\{([A-Za-z_][\w.]*)\}\}|\{([A-Za-z_]\w*)((?:\.[A-Za-z_]\w*)*)\}")
_PLAIN, _NEW = "--plain", "--new"
_OFFERED = "qwen2.5-coder-0.5b-instruct"  # knows CUDA, and is small enough for any machine


def chat(
    model: str | os.PathLike[str] | Chats,
    system: str = "",
    max_new_tokens: int | None = None,
    context: ContextRule = "shift",
    **settings: Any,
) -> ChatWidget:
    """A chat with a model, shown by being the value of a cell; `.messages` is the conversation, `.ask(text)` speaks.

    Parameters
    ----------
    model
        What gp.llm.load() gives, or takes.
    system
        The system prompt, "" for the model's own.
    max_new_tokens
        Of one answer, at most; 256 by default.
    context
        What happens when the context is full. "shift": the oldest turns are left out, whole, until the rest takes half
        of it; the system prompt stays, and a line says so. "stop": the question is refused, and stays in the box.
    settings
        Those of model.chat() (temperature, seed, ...), greedy by default.

    Returns
    -------
    ChatWidget
        The chat.

    Raises
    ------
    InvalidSpecError
        For a setting that model.chat() would refuse; and what load() raises.
    RuntimeError
        When the front-end bundle has not been built.

    Examples
    --------
    >>> chat = gp.llm.chat(model, "Answer in one sentence.", temperature=0.7)  # doctest: +SKIP
    >>> chat.ask("What is a warp?")  # doctest: +SKIP
    """
    from pygpukit.jupyter.widgets.chat import ChatWidget

    if isinstance(model, str | os.PathLike):
        from pygpukit.llm import load

        model = load(model)
    return ChatWidget(model, system, max_new_tokens, context, **settings)


class Asked:
    """The output of a %%chat cell: the chat's view, or its question and answer as Markdown where there is no kernel."""

    def __init__(self, view: ChatWidget, question: Message, answer: Message) -> None:
        self._view, self._question, self._answer = view, question, answer

    def __repr__(self) -> str:
        return repr(self._answer)

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = self._view._repr_mimebundle_(**kwargs)
        if bundle is None:
            return None
        data, metadata = bundle
        text = f"{self._question.markdown()}\n\n{self._answer.markdown()}"
        return {**data, "text/plain": repr(self), "text/markdown": text}, metadata


@magics_class
class ChatMagics(Magics):  # type: ignore[misc]
    """%%chat of one shell."""

    _last: ChatWidget | None = None

    @no_var_expand
    @cell_magic("chat")
    def ask(self, line: str, cell: str) -> Asked:
        """Ask what the cell says, with the values of the notebook's variables in the place of {name}.

        `%%chat NAME`: NAME is a chat or a model of the notebook; alone: the chat before, or what there is. --plain:
        braces are taken as they are. --new: asked in a chat of its own, which knows nothing of what was said; the next
        `%%chat` goes on with it. {name.attribute} has the attribute, {{name}} is for {name} itself; what is no
        variable stays as it is. The answer streams into the chat's view, which is shown while it comes; interrupting
        the kernel stops it.
        """
        words = line.split()
        plain = _PLAIN in words
        view = self._view(" ".join(word for word in words if word not in (_PLAIN, _NEW)))
        text = cell.strip() if plain else filled(cell.strip(), self.shell.user_ns)
        if not text:
            raise UsageError("%%chat: the cell below the line says nothing to ask")
        if _NEW in words and view.messages:
            view = self._last = view.beside()
        display(view.only_view(), raw=True)
        answer = view.ask(text)
        if getattr(self.shell, "kernel", None) is not None:
            clear_output(wait=True)  # the cell's value is the view again, with the words for pages without a kernel
        question = next(message for message in view.messages if message.number == answer.parent)
        return Asked(view, question, answer)

    def _view(self, name: str) -> ChatWidget:
        from pygpukit.jupyter.widgets.chat import ChatWidget

        if not name:
            if self._last is None:
                self._last = self._current()
            return self._last
        value = self.shell.user_ns.get(name)
        if isinstance(value, ChatWidget):
            self._last = value
        elif callable(getattr(value, "chat", None)):
            last = self._last
            self._last = last if last is not None and last.model is value else chat(value)
        else:
            raise UsageError(f"%%chat: {name!r} is {type(value).__name__}, not a chat or a model of this notebook")
        return self._last

    def _current(self) -> ChatWidget:
        """The chat of the notebook that was made last, or one with the model that was."""
        from pygpukit.jupyter.widgets.chat import ChatWidget
        from pygpukit.llm.model import CausalTransformerModel

        named = [value for name, value in self.shell.user_ns.items() if not name.startswith("_")]
        chats = [value for value in named if isinstance(value, ChatWidget)]
        models = [value for value in named if isinstance(value, CausalTransformerModel)]
        if not chats and not models:
            raise UsageError(
                "%%chat: this notebook has no chat and no model yet. Run this in a cell, then this cell again: "
                f'chat = gp.llm.chat("{_OFFERED}")  # fetched the first time; gp.models.table() lists others'
            )
        return chats[-1] if chats else chat(models[-1])


def filled(text: str, names: Mapping[str, Any]) -> str:
    """The text with values in the place of {name} and {name.attribute}, as str() gives them; {{name}} is {name}.

    What is no name of the notebook stays as it is: code has braces, too. Raises UsageError for an attribute that a
    value does not have.
    """

    def value(match: re.Match[str]) -> str:
        literal, name, attributes = match.groups()
        if literal is not None:
            return f"{{{literal}}}"
        if name not in names:
            return match[0]
        result = names[name]
        for attribute in attributes.split(".")[1:]:
            try:
                result = getattr(result, attribute)
            except AttributeError as error:
                raise UsageError(f"%%chat: {match[0]}: {error}") from None
        return str(result)

    return _VARIABLE.sub(value, text)
