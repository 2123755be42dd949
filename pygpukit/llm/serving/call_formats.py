"""Formats of tool calls: how a model writes them, told by its chat template, and the grammar that makes it do so."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pygpukit.llm.serving.errors import RequestError
from pygpukit.llm.serving.tools import Tools

if TYPE_CHECKING:
    from pygpukit.llm.grammar import Grammar
    from pygpukit.models.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True)
class CallFormat:
    """A way to write calls. begin: the mark before one, or before all; bare: they may begin an answer without it.
    end: the mark after one. arguments: the name of that field. control: tokens that are part of it."""

    begin: str
    end: str = ""
    arguments: str = "arguments"
    bare: bool = False
    is_list: bool = False
    control: tuple[str, ...] = ()
    id_prefix: str = "call_"

    def grammar(self, tools: Tools, tokenizer: Tokenizer) -> Grammar:
        """The form of an answer that calls at least one of the tools, and does nothing else."""
        from pygpukit.llm.grammar import Grammar

        call = {"anyOf": [self._call(name, schema) for name, schema in tools.schemas().items()]}
        if self.bare:
            return Grammar.json(call)
        if self.is_list:
            calls = {"type": "array", "items": call, "minItems": 1} | ({} if tools.parallel else {"maxItems": 1})
            return Grammar.lark(f"start: {_token(self.begin, tokenizer)} calls\ncalls: %json {_spaced(calls)}")
        begin, end = _token(self.begin, tokenizer), _token(self.end, tokenizer)
        rules = [
            'start: call ("\\n" call)*' if tools.parallel else "start: call",
            f'call: {begin} "\\n" object "\\n" {end}',
            f"object: %json {_spaced(call)}",
        ]
        return Grammar.lark("\n".join(rules))

    def _call(self, name: str, schema: Any) -> dict[str, Any]:
        fields = {"name": {"const": name}, self.arguments: schema}
        return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


HERMES = CallFormat("<tool_call>", "</tool_call>", control=("<tool_call>", "</tool_call>"))
MISTRAL = CallFormat(
    "[TOOL_CALLS]", is_list=True, control=("[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"), id_prefix=""
)  # its templates want ids of nine letters
LLAMA3 = CallFormat("<|python_tag|>", arguments="parameters", bare=True, control=("<|python_tag|>",))

_TAGGED = "<function="  # of Qwen3-Coder: a call in tags, not in JSON


def format_of(template: str | None) -> CallFormat:
    """The format that a chat template implies. Raises RequestError where it knows no tools."""
    source = template or ""
    if "tools" in source:
        if _TAGGED in source:
            raise RequestError(
                f"this model's chat template writes calls as {_TAGGED}name>, which is not read yet; leave tools out",
                "tools",
                code="unsupported_parameter",
            )
        if HERMES.begin in source:
            return HERMES
        if MISTRAL.begin in source:
            return MISTRAL
        if LLAMA3.begin in source or '"parameters"' in source or "'parameters'" in source:
            return LLAMA3
    raise RequestError(
        "this model's chat template has no tools; leave tools out", "tools", code="unsupported_parameter"
    )


def _spaced(schema: Any) -> str:
    """A schema for Lark's %json, with a space after commas and colons, as models write them."""
    return json.dumps(
        schema | {"x-guidance": {"item_separator": ", ", "key_separator": ": ", "whitespace_flexible": False}}
    )


def _token(text: str, tokenizer: Tokenizer) -> str:
    """A mark in a grammar: a control token is named by its number, any other text is text."""
    number = tokenizer.token_to_id(text)
    return f"<[{number}]>" if number is not None and number in tokenizer.special_ids else json.dumps(text)
