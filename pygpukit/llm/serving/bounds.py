"""Limits of a request's cost, checked before any of it is paid."""

from __future__ import annotations

import json
import weakref
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pygpukit.llm.serving.errors import RequestError

if TYPE_CHECKING:
    from pygpukit.llm.model import CausalTransformerModel

LARGEST = 4 << 20  # bytes of a request
MAX_ANSWERS = 128  # of one request: prompts, times the answers to each
RETRY_S = 1  # when to come again, where too many wait
_longest: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()


def check_size(
    model: CausalTransformerModel, prompts: Iterable[Any], variables: Mapping[str, Any], field: str = "prompt"
) -> None:
    """Raises RequestError for a text that has more characters than a context of the longest tokens, or messages of
    which there are more than tokens: so none is split into tokens that cannot fit. variables: of the chat template,
    which may write them beside the messages. field: the one of the request that has the prompts, if they are texts."""
    tokenizer = getattr(model, "tokenizer", None)
    if tokenizer is None:
        return
    max_bytes = model.context * _longest_token(tokenizer)
    beside = len(json.dumps(variables, ensure_ascii=False)) if variables else 0
    for prompt in prompts:
        is_text = isinstance(prompt, str)
        texts = [prompt] if is_text else [_written(message) for message in prompt if isinstance(message, dict)]
        length = sum(map(len, texts)) + beside
        if length > max_bytes or len(texts) > model.context:
            raise RequestError(
                f"the prompt has {length} characters in {len(texts)} texts; the context of {model.context} tokens has "
                f"room for at most {max_bytes} characters",
                field if is_text or field == "input" else "messages",
                code="context_length_exceeded",
            )


def _written(message: dict[str, Any]) -> str:
    """The text of a message, with the calls that it has."""
    calls = message.get("tool_calls")
    return message["content"] + (json.dumps(calls, ensure_ascii=False) if calls else "")


def _longest_token(tokenizer: Any) -> int:
    longest = _longest.get(tokenizer)
    if longest is None:
        spelled = (tokenizer.id_to_token(number) or "" for number in range(tokenizer.vocab_size))
        longest = _longest[tokenizer] = max(map(len, spelled), default=1)
    return longest
