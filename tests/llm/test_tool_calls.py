"""Calls of tools in texts: each format, cut anywhere, among text; what is no call stays text, letter by letter."""

from __future__ import annotations

import json
import random

import pytest

from pygpukit.llm.serving.call_formats import HERMES, LLAMA3, MISTRAL, CallFormat, format_of
from pygpukit.llm.serving.calls import Calls, Delta
from pygpukit.llm.serving.errors import RequestError

NAMES = frozenset({"weather", "time.of-day", "no_arguments"})
CITY = '{"city": "Saint-\\u00c9tienne \\"{[\\\\", "days": [1, {"x": []}]}'
ONE = '{"name": "weather", "arguments": ' + CITY + "}"
TURNED = '{"arguments": {"city": "Rome"}, "name": "weather"}'
BARE = ONE.replace("arguments", "parameters")
CITIES = [("weather", CITY), ("weather", '{"city": "Rome"}')]
NO_CALL = '<tool_call>\n{"name": "delete", "arguments": {}}</tool_call>'
# text, content, calls
CASES: dict[str, tuple[CallFormat, str, str, list[tuple[str, str]]]] = {
    "one": (HERMES, f"<tool_call>\n{ONE}\n</tool_call>", "", [("weather", CITY)]),
    "text before": (HERMES, f"Let me see: 1 < 2.\n<tool_call>\n{ONE}\n</tool_call>\n",
        "Let me see: 1 < 2.", [("weather", CITY)]),
    "two": (HERMES, f"<tool_call>\n{ONE}\n</tool_call>\n<tool_call>{TURNED}</tool_call>", "", CITIES),
    "text after": (HERMES, f"<tool_call>{ONE}</tool_call> done", " done", [("weather", CITY)]),
    "another field": (HERMES, '<tool_call>{"name": "weather", "arguments": {}, "id": "x}"}</tool_call>',
        "", [("weather", "{}")]),
    "arguments as text": (HERMES, '<tool_call>{"name": "weather", "arguments": "{\\"a\\": 1}"}</tool_call>',
        "", [("weather", '{"a": 1}')]),
    "no arguments": (HERMES, '<tool_call>{"name": "no_arguments"}</tool_call>', "", [("no_arguments", "{}")]),
    "no end": (HERMES, f"<tool_call>\n{ONE}", "", [("weather", CITY)]),
    "another tool": (HERMES, NO_CALL, NO_CALL, []),
    "no JSON": (HERMES, "<tool_call>weather</tool_call>", "<tool_call>weather</tool_call>", []),
    "broken off": (HERMES, '<tool_call>{"name": "wea', '<tool_call>{"name": "wea', []),
    "a mark alone": (HERMES, "about <tool_call> marks", "about <tool_call> marks", []),
    "nearly a mark": (HERMES, "a <tool_cal", "a <tool_cal", []),
    "plain": (HERMES, "  Two\n\nlines {}. ", "  Two\n\nlines {}. ", []),
    "list": (MISTRAL, f"[TOOL_CALLS][{ONE}, {TURNED}]", "", CITIES),
    "list after text": (MISTRAL, f"Well. [TOOL_CALLS] [{ONE}]", "Well.", [("weather", CITY)]),
    "named": (MISTRAL, f"[TOOL_CALLS]weather{CITY}[TOOL_CALLS]time.of-day[ARGS]{{}}",
        "", [("weather", CITY), ("time.of-day", "{}")]),
    "with an id": (MISTRAL, f"[TOOL_CALLS]weather[CALL_ID]abcdefghi[ARGS]{CITY}", "", [("weather", CITY)]),
    "another one": (MISTRAL, "[TOOL_CALLS]delete{}", "[TOOL_CALLS]delete{}", []),
    "bare": (LLAMA3, BARE, "", [("weather", CITY)]),
    "bare and marked": (LLAMA3, f"<|python_tag|>{BARE}; {BARE}", "", [("weather", CITY)] * 2),
    "an object that is text": (LLAMA3, '{"a": {"b": 1}} is it', '{"a": {"b": 1}} is it', []),
    "an object later": (LLAMA3, f"It is {BARE}", f"It is {BARE}", []),
}  # fmt: skip
PARTS = [
    *("<tool_call>", "</tool_call>", "[TOOL_CALLS]", "<|python_tag|>", ONE, BARE, "{", "}", "[", '"', "\\"),
    *("x", " ", "\n", ",", '"name"', ":", "weather"),
]


