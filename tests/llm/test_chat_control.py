"""Control tokens, thinking and template variables of answers, on a small model whose tokens are bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import model_files
import pytest

import pygpukit as gp
from pygpukit.core.errors import InvalidSpecError
from pygpukit.llm.model import CausalTransformerModel

TEMPLATE = (
    "{% for m in messages %}<|a|>{{ m.content }}<|b|>{% endfor %}<|a|>{% if enable_thinking is not defined "
    "or enable_thinking %}<think>{% endif %}"
)
CALM = {"variables": {"enable_thinking": False}}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> CausalTransformerModel:
    fields = {"tokenizer.chat_template": TEMPLATE}
    return gp.llm.load(model_files.llama(tmp_path_factory.mktemp("m") / "m.gguf", **fields), progress=False)


def said(model: CausalTransformerModel, prompt: Any, tokens: list[int], **settings: Any) -> Any:
    """An answer of these tokens, whatever the model would say."""
    with model.stream(prompt, len(tokens), ignore_eos=True, **settings) as answer:
        for token in tokens:
            if answer._answer.take(_choice(token)).finish_reason is not None:
                break
    return answer.completion


def _choice(token: int) -> Any:
    from pygpukit.llm.engine.sampling import Choice

    return Choice(token, -0.5, 1.0, ((token, -0.5), (0xC3, -1.0)))


def spelled(model: CausalTransformerModel, text: str) -> list[int]:
    assert model.tokenizer is not None
    return model.tokenizer.encode(text, add_special_tokens=False)


@pytest.mark.parametrize("stop", ["<|c|>", "<|a|>", "o<|a|>", "<|a|><|b|>", "<|b|>wo"])
def test_stop_strings_match_control_tokens(model: CausalTransformerModel, stop: str) -> None:
    tokens = spelled(model, "hello<|a|><|b|>wo<|c|>!")
    plain = said(model, "x", tokens)
    assert plain.text == "hellowo<|c|>!" and plain.finish_reason == "length"  # <|c|> is no control token
    answer = said(model, "x", tokens, stop=stop)
    assert answer.finish_reason == "stop"
    assert answer.text == "hello<|a|><|b|>wo<|c|>!".split(stop)[0].replace("<|a|>", "").replace("<|b|>", "")


def test_thinking_is_taken_out_of_chats_of_models_that_think(model: CausalTransformerModel) -> None:
    tokens = spelled(model, "one</think>\n\ntwo<think>three</think>four")
    question = [{"role": "user", "content": "q"}]
    begun = said(model, question, tokens)
    assert (begun.thinking, begun.text) == ("onethree", "twofour")
    calm = said(model, question, tokens, **CALM)
    assert (calm.thinking, calm.text) == ("three", "one</think>\n\ntwofour")
    raw = said(model, "q", tokens)
    assert (raw.thinking, raw.text) == ("", "one</think>\n\ntwo<think>three</think>four")


def test_models_that_do_not_think_say_tags(tmp_path: Path) -> None:
    fields = {"tokenizer.chat_template": "{{ messages[0].content }}"}
    plain = gp.llm.load(model_files.llama(tmp_path / "m.gguf", **fields), progress=False)
    answer = said(plain, [{"role": "user", "content": "q"}], spelled(plain, "<think>a</think>b"))
    assert (answer.thinking, answer.text) == ("", "<think>a</think>b")


def test_variables_and_control_tokens_of_a_chat(model: CausalTransformerModel) -> None:
    question = [{"role": "user", "content": "<|a|>"}]
    begin = spelled(model, "<|a|>")[0]
    prompts = [
        model.stream(question, 1, **settings)._answer.sequence.prompt
        for settings in ({}, CALM, {"control_tokens": True, **CALM})
    ]
    assert [prompt.count(begin) for prompt in prompts] == [2, 2, 3]
    assert prompts[0][: len(prompts[1])] == prompts[1] and len(prompts[0]) > len(prompts[1])
    chat = gp.llm.Conversation(model, max_new_tokens=1, **CALM)
    chat.ask("hello")
    assert chat.wait(60) and chat.messages[-1].finish_reason == "length"
    for wrong in ({"variables": 3}, {"variables": {"messages": []}}, {"variables": {3: 4}}, {"control_tokens": "no"}):
        with pytest.raises(InvalidSpecError, match=next(iter(wrong))):
            model.chat("q", **wrong)  # type: ignore[arg-type]


def test_tokens_of_parts_of_a_character_have_their_bytes(model: CausalTransformerModel) -> None:
    tokens = spelled(model, "\u00e9")
    answer = said(model, "x", tokens)
    assert [token.raw for token in answer.tokens] == [b"\xc3", b"\xa9"]
    assert [token.text for token in answer.tokens] == ["", "\u00e9"]
    assert answer.tokens[0].top[0].raw == b"\xc3"


@pytest.mark.parametrize(("change", "why"), [({"tokenizer.ggml.pre": "odd"}, "'odd'"), ({}, "tokenizer.json")])
def test_the_reason_why_there_is_no_tokenizer_is_told(tmp_path: Path, change: dict[str, Any], why: str) -> None:
    if change:
        path = model_files.llama(tmp_path / "m.gguf", **change)
    else:
        from llm.tiny_weights import CONFIGS, tensors

        path = model_files.folder(tmp_path / "m", tensors(CONFIGS["llama"]), **CONFIGS["llama"])
        (path / "tokenizer.json").write_text("{}")
    model = gp.llm.load(path, progress=False)
    assert model.tokenizer is None and why in model.tokenizer_problem
    for ask in (lambda: model.generate("hi"), lambda: model.chat("hi"), lambda: model.stream([1], 2, stop="x")):
        with pytest.raises(InvalidSpecError, match="no tokenizer") as raised:
            ask()
        assert why in str(raised.value)
    assert len(model.generate([1, 2], 2)) == 4
