"""Messages as token ids. What they say stays text: a control token in it, such as <|im_start|>, begins no turn."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pygpukit.models.tokenizer.template import Message, plain

if TYPE_CHECKING:
    from pygpukit.models.tokenizer.tokenizer import Tokenizer

_MARKS = range(0x14400, 0x14646)  # hieroglyphs: letters that nothing escapes, and hardly anybody writes


def chat_ids(
    tokenizer: Tokenizer,
    messages: Iterable[Message],
    add_generation_prompt: bool,
    control_tokens: bool,
    variables: Mapping[str, Any],
) -> tuple[list[int], str]:
    """The ids of a conversation in the form of the model's template, and the text that they are of.

    control_tokens: whether those in messages and variables count. Without, a mark is put into each of them before the
    template sees it, and the ids are made of the parts between marks.
    """
    content = plain(messages)
    values: Any = {"messages": content, "variables": dict(variables)}
    mark = ""
    if not control_tokens and any(_places(text, tokenizer.control_tokens) for text in _texts(values)):
        templates = (tokenizer.chat_template or "") + (tokenizer.tool_template or "")
        written = json.dumps(values, ensure_ascii=False, default=repr) + templates
        mark = next(chr(code) for code in _MARKS if chr(code) not in written)
        values = _marked(values, tokenizer.control_tokens, mark)
    text = tokenizer.render_chat(values["messages"], add_generation_prompt, **values["variables"])
    parts = text.split(mark) if mark else [text]
    ids = [number for part in parts for number in tokenizer.encode(part, add_special_tokens=False)]
    return ids, "".join(parts)


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(key)
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def _marked(value: Any, tokens: Iterable[str], mark: str) -> Any:
    """The same with a mark after the first letter of every control token in it."""
    if isinstance(value, str):
        places = _places(value, tokens)
        ends = [*places, len(value)]
        begins = [0, *places]
        return mark.join(value[begin:end] for begin, end in zip(begins, ends, strict=True))
    if isinstance(value, Mapping):
        return {_marked(key, tokens, mark): _marked(item, tokens, mark) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_marked(item, tokens, mark) for item in value]
    return value


def _places(text: str, tokens: Iterable[str]) -> list[int]:
    """Where marks break every one of these tokens, overlapping ones too."""
    places = set()
    for token in tokens:
        at = text.find(token)
        while at >= 0:
            places.add(at + 1)
            at = text.find(token, at + 1)
    return sorted(places)
