"""/v1/responses by the openai client: texts, calls and thinking as items and events; what is wrong is named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import openai
import pytest
from llm import speaking
from llm.test_serving import PATIENCE_S, PlayedModel
from llm.test_serving_tools import CALL, TEMPLATE, WEATHER, Calling

from pygpukit.llm.serving import responses
from pygpukit.llm.serving.errors import RequestError
from pygpukit.llm.serving.server import serve

TOOLS: Any = [{"type": "function", "name": "weather", "parameters": WEATHER, "strict": True}]


@pytest.fixture
def played() -> Calling:
    made = Calling()
    made.words = ["Par", "is", " ", "\U0001f680", "."]
    return made


@pytest.fixture
def client(played: Any) -> Iterator[openai.OpenAI]:
    with (
        serve(played, port=0) as server,
        openai.OpenAI(base_url=server.url, api_key=server.token, max_retries=0, timeout=PATIENCE_S) as made,
    ):
        yield made


def test_a_text_at_once(client: openai.OpenAI, played: PlayedModel) -> None:
    answer = client.responses.create(
        model="toy", instructions="Be brief.", input="Capital?", max_output_tokens=9, temperature=0, metadata={"a": "b"}
    )
    assert answer.output_text == "Paris \U0001f680." and answer.status == "completed" and answer.error is None
    assert answer.id.startswith("resp_") and answer.model == "toy" and answer.metadata == {"a": "b"}
    assert answer.usage is not None and answer.usage.input_tokens == 3 and answer.usage.output_tokens == 5
    assert answer.usage.input_tokens_details.cached_tokens == 1
    assert played.asked[-1][0] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Capital?"},
    ]
    assert played.asked[-1][1] == 9
    cut = client.responses.create(model="toy", input="Capital?", max_output_tokens=2)
    assert cut.status == "incomplete" and cut.output_text == "Paris"
    assert cut.incomplete_details is not None and cut.incomplete_details.reason == "max_output_tokens"


def test_a_text_as_it_comes(client: openai.OpenAI) -> None:
    events = list(client.responses.create(model="toy", input="Capital?", stream=True))
    assert [event.type for event in events] == [
        "response.created", "response.in_progress", "response.output_item.added", "response.content_part.added",
        *["response.output_text.delta"] * 5,
        "response.output_text.done", "response.content_part.done", "response.output_item.done", "response.completed",
    ]  # fmt: skip
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == "Paris \U0001f680."
    last: Any = events[-1]
    assert last.response.output_text == "Paris \U0001f680." and last.response.usage.total_tokens == 8
    assert {event.item_id for event in events if event.type == "response.output_text.delta"} == {
        last.response.output[0].id
    }
    with client.responses.stream(model="toy", input="Capital?") as stream:  # the client's own reading of the events
        stream.until_done()
        assert stream.get_final_response().output_text == "Paris \U0001f680."


@pytest.mark.parametrize("stream", [False, True])
def test_calls_come_back_and_their_outputs_go_in(client: openai.OpenAI, played: Calling, stream: bool) -> None:
    played.words = ["I", " look", ".\n", *(CALL[n : n + 5] for n in range(0, len(CALL), 5))]
    question: Any = [{"role": "user", "content": [{"type": "input_text", "text": "Hot in Rome?"}]}]
    answer: Any = client.responses.create(model="toy", input=question, tools=TOOLS, stream=stream)
    if stream:
        events = list(answer)
        pieces = [event.delta for event in events if event.type == "response.function_call_arguments.delta"]
        assert len(pieces) > 3 and json.loads("".join(pieces)) == {"city": "Rome", "days": 2}
        answer = events[-1].response
    text, call = answer.output
    assert text.content[0].text == "I look." and call.type == "function_call" and call.name == "weather"
    assert json.loads(call.arguments) == {"city": "Rome", "days": 2} and call.call_id.startswith("call_")
    assert played.asked[-1][3]["variables"]["tools"][0]["function"] == {
        "name": "weather", "parameters": WEATHER, "strict": True,
    }  # fmt: skip
    played.words = ["Yes", "."]
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "30 C"}
    again = client.responses.create(model="toy", input=[*question, *answer.output, output], tools=TOOLS)
    assert again.output_text == "Yes."
    prompt = played.asked[-1][0]
    assert [message["role"] for message in prompt] == ["user", "assistant", "tool"]
    assert prompt[1]["content"] == "I look."
    assert prompt[1]["tool_calls"][0]["function"] == {"name": "weather", "arguments": {"city": "Rome", "days": 2}}
    assert prompt[2] == {"role": "tool", "content": "30 C", "tool_call_id": call.call_id}


def test_thinking_and_forms_of_a_real_model() -> None:
    template = TEMPLATE + "{% if enable_thinking %}<think>{% endif %}"
    own = speaking.tokenizer(template, words=("<think>", "</think>"))
    model = speaking.model(own, context=512)
    end = own.token_to_id("</think>")
    model.generation = {"temperature": 1.0}
    with (
        serve(model, port=0) as server,
        openai.OpenAI(base_url=server.url, api_key=server.token, max_retries=0, timeout=PATIENCE_S) as client,
    ):
        schema: Any = {"format": {"type": "json_schema", "name": "weather", "schema": WEATHER}}
        assert end is not None
        plain = client.responses.create(
            model="tiny", input="hello", text=schema, reasoning={"effort": "none"}, extra_body={"seed": 1}
        )
        jsonschema.validate(json.loads(plain.output_text), WEATHER)
        assert [item.type for item in plain.output] == ["message"]
        for stream in (False, True):
            fields: Any = {"max_output_tokens": 30, "stream": stream, "extra_body": {"seed": 1}}
            answer: Any = client.responses.create(model="tiny", input="hello", reasoning={"effort": "high"}, **fields)
            if stream:
                events = list(answer)
                assert any(event.type == "response.reasoning_text.delta" for event in events)
                answer = events[-1].response
            assert answer.output[0].type == "reasoning" and answer.output[0].content[0].text
            assert answer.usage.output_tokens_details.reasoning_tokens > 0


@pytest.mark.parametrize(
    "body, param",
    [
        ({}, "input"),
        ({"input": []}, "input"),
        ({"input": 5}, "input"),
        ({"input": ["x"]}, "input"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]}, "input"),
        ({"input": [{"role": "judge", "content": "x"}]}, "input"),
        ({"input": "x", "instructions": 1}, "instructions"),
        ({"input": "x", "previous_response_id": "resp_1"}, "previous_response_id"),
        ({"input": "x", "max_output_tokens": 0}, "max_output_tokens"),
        ({"input": "x", "text": {"format": {"type": "xml"}}}, "text"),
        ({"input": "x", "tools": [{"type": "web_search"}]}, "tools[0]"),
        ({"input": "x", "reasoning": {"effort": "huge"}}, "reasoning"),
        ({"input": "x", "reasoning": {"enabled": "yes"}}, "reasoning"),
        ({"input": "x", "background": True}, "background"),
        ({"input": "x", "frequency": 1}, "frequency"),
    ],
)
def test_wrong_requests_are_named(body: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as caught:
        responses.parsed(json.dumps({"model": "toy", **body}).encode())
    assert caught.value.param == param
