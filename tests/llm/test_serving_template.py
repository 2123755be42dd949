"""Variables of a request reach the chat template, and the switch of thinking by what the template has."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from llm.test_serving import MESSAGES, PATIENCE_S, PlayedModel, chat

from pygpukit.core.errors import InvalidSpecError
from pygpukit.llm.serving.errors import RequestError
from pygpukit.llm.serving.server import serve
from pygpukit.llm.serving.thinking import variables_of

QWEN3 = "{%- if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>{% endif %}"
GRANITE = "{%- if thinking %}Think.{% endif %}"
GPT = "Reasoning: {{ reasoning_effort | default('medium') }}"
PLAIN = "You are thinking. {{ messages[0].thinking }} {{ 'thinking' }} {% set rethinking = 1 %}"


@pytest.mark.parametrize(
    "template, effort, variables",
    [
        (QWEN3, "none", {"enable_thinking": False}),
        (QWEN3, "low", {"enable_thinking": True}),
        (GRANITE, "none", {"thinking": False}),
        (GPT, "high", {"reasoning_effort": "high"}),
        (QWEN3 + GPT, "none", {"enable_thinking": False, "reasoning_effort": "none"}),
        (PLAIN, None, {}),
    ],
)
def test_the_switch_is_what_the_template_has(template: str, effort: str | None, variables: dict[str, Any]) -> None:
    assert variables_of(effort, template) == variables


@pytest.mark.parametrize("template", [PLAIN, "", None])
def test_a_model_without_a_switch_refuses_it(template: str | None) -> None:
    with pytest.raises(RequestError, match="no switch of thinking"):
        variables_of("none", template)


@pytest.mark.parametrize(
    "fields, effort",
    [
        ({}, None),
        ({"reasoning": {}}, None),
        ({"reasoning": {"effort": "low", "summary": "auto"}}, "low"),
        ({"reasoning": {"enabled": False}}, "none"),
        ({"reasoning": {"enabled": True}}, "medium"),
        ({"reasoning_effort": "minimal"}, "minimal"),
    ],
)
def test_the_switch_of_a_request(fields: dict[str, Any], effort: str | None) -> None:
    assert chat(**fields).effort == effort


@pytest.mark.parametrize(
    "fields, param",
    [
        ({"reasoning": "low"}, "reasoning"),
        ({"reasoning": {"much": 1}}, "reasoning"),
        ({"reasoning": {"enabled": "no"}}, "reasoning"),
        ({"reasoning_effort": "huge"}, "reasoning_effort"),
        ({"chat_template_kwargs": [1]}, "chat_template_kwargs"),
    ],
)
def test_wrong_switches_are_named(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as caught:
        chat(**fields)
    assert caught.value.param == param


class Template:
    """What the server uses of a tokenizer."""

    chat_template, vocab_size = QWEN3, 1

    def id_to_token(self, _: int) -> str:
        return "x" * 99


class Thinking(PlayedModel):
    """One whose template has a switch."""

    def __init__(self) -> None:
        super().__init__()
        self.tokenizer = Template()

    def stream(self, prompt: Any, limit: int, **settings: Any) -> Any:
        if "messages" in (settings.get("variables") or {}):
            raise InvalidSpecError("variables={'messages': ...}; give an object of names and values", "variables")
        return super().stream(prompt, limit, **settings)


def test_variables_reach_the_model() -> None:
    model: Any = Thinking()
    with (
        serve(model, port=0) as server,
        openai.OpenAI(base_url=server.url, api_key=server.token, max_retries=0, timeout=PATIENCE_S) as client,
    ):

        def ask(**fields: Any) -> Any:
            client.chat.completions.create(model="toy", messages=MESSAGES, **fields)
            return model.asked[-1][3].get("variables")

        assert ask() is None
        assert ask(reasoning_effort="none") == {"enable_thinking": False}
        own = {"date": "Monday", "enable_thinking": True}
        assert ask(reasoning_effort="none", extra_body={"chat_template_kwargs": own}) == own
        with pytest.raises(openai.BadRequestError) as caught:
            ask(extra_body={"chat_template_kwargs": {"messages": []}})
        assert caught.value.param == "chat_template_kwargs"
        with pytest.raises(openai.BadRequestError, match="room for at most 6336 characters"):
            ask(extra_body={"chat_template_kwargs": {"documents": [{"text": "long " * 2000}]}})
