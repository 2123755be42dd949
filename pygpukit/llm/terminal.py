"""`pygpukit chat`: a conversation with a model in a terminal."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import sys
from collections.abc import Callable
from typing import Any, TextIO

from pygpukit.core.backend import backend
from pygpukit.core.errors import GPUError
from pygpukit.core.text import visible
from pygpukit.llm.conversation import Chats, Conversation, Event
from pygpukit.llm.generation import Token
from pygpukit.llm.message import Message

HELP = """\
/system TEXT  set the system prompt; alone: show it    /clear  begin anew    /again  another answer
/help         this                                     /quit, Ctrl-D  end    Ctrl-C  stop an answer
Several lines: end a line with \\ to go on in the next, or put them between two lines of \"\"\"."""


_BLOCK = '"""'


def talk(
    model: Chats,
    system: str = "",
    max_new_tokens: int | None = None,
    ask: Callable[[str], str] = input,
    out: TextIO | None = None,
    **settings: Any,
) -> None:
    """Ask until /quit or the end of the input. Ctrl-C stops an answer; at the prompt it ends the conversation.

    settings: those of model.chat().
    """
    out = sys.stdout if out is None else out
    target = out

    def on_event(event: Event, message: Message | None, token: Token | None) -> None:
        if event == "token" and token is not None:
            target.write(visible(token.thinking + token.text))
            target.flush()
        elif event in ("ended", "refused") and message is not None:
            target.write(_end(message))
            target.flush()

    conversation = Conversation(model, system, max_new_tokens, on_event, **settings)
    while True:
        try:
            line = _read(ask).strip()
        except (EOFError, KeyboardInterrupt):
            out.write("\n")
            return
        if line == "/quit":
            return
        try:
            said = _do(conversation, line)
        except KeyboardInterrupt:
            continue  # the answer has ended, and said so
        except GPUError as error:
            said = str(error)
        if said:
            out.write(visible(said) + "\n")


def _read(ask: Callable[[str], str]) -> str:
    """The user's input: a line, or several. Raises EOFError at the end of the input."""
    line = ask("> ")
    if line.strip() == _BLOCK:
        lines: list[str] = []
        while (line := ask(". ")).strip() != _BLOCK:
            lines.append(line)
        return "\n".join(lines)
    lines = [line]
    while lines[-1].endswith("\\"):
        lines[-1] = lines[-1][:-1]
        lines.append(ask(". "))
    return "\n".join(lines)


def _do(conversation: Conversation, line: str) -> str:
    """Does what a line says; returns what to print."""
    word, _, rest = line.partition(" ")
    if word == "/help":
        return HELP
    if word == "/clear":
        conversation.clear()
        return "The conversation begins anew."
    if word == "/system":
        if rest.strip():
            conversation.system = rest.strip()
        return f"System prompt: {conversation.system or 'that of the model'}"
    if word == "/again":
        conversation.regenerate()
    elif word.startswith("/"):
        return f"There is no command {word}.\n{HELP}"
    elif line:
        conversation.ask(line)
    conversation.wait()
    return ""


def _end(message: Message) -> str:
    """The line below an answer."""
    if message.finish_reason == "failed":
        return f"\n[{visible(message.error)}]\n"
    ended = message.ended.rstrip(".")
    parts = [message.note.rstrip(".")] if message.note else []
    parts += [ended[:1].lower() + ended[1:]] if ended else []
    figures = message.figures
    if figures is not None:
        parts.append(f"{figures.new_tokens} tokens")
        if figures.tokens_per_second is not None:
            parts.append(f"{figures.tokens_per_second:.1f} a second")
        if figures.first_token is not None:
            parts.append(f"the first after {figures.first_token:.2f} s")
        parts.append(f"context {figures.context_used} of {figures.context}")
    return f"\n[{', '.join(parts)}]\n"


def command(args: argparse.Namespace) -> int:
    """Do what `pygpukit chat` was asked. Exit code 1, and one sentence, when the model cannot be loaded."""
    from pygpukit.llm import load

    try:
        model = load(args.model, dtype=args.dtype, context=args.context)
    except (GPUError, OSError, ValueError, ModuleNotFoundError) as error:
        print(f"pygpukit chat: {visible(str(error))}", file=sys.stderr)
        return 1
    opened = backend()
    where = f", on the simulated device ({opened.reason.rstrip('.')})" if opened == "sim" else ""
    print(f"{visible(model.name)}{where}: /help says what there is, Ctrl-D ends")
    if sys.stdin.isatty():
        with contextlib.suppress(ImportError):
            importlib.import_module("readline")  # arrow keys, and the lines before
    asked = {"temperature": args.temperature, "seed": args.seed}
    settings = {name: value for name, value in asked.items() if value is not None}
    try:
        talk(model, args.system, args.max_new_tokens, **settings)
    except GPUError as error:  # a setting that cannot be
        print(f"pygpukit chat: {visible(str(error))}", file=sys.stderr)
        return 1
    return 0
