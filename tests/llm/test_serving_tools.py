"""Tools and forms of answers by the openai client: what reaches the template, comes back as calls, and must be so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import openai
import pytest
from llm import speaking
from llm.test_serving import MESSAGES, PATIENCE_S, PlayedModel, chat
from llm.test_serving_template import Template

from pygpukit.llm.serving.call_formats import format_of
from pygpukit.llm.serving.errors import RequestError
from pygpukit.llm.serving.server import serve

TEMPLATE = (
    "{% if tools %}<tools>{% for tool in tools %}{{ tool | tojson }}{% endfor %}</tools><tool_call>{% endif %}"
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% for call in m.tool_calls or [] %}"
    "{{ call.function.name }}={{ call.function.arguments.city }}{% endfor %}{% endfor %}"
)
WEATHER = {
    "type": "object",
    "properties": {"city": {"enum": ["Rome", "Oslo"]}, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
NO_FIELDS = {"type": "object", "properties": {}, "additionalProperties": False}
TOOLS: Any = [
    {"type": "function", "function": {"name": "weather", "description": "Of a city.", "parameters": WEATHER}},
    {"type": "function", "function": {"name": "now", "parameters": NO_FIELDS}},
]
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Rome", "days": 2}}\n</tool_call>'


class Calling(PlayedModel):
    """One that writes a call."""

    def __init__(self) -> None:
        super().__init__()
        self.tokenizer: Any = Template()
        self.tokenizer.chat_template = TEMPLATE
        self.words = ["I", " look", ".\n", *(CALL[n : n + 5] for n in range(0, len(CALL), 5))]


@pytest.fixture
def played() -> Calling:
    return Calling()


@pytest.fixture
def client(played: Any) -> Iterator[openai.OpenAI]:
    with (
        serve(played, port=0) as server,
        openai.OpenAI(base_url=server.url, api_key=server.token, max_retries=0, timeout=PATIENCE_S) as made,
    ):
        yield made


def test_calls_come_back(client: openai.OpenAI, played: Calling) -> None:
    answer = client.chat.completions.create(model="toy", messages=MESSAGES, tools=TOOLS, max_tokens=60)
    choice = answer.choices[0]
    assert choice.finish_reason == "tool_calls" and choice.message.content == "I look."
    (call,) = choice.message.tool_calls or []
    assert call.type == "function" and call.function.name == "weather" and call.id.startswith("call_")
    assert json.loads(call.function.arguments) == {"city": "Rome", "days": 2}
    settings = played.asked[-1][3]
    assert settings["variables"] == {"tools": TOOLS} and "grammar" not in settings


def test_calls_come_back_in_pieces(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(
        model="toy", messages=MESSAGES, tools=TOOLS, stream=True, n=2, max_tokens=60
    )
    content, names, arguments, reasons = ["", ""], ["", ""], [list[str](), list[str]()], ["", ""]
    for piece in stream:
        choice = piece.choices[0]
        content[choice.index] += choice.delta.content or ""
        reasons[choice.index] = choice.finish_reason or ""
        for call in choice.delta.tool_calls or []:
            assert call.index == 0 and call.function is not None
            names[choice.index] += call.function.name or ""
            assert (call.function.name is None) == (call.id is None)
            arguments[choice.index].append(call.function.arguments or "")
    assert content == ["I look."] * 2 and names == ["weather"] * 2 and reasons == ["tool_calls"] * 2
    for pieces in arguments:
        assert len(pieces) > 4 and json.loads("".join(pieces)) == {"city": "Rome", "days": 2}


def test_a_call_that_is_cut_ends_by_its_length(client: openai.OpenAI, played: Calling) -> None:
    answer = client.chat.completions.create(model="toy", messages=MESSAGES, tools=TOOLS, max_tokens=15)
    choice = answer.choices[0]
    assert choice.finish_reason == "length" and choice.message.tool_calls
    assert choice.message.tool_calls[0].function.arguments.startswith("{")  # type: ignore[union-attr]
    played.words = ["Par", "is"]
    plain = client.chat.completions.create(model="toy", messages=MESSAGES, tools=TOOLS)
    assert plain.choices[0].finish_reason == "stop" and plain.choices[0].message.content == "Paris"
    assert plain.choices[0].message.tool_calls is None


def test_no_tools_where_none_may_be_called(client: openai.OpenAI, played: Calling) -> None:
    answer = client.chat.completions.create(
        model="toy", messages=MESSAGES, tools=TOOLS, tool_choice="none", max_tokens=60
    )
    assert answer.choices[0].message.content == "".join(played.words)
    assert "variables" not in played.asked[-1][3]


@pytest.fixture(scope="module")
def speaker() -> Iterator[openai.OpenAI]:
    marks = ("<tool_call>", "</tool_call>")
    model = speaking.model(speaking.tokenizer(TEMPLATE, words=marks), context=512, max_position_embeddings=1024)
    with (
        serve(model, port=0) as server,
        openai.OpenAI(base_url=server.url, api_key=server.token, max_retries=0, timeout=PATIENCE_S) as made,
    ):
        yield made


def asked(client: openai.OpenAI, **fields: Any) -> Any:
    settings: Any = {"temperature": 1.0, "max_tokens": 200} | fields
    messages: Any = [{"role": "user", "content": "hello"}]
    return client.chat.completions.create(model="tiny", messages=messages, **settings)


@pytest.mark.parametrize("choice", ["required", "weather", "now"])
def test_a_call_that_must_come_comes_from_any_model(speaker: openai.OpenAI, choice: str) -> None:
    named: Any = choice if choice == "required" else {"type": "function", "function": {"name": choice}}
    for seed in range(3):
        answer = asked(speaker, tools=TOOLS, tool_choice=named, seed=seed, parallel_tool_calls=False).choices[0]
        (call,) = answer.message.tool_calls
        assert answer.finish_reason == "tool_calls" and answer.message.content is None
        assert call.function.name == choice or choice == "required"
        jsonschema.validate(
            json.loads(call.function.arguments), {"weather": WEATHER, "now": NO_FIELDS}[call.function.name]
        )


@pytest.mark.parametrize("control", [(), ("[TOOL_CALLS]",), ("<|python_tag|>",), ("<tool_call>", "</tool_call>")])
def test_a_call_that_must_come_in_every_format(control: tuple[str, ...]) -> None:
    mark = control[0] if control else '"parameters"'
    own = speaking.tokenizer("{% if tools %}" + mark + "{% endif %}{{ messages[0].content }}", control)
    with (
        serve(speaking.model(own, context=512), port=0) as server,
        openai.OpenAI(base_url=server.url, api_key=server.token, max_retries=0, timeout=PATIENCE_S) as client,
    ):
        answer = asked(client, tools=TOOLS, tool_choice="required", seed=1, parallel_tool_calls=False).choices[0]
        (call,) = answer.message.tool_calls
        jsonschema.validate(
            json.loads(call.function.arguments), {"weather": WEATHER, "now": NO_FIELDS}[call.function.name]
        )


def test_answers_have_the_form_that_was_asked_for(speaker: openai.OpenAI) -> None:
    schema = {"type": "json_schema", "json_schema": {"name": "weather", "schema": WEATHER, "strict": True}}
    for stream in (False, True):
        answer = asked(speaker, response_format=schema, seed=3, logprobs=True, top_logprobs=5, stream=stream)
        text = (
            "".join(p.choices[0].delta.content or "" for p in answer) if stream else answer.choices[0].message.content
        )
        jsonschema.validate(json.loads(text), WEATHER)
    pattern = {"type": "regex", "pattern": "(yes|no)[.!]"}
    assert asked(speaker, response_format=pattern).choices[0].message.content in ("yes.", "yes!", "no.", "no!")
    free = asked(speaker, response_format={"type": "json_object"}, max_tokens=20, logit_bias={93: 50}).choices[0]
    assert free.message.content.startswith("{")
    completed = speaker.completions.create(model="tiny", prompt="hello", extra_body={"response_format": pattern})
    assert completed.choices[0].text in ("yes.", "yes!", "no.", "no!")


def test_a_form_that_cannot_be_is_refused(speaker: openai.OpenAI) -> None:
    for wrong in (
        {"type": "regex", "pattern": "(a"},
        {"type": "json_schema", "json_schema": {"schema": {"type": "x"}}},
    ):
        with pytest.raises(openai.BadRequestError, match="cannot be used") as caught:
            asked(speaker, response_format=wrong)
        assert caught.value.param == "response_format"
    tool: Any = {"type": "function", "function": {"name": "f", "parameters": {"type": "x"}}}
    with pytest.raises(openai.BadRequestError, match="cannot be used") as caught:
        asked(speaker, tools=[tool], tool_choice="required")
    assert caught.value.param == "tools"


def test_what_tools_said_reaches_the_template() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}
    messages = [
        {"role": "user", "content": "Hot?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "30 C"}]},
    ]
    (prompt,) = chat(messages=messages).prompts
    text = speaking.tokenizer(TEMPLATE).render_chat(prompt)
    assert text == "<|user|>Hot?<|assistant|>weather=Rome<|tool|>30 C"
    assert prompt[2]["tool_call_id"] == "c1"


@pytest.mark.parametrize(
    "fields, param",
    [
        ({"tools": {}}, "tools"),
        ({"tools": [{"type": "function"}]}, "tools[0]"),
        ({"tools": [{"type": "retrieval", "function": {"name": "f"}}]}, "tools[0]"),
        ({"tools": [{"type": "function", "function": {"name": "f g"}}]}, "tools[0]"),
        ({"tools": [{"type": "function", "function": {"name": "f", "parameters": []}}]}, "tools[0]"),
        ({"tools": TOOLS + TOOLS}, "tools"),
        ({"tools": TOOLS * 100}, "tools"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": "always"}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "delete"}}}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": ["now"]}}}, "tool_choice"),
        ({"tools": TOOLS, "parallel_tool_calls": 1}, "parallel_tool_calls"),
        ({"tools": TOOLS, "tool_choice": "required", "response_format": {"type": "json_object"}}, "response_format"),
        ({"messages": [{"role": "assistant", "tool_calls": "x", "content": "x"}]}, "messages[0]"),
        ({"messages": [{"role": "assistant", "tool_calls": [{}]}]}, "messages[0]"),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{"}}]}]},
            "messages[0]",
        ),
    ],
)
def test_wrong_tools_are_named(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as caught:
        chat(**fields)
    assert caught.value.param == param


def test_tools_have_a_template_of_their_own(client: openai.OpenAI, played: Calling) -> None:
    played.tokenizer.chat_template, played.tokenizer.tool_template = "{{ messages[0].content }}", TEMPLATE
    answer = client.chat.completions.create(model="toy", messages=MESSAGES, tools=TOOLS, max_tokens=60)
    (call,) = answer.choices[0].message.tool_calls or []
    assert call.type == "function" and call.function.name == "weather"


def test_calls_in_a_form_that_is_not_read_are_refused() -> None:
    with pytest.raises(RequestError, match="<function=name>"):
        format_of("{{ tools }}<tool_call><function=f><parameter=city>Rome</parameter></function></tool_call>")
