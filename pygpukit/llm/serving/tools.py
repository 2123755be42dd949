"""Tools of a request: their definitions, which of them must be called, and messages about their calls."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pygpukit.llm.serving import fields
from pygpukit.llm.serving.errors import RequestError, shown

MAX_TOOLS = 128
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


@dataclass(frozen=True)
class Tools:
    """The tools of a request. required: at least one of them must be called. parallel: more than one may be."""

    definitions: tuple[dict[str, Any], ...]
    required: bool = False
    parallel: bool = True

    @property
    def names(self) -> frozenset[str]:
        """The names of the functions."""
        return frozenset(self.schemas())

    def schemas(self) -> dict[str, Any]:
        """The schema of each tool's arguments."""
        functions = [definition["function"] for definition in self.definitions]
        return {function["name"]: function.get("parameters") or {"type": "object"} for function in functions}


def tools_of(body: Mapping[str, Any]) -> Tools | None:
    """The tools of a chat, without those that tool_choice leaves out; None where none may be called. Raises
    RequestError."""
    tools = body.get("tools", [])
    if not isinstance(tools, list) or len(tools) > MAX_TOOLS:
        raise RequestError(f"tools is {shown(tools)}, must be a list of up to {MAX_TOOLS} tools", "tools")
    definitions = tuple(_definition(tool, f"tools[{place}]") for place, tool in enumerate(tools))
    names = [definition["function"]["name"] for definition in definitions]
    if len(set(names)) < len(names):
        raise RequestError("two tools have the same name", "tools")
    choice, parallel = body.get("tool_choice", "auto"), fields.boolean(body, "parallel_tool_calls", True)
    if choice in ("none", "auto", "required") and isinstance(choice, str):
        if choice == "required" and not definitions:
            raise RequestError("tool_choice is 'required', and there are no tools", "tool_choice")
        return Tools(definitions, choice == "required", parallel) if definitions and choice != "none" else None
    function = choice.get("function", choice) if isinstance(choice, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    if name not in names:
        there = ", ".join(names) or "none"
        raise RequestError(
            f'tool_choice is {shown(choice)}, must be "none", "auto", "required", or a function of tools: {there}',
            "tool_choice",
        )
    return Tools(tuple(one for one in definitions if one["function"]["name"] == name), True, False)


def calls_of(message: Mapping[str, Any], where: str) -> list[dict[str, Any]]:
    """The calls of an assistant's message, their arguments as objects, which templates write. Raises RequestError."""
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list):
        raise RequestError(f"{where} has tool_calls that are no list", where)
    checked = []
    for call in calls:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise RequestError(f"{where} has a tool call without a function's name", where)
        arguments = function.get("arguments") or "{}"
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments)
            except (ValueError, RecursionError):
                raise RequestError(f"{where}: the arguments of {function['name']!r:.80} are no JSON", where) from None
        function = {"name": function["name"], "arguments": arguments}
        checked.append({"id": str(call.get("id", "")), "type": "function", "function": function})
    return checked


def _definition(tool: Any, where: str) -> dict[str, Any]:
    function = tool.get("function") if isinstance(tool, dict) else None
    if not isinstance(function, dict) or tool.get("type", "function") != "function":
        raise RequestError(f'{where} is {shown(tool)}, must be {{"type": "function", "function": ...}}', where)
    name = function.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise RequestError(f"{where} has the name {shown(name)}, must be up to 64 letters, digits, _, - and .", where)
    for field, kind, what in (("description", str, "a text"), ("parameters", dict, "a JSON schema")):
        if function.get(field) is not None and not isinstance(function[field], kind):
            raise RequestError(f"{where}: {field} is {shown(function[field])}, must be {what}", where)
    return {"type": "function", "function": {key: value for key, value in function.items() if value is not None}}
