"""Messages and prompts of a request, as models take them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pygpukit.llm.serving.errors import RequestError, shown
from pygpukit.llm.serving.tools import calls_of

_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}

_NAMES = ("name", "tool_call_id")


def messages_of(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The messages of a chat, their content as text. Raises RequestError that names the message."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise RequestError("messages must be a list of at least one message", "messages")
    checked = []
    for place, message in enumerate(messages):
        where = f"messages[{place}]"
        role = message.get("role") if isinstance(message, dict) else message
        if not isinstance(message, dict) or not isinstance(role, str) or role not in _ROLES:
            raise RequestError(f"{where} has the role {shown(role)}, must be one of {', '.join(_ROLES)}", where)
        content = message.get("content")
        if content is None and role == "assistant":
            content = ""  # as clients keep an answer that was a call of a tool, or was refused
        fields: dict[str, Any] = {"role": _ROLES[role], "content": _content(content, where)}
        if role == "assistant" and (calls := calls_of(message, where)):
            fields["tool_calls"] = calls
        fields |= {name: message[name] for name in _NAMES if isinstance(message.get(name), str)}
        checked.append(fields)
    return checked


def prompts_of(body: Mapping[str, Any], name: str = "prompt") -> tuple[Any, ...]:
    """One or more texts or lists of token ids. Raises RequestError."""
    prompt = body.get(name)
    if isinstance(prompt, str) or _are_ids(prompt):
        return (prompt,)
    if isinstance(prompt, list) and prompt and all(isinstance(text, str) or _are_ids(text) for text in prompt):
        return tuple(prompt)
    raise RequestError(f"{name} must be a text, a list of token ids, or a list of either", name)


def _content(content: Any, where: str) -> str:
    """A text, or the parts that make one."""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(part, dict) for part in content):
        other = next((part.get("type") for part in content if part.get("type") != "text"), None)
        if other is None and all(isinstance(part.get("text"), str) for part in content):
            return "".join(part["text"] for part in content)
        if other is not None:
            raise RequestError(f"{where} has a part of type {shown(other)}; only text is understood", where)
    raise RequestError(f"{where} has no content that is a text", where)


def _are_ids(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(type(token) is int for token in value)
