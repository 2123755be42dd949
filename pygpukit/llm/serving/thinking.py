"""The switch of a request by which a model thinks or does not, as the model's chat template has it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pygpukit.llm.serving import fields
from pygpukit.llm.serving.errors import RequestError, shown

_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")
_SWITCHES = ("enable_thinking", "thinking")  # variables of templates that are true or false
_EFFORT = "reasoning_effort"
_CODE = re.compile(r"\{[%{].*?[%}]\}", re.DOTALL)
_TEXTS = re.compile(r"'[^']*'|\"[^\"]*\"")


def effort_of(body: Mapping[str, Any]) -> str | None:
    """The effort of `reasoning_effort`, or of `reasoning`: {"effort": ...} or {"enabled": ...}. Raises RequestError."""
    if _EFFORT in body:
        return fields.one_of(body, _EFFORT, _EFFORTS, "")
    reasoning = fields.mapping(body, "reasoning")
    for name in reasoning:
        if name not in ("effort", "enabled", "summary", "generate_summary", "exclude"):
            raise RequestError(f"reasoning has no field {name[:64]!r}; it has effort and enabled", "reasoning")
    if reasoning.get("effort") is not None:
        if reasoning["effort"] not in _EFFORTS:
            said, known = shown(reasoning["effort"]), ", ".join(_EFFORTS)
            raise RequestError(f"reasoning has the effort {said}, must be one of {known}", "reasoning")
        return str(reasoning["effort"])
    if "enabled" in reasoning:
        if not isinstance(reasoning["enabled"], bool):
            raise RequestError("enabled of reasoning must be true or false", "reasoning")
        return "medium" if reasoning["enabled"] else "none"
    return None


def variables_of(effort: str | None, template: str | None) -> dict[str, Any]:
    """The variables of a chat template that ask for an effort. Raises RequestError where it has no such switch."""
    if effort is None:
        return {}
    source = template or ""
    variables: dict[str, Any] = {name: effort != "none" for name in _SWITCHES if _mentions(source, name)}
    if _mentions(source, _EFFORT):
        variables[_EFFORT] = effort
    if not variables:
        raise RequestError("this model has no switch of thinking; leave reasoning and reasoning_effort out", _EFFORT)
    return variables


def _mentions(source: str, name: str) -> bool:
    """True if a template uses a variable, other than as text or as a field of something."""
    code = " ".join(_CODE.findall(source))
    return re.search(rf"(?<![\w.]){name}\b", _TEXTS.sub("", code)) is not None
