"""Answers of a given form: by construction, whatever the model, the batch and the cache."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import jsonschema
import pytest
from llm import speaking

import pygpukit as gp
from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.extras import install_command
from pygpukit.llm import grammar
from pygpukit.llm.model import CausalTransformerModel

SCHEMA = {
    "type": "object",
    "properties": {"kind": {"enum": ["cat", "dog"]}, "age": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["kind", "age"],
    "additionalProperties": False,
}
JSON = gp.llm.Grammar.json(SCHEMA)
HEX = gp.llm.Grammar.regex(r"0x[0-9a-f]{2,6}(, 0x[0-9a-f]{2})?")


@pytest.fixture(scope="module")
def model() -> CausalTransformerModel:
    return speaking.model(slots=4, context=256)


@pytest.mark.parametrize("temperature", [0.0, 1.0, 5.0])
def test_answers_have_the_form(model: CausalTransformerModel, temperature: float) -> None:
    for seed in range(4):
        settings: dict[str, Any] = {"temperature": temperature, "seed": seed}
        answer = model.stream("hello", 120, grammar=JSON, **settings).complete()
        assert answer.finish_reason == "stop"
        jsonschema.validate(json.loads(answer.text), SCHEMA)
        answer = model.stream("hello", 120, grammar=HEX, **settings).complete()
        assert answer.finish_reason == "stop"
        assert re.fullmatch(r"0x[0-9a-f]{2,6}(, 0x[0-9a-f]{2})?", answer.text)


def test_what_is_cut_is_the_beginning_of_one(model: CausalTransformerModel) -> None:
    answer = model.stream("hello", 9, grammar=JSON, temperature=1.0, seed=3).complete()
    assert answer.finish_reason == "length"
    assert any(
        json.dumps({"kind": kind}).replace(" ", "").startswith(re.sub(r"\s", "", answer.text))
        for kind in ("cat", "dog")
    )


def test_an_answer_has_the_bits_that_it_has_alone(model: CausalTransformerModel) -> None:
    asked: list[dict[str, Any]] = [
        {"grammar": JSON, "temperature": 1.0, "seed": 1},
        {"temperature": 1.0, "seed": 2},
        {"grammar": HEX, "temperature": 1.5, "seed": 3, "repetition_penalty": 1.3, "logit_bias": {50: 2.0}},
        {},
        {"grammar": JSON},
        {"presence_penalty": 1.0, "seed": 4, "temperature": 1.0},
    ]
    alone = [model.stream("hello", 40, top=3, **settings).complete() for settings in asked]
    together = [model.stream("hello", 40, top=3, **settings) for settings in asked]
    for one, generation in zip(alone, together, strict=True):
        other = generation.complete()
        assert [(t.token_id, t.logprob) for t in one.tokens] == [(t.token_id, t.logprob) for t in other.tokens]
    batch = model.generate_batch(["hello", "hell"], 60, grammar=JSON, temperature=1.0, seed=9)
    for number, completion in enumerate(batch):
        again = model.stream(["hello", "hell"][number], 60, grammar=JSON, temperature=1.0, seed=9, request=number)
        assert completion.token_ids == again.complete().token_ids
        jsonschema.validate(json.loads(completion.text), SCHEMA)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_drafts_change_nothing(model: CausalTransformerModel, temperature: float) -> None:
    form = gp.llm.Grammar.regex("(abcab ?){9}c")  # which n-grams draft well, and cannot end
    for chosen in (form, JSON, HEX):
        settings: dict[str, Any] = {"grammar": chosen, "temperature": temperature, "seed": 2, "top": 2}
        one = model.stream("abcabcabcab", 60, **settings).complete()
        other = model.stream(
            "abcabcabcab", 60, speculate=gp.llm.Speculation("ngram", always=True), **settings
        ).complete()
        assert other.token_ids == one.token_ids and other.finish_reason == one.finish_reason
        assert [token.logprob for token in other.tokens] == [token.logprob for token in one.tokens]
        assert chosen is not form or other.figures.accepted > 5


def test_one_that_gives_way_goes_on_where_it_was() -> None:
    wide = speaking.model(slots=4, context=256)
    narrow = speaking.model(slots=1, context=256)  # four blocks, for three answers of two each
    prompts = ["hello" * 9 + str(n) for n in range(3)]
    form = gp.llm.Grammar.regex("[a-z]{70,90}")
    alone = [wide.stream(prompt, 90, grammar=form, temperature=1.0, seed=5).complete().token_ids for prompt in prompts]
    generations = [narrow.stream(prompt, 90, grammar=form, temperature=1.0, seed=5) for prompt in prompts]
    found: list[list[int]] = [[] for _ in prompts]
    going = set(range(3))
    while going:
        for number in sorted(going):
            token = next(generations[number], None)
            if token is None:
                going.remove(number)
            else:
                found[number].append(token.token_id)
    assert found == alone
    assert sum(generation._answer.sequence.preemptions for generation in generations) > 0


def test_thinking_comes_before_the_form() -> None:
    template = "{% for m in messages %}{{ m.content }}{% endfor %}{% if not quiet %}<think>{% endif %}"
    own = speaking.tokenizer(template, words=("<think>", "</think>"))
    model = speaking.model(own, context=256)
    messages = [{"role": "user", "content": "hello"}]
    end = own.token_to_id("</think>")
    assert end is not None
    settings: dict[str, Any] = {"temperature": 1.0, "seed": 1, "logit_bias": {end: 6.0}}
    answer = model.chat(messages, 120, grammar=JSON, **settings).complete()
    assert answer.finish_reason == "stop" and end in answer.token_ids
    jsonschema.validate(json.loads(answer.text), SCHEMA)
    quiet = model.chat(messages, 120, grammar=JSON, variables={"quiet": True}, **settings).complete()
    assert end not in quiet.token_ids
    jsonschema.validate(json.loads(quiet.text), SCHEMA)


@pytest.mark.parametrize(
    "form, why",
    [
        (lambda: gp.llm.Grammar.regex("(a"), "unclosed group"),
        (lambda: gp.llm.Grammar.json({"type": "nope"}), "nope"),
        (lambda: gp.llm.Grammar.lark("start: missing"), "missing"),
        (lambda: gp.llm.Grammar.lark("x" * (1 << 18)), "at most"),
        (lambda: gp.llm.Grammar.regex("(" * 3000 + "a" + ")" * 3000), "cannot be used"),
        (lambda: "a+", "give a gp.llm.Grammar"),
    ],
)
def test_what_is_no_grammar_is_refused_before_anything_begins(
    model: CausalTransformerModel, form: Any, why: str
) -> None:
    with pytest.raises(InvalidSpecError, match=why) as caught:
        model.stream("hello", grammar=form())
    assert caught.value.field == "grammar"
    assert not model.engine.loop.scheduler.waiting


def test_a_grammar_needs_a_tokenizer_and_its_extra(
    model: CausalTransformerModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    mute = speaking.model()
    mute.tokenizer = None
    with pytest.raises(InvalidSpecError, match="knows no grammar"):
        mute.stream([1, 2], grammar=HEX)
    monkeypatch.setitem(sys.modules, "llguidance", None)
    with pytest.raises(ModuleNotFoundError) as caught:
        gp.llm.Grammar.regex("a")
    assert install_command("grammar") in str(caught.value)


def test_compiled_grammars_are_kept_up_to_a_number(model: CausalTransformerModel) -> None:
    for number in range(3 * grammar._KEPT):
        model.stream("hello", 1, grammar=gp.llm.Grammar.regex(f"a{{{number + 1}}}")).complete()
    (own,) = grammar._vocabularies[model.tokenizer].values()  # type: ignore[index]
    assert len(own._compiled) == grammar._KEPT
