"""fit(): as much of a conversation as a model's context holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from pygpukit.core.errors import InvalidSpecError
from pygpukit.llm.message import Message

ContextRule: TypeAlias = Literal["shift", "stop"]
RULES = ("shift", "stop")
DEFAULT_NEW_TOKENS = 256
FORM = ("variables", "control_tokens")  # settings of model.chat() that make another prompt


@dataclass(frozen=True)
class Fit:
    """messages: what the model is asked. first: the number of the oldest among them where others are left out; note
    says so,
    once."""

    messages: list[dict[str, str]]
    first: int | None = None
    note: str = ""


def check_rule(context: str) -> ContextRule:
    """The rule. Raises InvalidSpecError for another."""
    if context not in RULES:
        raise InvalidSpecError(
            f"context={context!r}; give 'shift' (the oldest turns are left out when the context is full) or 'stop' "
            "(a question that does not fit is refused)",
            "context",
        )
    return cast("ContextRule", context)


def fit(
    model: Any,
    system: str,
    said: Sequence[Message],
    max_new_tokens: int | None,
    rule: ContextRule,
    settings: Mapping[str, Any],
) -> Fit:
    """The messages that the model gets of a conversation; the last one is the question.

    "shift" leaves out turns from the oldest on when the prompt leaves no room for an answer: max_new_tokens, but at
    most a quarter of the context. Then as many go as it takes until prompt and room fit into half of it, or only the
    question is left; what was left out stays so for the answers that follow. Raises InvalidSpecError for a question
    that does not fit alone, or with "stop" not with all of what was said. A model that does not count its prompts
    (prompt_tokens) gets all.
    """
    count, size = getattr(model, "prompt_tokens", None), getattr(model, "context", None)
    if count is None or size is None:
        return Fit(_asked(system, said))

    form = {name: settings[name] for name in FORM if name in settings}

    def tokens(first: int) -> int:
        return int(count(_asked(system, said[first:]), **form))

    room = min(max_new_tokens or DEFAULT_NEW_TOKENS, size // 4)
    starts = [place for place, message in enumerate(said) if message.role == "user"]
    if rule == "stop":
        total = tokens(0)
        if total >= size and len(starts) > 1:
            raise InvalidSpecError(
                f"the context is full: with this question the conversation has {total} tokens, the context {size}. "
                'Begin a new one, delete turns, or make the chat with context="shift", which leaves out the oldest',
                "messages",
            )
        first = 0
    else:
        before = {message.first for message in said if message.first is not None}
        first = max((place for place in starts if said[place].number in before), default=0)
        if tokens(first) + room > size:
            low, high = 0, len(starts) - 1  # the fewest turns that have to go, found by halves
            while low < high:
                middle = (low + high) // 2
                if starts[middle] >= first and tokens(starts[middle]) + room <= size // 2:
                    high = middle
                else:
                    low = middle + 1
            first = starts[low]
    if first == starts[-1] and (alone := tokens(first)) >= size:
        raise InvalidSpecError(
            f"the question is too long: it has {alone} tokens with what goes before it, the context {size}. Ask a "
            "shorter one, or load the model with a larger context=",
            "text",
        )
    if first == 0:
        return Fit(_asked(system, said))
    known = said[first].number in {message.first for message in said}
    return Fit(_asked(system, said[first:]), said[first].number, "" if known else _note(first, size))


def _note(left_out: int, size: int) -> str:
    messages = f"The {left_out} oldest messages" if left_out > 1 else "The oldest message"
    return f"{messages} no longer fit into the context of {size} tokens: the model answers without them."


def _asked(system: str, said: Sequence[Message]) -> list[dict[str, str]]:
    head = [{"role": "system", "content": system}] if system else []
    return [*head, *({"role": message.role, "content": message.content} for message in said)]
