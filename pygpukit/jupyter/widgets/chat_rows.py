"""Rows of a chat for its page: conversations, messages, tokens and figures as plain values."""

from __future__ import annotations

from typing import Any

from pygpukit.llm.conversation import Conversation
from pygpukit.llm.generation import Token
from pygpukit.llm.message import Message

TITLE_CHARACTERS = 60


def state(talk: Conversation) -> dict[str, Any]:
    """A conversation, on the branch that is chosen."""
    rows = []
    for message in talk.messages:
        places = [one.number for one in talk.siblings(message)]
        row: dict[str, Any] = {"number": message.number, "role": message.role, "places": places}
        if message.role == "user":
            row["text"] = message.text
        else:
            row |= {"rows": [token(one) for one in list(message.tokens)], **stage(message), **end(message)}
        rows.append(row)
    return {
        "model": talk.model.name,
        "system": talk.system,
        "busy": talk.busy,
        "settings": settings(talk),
        "messages": rows,
    }


def settings(talk: Conversation) -> dict[str, Any]:
    """The settings that the page may change; None where the model's own counts."""
    sampling = talk.settings
    return {"max_new_tokens": talk.max_new_tokens, **{name: sampling.get(name) for name in ("temperature", "top_p")}}


def title(talk: Conversation) -> str:
    """The conversation in a list: its first question."""
    first = next((" ".join(message.text.split()) for message in talk.messages), "")
    return (first if len(first) <= TITLE_CHARACTERS else first[: TITLE_CHARACTERS - 3] + "...") or "New chat"


def token(one: Token) -> list[Any]:
    """A token: place, text, thinking, logarithm of its probability, probable ones."""
    top = [[other.text, round(other.logprob, 4)] for other in one.top]
    logprob = None if one.logprob is None else round(one.logprob, 4)
    return [one.index, one.text, one.thinking, logprob, top]


def stage(message: Message) -> dict[str, Any]:
    """The work until the first token, and what is to be known of the answer."""
    return {"number": message.number, "stage": message.stage, "note": message.note}


def figures(message: Message) -> dict[str, Any]:
    """The cost of the answer so far."""
    own = message.figures
    if own is None:
        return {"figures": None}
    return {
        "figures": {
            "rate": own.tokens_per_second,
            "first": own.first_token,
            "tokens": own.new_tokens,
            "used": own.context_used,
            "context": own.context,
            "bytes": own.kv_bytes,
        }
    }


def end(message: Message) -> dict[str, Any]:
    """The end of the answer; reason None while it comes."""
    ending = {"reason": message.finish_reason, "ended": message.ended, "error": message.error}
    return {"number": message.number, **ending, **figures(message)}
