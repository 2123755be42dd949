"""Forms of answers: response_format, and the calls that a request must get, as grammars of the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pygpukit.core.errors import InvalidSpecError
from pygpukit.llm.serving import fields
from pygpukit.llm.serving.call_formats import CallFormat, format_of
from pygpukit.llm.serving.chatting import template_of
from pygpukit.llm.serving.errors import RequestError, shown
from pygpukit.llm.serving.tools import Tools

if TYPE_CHECKING:
    from pygpukit.llm.grammar import Grammar

_KINDS = ("text", "json_object", "json_schema", "regex")
_FIELD = "response_format"


@dataclass(frozen=True)
class Form:
    """The form that a request asks for: JSON of a schema, or a text that a pattern matches."""

    schema: Any = None
    pattern: str | None = None

    def grammar(self) -> Grammar:
        """Its grammar. Raises RequestError where the library is not there, or knows no such form."""
        from pygpukit.llm.grammar import Grammar

        try:
            return Grammar.json(self.schema) if self.pattern is None else Grammar.regex(self.pattern)
        except (ModuleNotFoundError, ValueError) as error:
            raise RequestError(str(error), _FIELD) from None


def form_of(body: Mapping[str, Any]) -> Form | None:
    """The form of response_format; None for text of any kind. Raises RequestError."""
    asked = fields.mapping(body, _FIELD)
    kind = asked.get("type", "text")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise RequestError(f"{_FIELD} has the type {shown(kind)}, must be one of {', '.join(_KINDS)}", _FIELD)
    if kind == "json_object":
        return Form()
    if kind == "regex":
        if not isinstance(asked.get("pattern"), str):
            raise RequestError(f"{_FIELD} has no pattern, a text", _FIELD)
        return Form(pattern=asked["pattern"])
    if kind == "json_schema":
        inner = asked.get("json_schema", asked)  # beside the type, as /v1/responses has it
        schema = inner.get("schema") if isinstance(inner, dict) else None
        if not isinstance(schema, dict):
            raise RequestError(f"{_FIELD} has no json_schema with a schema, an object", _FIELD)
        return Form(schema=schema)
    return None


def settings_of(form: Form | None, tools: Tools | None, tokenizer: Any) -> tuple[dict[str, Any], CallFormat | None]:
    """Settings of model.stream() for form and tools, and how the model writes calls.

    Raises RequestError where the model's chat template knows no tools.
    """
    settings: dict[str, Any] = {} if form is None else {"grammar": form.grammar()}
    if tools is None:
        return settings, None
    call_format = format_of(template_of(tokenizer, has_tools=True))
    settings["shown"] = call_format.control
    if tools.required:
        try:
            settings["grammar"] = call_format.grammar(tools, tokenizer)
        except (ModuleNotFoundError, InvalidSpecError, ValueError) as error:
            raise RequestError(str(error), "tool_choice") from None
    return settings, call_format