def gathered(deltas: list[Delta]) -> tuple[str, list[tuple[str, str]]]:
    content, calls, keys = "", list[tuple[str, str]](), set()
    for delta in deltas:
        content += delta.content
        if delta.name:
            assert delta.index == len(calls) and delta.key not in keys
            keys.add(delta.key)
            calls.append((delta.name, ""))
        elif delta.arguments:
            name, arguments = calls[delta.index]
            assert delta.index == len(calls) - 1
            calls[-1] = name, arguments + delta.arguments
    return content, calls


@pytest.mark.parametrize("case", CASES)
def test_every_cut_gives_the_same(case: str) -> None:
    form, text, content, calls = CASES[case]
    draw = random.Random(0)
    for most in (1, 2, 7, 1000):
        parser, deltas, rest = Calls(form, NAMES), list[Delta](), text
        while rest:
            count = draw.randint(1, most)
            deltas += parser.push(rest[:count])
            rest = rest[count:]
        deltas += parser.finish()
        assert gathered(deltas) == (content, calls), most
        assert parser.count == len(calls)
        for _, arguments in calls:
            json.loads(arguments)


def test_arguments_come_as_they_are_written() -> None:
    parser = Calls(HERMES, NAMES)
    assert parser.push("Well, <tool") == [Delta("Well,")]
    (begin,) = [delta for delta in parser.push('_call>{"name": "weather", "arguments": {') if delta.name]
    assert begin.key.startswith("call_") and not begin.arguments
    found = [delta.arguments for letter in '"city": "R' for delta in parser.push(letter)]
    assert "".join(found).endswith('"city": "R') and len(found) >= 10


def test_an_id_of_mistral_has_nine_letters() -> None:
    parser = Calls(MISTRAL, NAMES)
    keys = [
        delta.key
        for delta in parser.push("[TOOL_CALLS]weather{}[TOOL_CALLS]weather[CALL_ID]123456789[ARGS]{}")
        if delta.name
    ]
    assert len(keys) == 2 and len(keys[0]) == 9 and keys[0].isalnum() and keys[1] == "123456789"


def test_any_text_is_kept_or_parsed_and_never_fails() -> None:
    draw = random.Random(1)
    for _ in range(3000):
        text = "".join(draw.choices(PARTS, k=draw.randint(1, 12)))
        form = draw.choice((HERMES, MISTRAL, LLAMA3))
        parser = Calls(form, NAMES)
        content, calls = gathered([*(delta for letter in text for delta in parser.push(letter)), *parser.finish()])
        assert all(name in NAMES for name, _ in calls)
        if not calls:
            assert content == text


@pytest.mark.parametrize(
    "template, form",
    [
        ("{% if tools %}<tool_call>{% endif %}", HERMES),
        ("{% if tools %}[TOOL_CALLS]{% endif %}", MISTRAL),
        ('{% if tools is not none %}{"name": function name, "parameters": ...}{% endif %}', LLAMA3),
        ("{% if builtin_tools %}<|python_tag|>{% endif %}", LLAMA3),
    ],
)
def test_the_format_is_what_the_template_says(template: str, form: CallFormat) -> None:
    assert format_of(template) is form


@pytest.mark.parametrize("template", [None, "", "{{ messages }}", "<tool_call>", "{{ tools }}"])
def test_a_template_without_tools_refuses_them(template: str | None) -> None:
    with pytest.raises(RequestError, match="no tools"):
        format_of(template)
