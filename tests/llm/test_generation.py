"""Answers: limits, seeds, penalties, stopping, several at once, async, under the scheduler, and what is refused."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from pathlib import Path
from typing import Any

import model_files
import numpy as np
import pytest
from llm import tiny

import pygpukit as gp
from pygpukit.core.errors import InvalidSpecError, ShapeError
from pygpukit.llm.model import CausalTransformerModel
from pygpukit.scheduler import Scheduler

pytestmark = pytest.mark.usefixtures("backend_name")

PROMPT = [3, 14, 15, 92, 65]


@pytest.fixture(scope="module")
def model() -> CausalTransformerModel:
    return tiny.model("llama", slots=4, context=128)


def is_free(model: CausalTransformerModel) -> bool:
    """Nothing of the KV cache is in use."""
    scheduler = model.engine.loop.scheduler
    return scheduler.blocks.free == scheduler.blocks.count and not scheduler.running and not scheduler.waiting


def test_documented_generate_gives_all_ids_and_repeats_by_seed(model: CausalTransformerModel) -> None:
    first = model.generate(PROMPT, 32, seed=5)
    assert first[:5] == PROMPT
    assert len(first) == 37
    assert model.generate(PROMPT, 32, 1.0, 50, 0.9, seed=5) == first
    assert model.generate(PROMPT, max_new_tokens=32, seed=6) != first
    assert [*PROMPT, *model.generate_stream(PROMPT, 32, seed=5)] == first


def test_a_drawn_seed_is_told_and_repeats_the_answer(model: CausalTransformerModel) -> None:
    stream = model.stream(PROMPT, 20, temperature=1.0)
    first = stream.complete()
    assert stream.seed == first.seed
    assert model.stream(PROMPT, 20, temperature=1.0, seed=first.seed).complete().token_ids == first.token_ids


def test_an_answer_ends_where_the_context_ends(model: CausalTransformerModel) -> None:
    answer = model.stream(PROMPT, 1000).complete()
    assert len(answer.tokens) == 128 - len(PROMPT)
    assert answer.finish_reason == answer.tokens[-1].finish_reason == "length"
    assert answer.figures.context_used == 128


def test_a_step_that_is_begun_ahead_changes_no_token(model: CausalTransformerModel) -> None:
    loop = model.engine.loop
    settings = [{"seed": seed, "temperature": 1.0} for seed in (1, 2)]
    alone = []
    for given in settings:
        stream = model.stream(PROMPT, 30, **given)
        tokens = [next(stream).token_id]  # by its prompt: nothing can follow before the host has seen it
        for _ in range(28):
            tokens.append(next(stream).token_id)
            assert len(loop._begun) == 1
        alone.append([*tokens, next(stream).token_id])
        assert not loop._begun
    streams = [model.stream(PROMPT, 30, **given) for given in settings]
    found: list[list[int]] = [[], []]
    for turn in range(10):  # the second ends early; what was begun for it is of no use
        for stream, tokens in list(zip(streams, found, strict=True))[: 1 if turn > 3 else 2]:
            tokens += [next(stream).token_id for _ in range(3)]
    streams[1].close()
    assert found == [alone[0], alone[1][:12]]
    again = model.stream([*PROMPT, 7], 30)
    assert next(again).token_id == model.stream([*PROMPT, 7], 1).complete().token_ids[0]
    again.close()
    assert model.stream(PROMPT, 30, **settings[1]).complete().token_ids == alone[1]
    assert is_free(model)


def test_end_tokens_end_it_unless_they_are_ignored(model: CausalTransformerModel) -> None:
    plain = model.stream(PROMPT, 10).complete()
    last = plain.token_ids[4]
    first = plain.token_ids.index(last)
    ended = model.stream(PROMPT, 10, eos_token_id=last).complete()
    assert ended.token_ids == plain.token_ids[: first + 1]
    assert ended.finish_reason == "stop"
    ignored = model.stream(PROMPT, 10, eos_token_id=last, ignore_eos=True).complete()
    assert ignored.token_ids == plain.token_ids


def test_bias_and_penalties_change_the_choice(model: CausalTransformerModel) -> None:
    assert set(model.stream(PROMPT, 8, logit_bias={7: 1e4}).complete().token_ids) == {7}
    plain = model.stream(PROMPT, 60).complete().token_ids
    penalised = model.stream(PROMPT, 60, presence_penalty=1e4).complete().token_ids
    assert len(set(plain)) < 60
    assert len(set(penalised)) == 60


def test_logprobs_are_those_of_the_logits(model: CausalTransformerModel) -> None:
    stream = model.stream(PROMPT, 1, top=3)
    token = next(stream)
    logits = model.engine.loop.firsts.logits().to_numpy()[0].astype(np.float64)
    logprobs = logits - np.log(np.exp(logits - logits.max()).sum()) - logits.max()
    best = np.argsort(-logits)[:3]
    assert [one.token_id for one in token.top] == best.tolist()
    assert token.token_id == best[0]
    assert token.logprob == pytest.approx(logprobs[best[0]], abs=1e-5)
    assert token.margin == pytest.approx(logits[best[0]] - logits[best[1]], abs=1e-5)
    assert [one.logprob for one in token.top] == pytest.approx(logprobs[best].tolist(), abs=1e-5)


def test_stop_ends_within_one_step_and_gives_the_slot_back(model: CausalTransformerModel) -> None:
    stream = model.stream(PROMPT, 100)
    next(stream)
    stream.stop()
    assert list(stream) == []
    assert stream.finish_reason == "cancelled"
    assert len(stream.completion.tokens) == 1
    assert is_free(model)


def test_more_answers_than_the_cache_has_room_for_take_turns_in_it() -> None:
    model = tiny.model("llama", context=64)  # one block
    prompts = [PROMPT, [9, 8, 7], [1, 2, 3, 4]]
    alone = [model.stream(prompt, 40).complete().token_ids for prompt in prompts]
    streams = [model.stream(prompt, 40) for prompt in prompts]
    turns = [[token.token_id for token in turn] for turn in zip(*streams, strict=True)]
    assert [list(one) for one in zip(*turns, strict=True)] == alone
    assert [answer.token_ids for answer in model.generate_batch(prompts, 40)] == alone
    assert is_free(model)


def test_streams_that_take_turns_say_what_they_say_alone(model: CausalTransformerModel) -> None:
    prompts = [PROMPT, [9, 8, 7], [1, 2, 3, 4, 5, 6]]
    alone = [model.stream(prompt, 20).complete().token_ids for prompt in prompts]
    model.engine.loop.clear()
    streams = [model.stream(prompt, 20) for prompt in prompts]
    turns = [[token.token_id for token in turn] for turn in zip(*streams, strict=True)]
    assert [list(one) for one in zip(*turns, strict=True)] == alone


def test_a_conversation_that_goes_on_is_found_in_the_cache_with_the_same_bits(model: CausalTransformerModel) -> None:
    model.engine.loop.clear()
    text = [int(x) for x in np.random.default_rng(1).integers(0, 99, 100)]
    cold = model.stream(text, 10, top=1).complete()
    model.engine.loop.clear()
    model.stream(text[:70], 10).complete()
    warm = model.stream(text, 10, top=1).complete()
    assert (cold.figures.reused_tokens, warm.figures.reused_tokens) == (0, 64)
    assert [t.logprob for t in warm.tokens] == [t.logprob for t in cold.tokens]


def test_async_iteration_gives_the_same_tokens(model: CausalTransformerModel) -> None:
    async def collect() -> list[int]:
        return [token.token_id async for token in model.stream(PROMPT, 12)]

    assert asyncio.run(collect()) == model.stream(PROMPT, 12).complete().token_ids


def test_two_models_under_the_scheduler_say_what_they_say_alone() -> None:
    models = [tiny.model("llama", slots=1, context=128), tiny.model("qwen3", slots=1, context=128)]
    alone = [model.stream(PROMPT, 40, top=1).complete() for model in models]
    for model in models:
        model.engine.loop.clear()
    scheduler = Scheduler(start=False)
    both = threading.Barrier(2, timeout=60)

    def run(model: CausalTransformerModel) -> list[float | None]:
        both.wait()
        return [token.logprob for token in model.stream(PROMPT, 40, top=1)]

    tasks = [
        scheduler.submit(run, model, bandwidth=share, name=f"model {share}")
        for model, share in zip(models, (0.6, 0.3), strict=True)
    ]
    for task, expected in zip(tasks, alone, strict=True):
        assert task.result(timeout=120) == [token.logprob for token in expected.tokens]


@pytest.mark.parametrize(
    ("prompt", "settings", "said"),
    [
        ([], {}, "empty"),
        ([99], {}, "99"),
        ([1] * 200, {}, "73 too many"),
        ([1], {"max_new_tokens": 0}, "max_new_tokens"),
        ([1], {"temperature": -1.0}, "temperature"),
        ([1], {"top_p": 0.0}, "top_p"),
        ([1], {"repetition_penalty": 0.0}, "repetition_penalty"),
        ([1], {"seed": -1}, "seed"),
        ([1], {"top": 21}, "top"),
        ([1], {"logit_bias": {99: 1.0}}, "99"),
        ([1], {"temprature": 1.0}, "temprature"),
        ([1], {"logit_bias": {1: 0.0, 99: 1.0}, "top_k": 2**70}, "99"),
        ([1], {"max_new_tokens": 1.5}, "max_new_tokens=1.5; give a whole number"),
        ([1], {"max_new_tokens": "2"}, "max_new_tokens='2'"),
        ([1], {"eos_token_id": "x"}, "eos_token_id='x'; give token ids of 0 to 98"),
        ([1], {"eos_token_id": [3, -1]}, "eos_token_id=-1"),
        ([1], {"eos_token_id": 99}, "eos_token_id=99"),
        ([1], {"eos_token_id": [[1]]}, r"eos_token_id=\[1\]"),
        ([1], {"ignore_eos": "no"}, "ignore_eos='no'; give True or False"),
        ([1], {"stop": 3}, "stop=3; give a text"),
        ([1], {"stop": [1]}, r"stop=\[1\]"),
        ([1], {"stop": ["x", ""]}, "none of them empty"),
        ([1], {"stop": "x"}, "no tokenizer"),
        ("text", {}, "no tokenizer"),
    ],
)
def test_what_cannot_be_is_refused_by_name(
    model: CausalTransformerModel, prompt: object, settings: dict, said: str
) -> None:
    with pytest.raises(InvalidSpecError, match=said):
        model.stream(prompt, **settings).complete()  # type: ignore[arg-type]
    assert is_free(model)


def test_settings_of_another_type_are_refused_when_they_are_made() -> None:
    nan = float("nan")
    wrong: dict[str, list[Any]] = {
        "temperature": ["0.5", None, [1], nan, 1e40],
        "top_k": [1.5, "3", nan, None, True],
        "top_p": ["0.9", None, nan],
        "min_p": ["x", nan],
        "repetition_penalty": ["1", 1e-60, nan],
        "presence_penalty": ["1", float("inf")],
        "frequency_penalty": [None, 1e40],
        "logit_bias": [[1], "x", {1.5: 1}, {"a": 1}, {1: "x"}, {1: nan}, {-1: 2}],
        "seed": [1.5, "1", 2**64, True],
        "request": [1.5, "x", None],
        "top": [1.5, "3", nan],
    }
    for name, values in wrong.items():
        for value in values:
            with pytest.raises(InvalidSpecError, match=name):
                gp.llm.Sampling(**{name: value})
    right = {"temperature": np.float32(0.5), "top_k": np.int64(3), "seed": 2**64 - 1, "top": np.uint8(2)}
    assert gp.llm.Sampling(**right, logit_bias={np.int32(1): -np.inf, 2: np.float32(np.inf)}).packed()
    assert gp.llm.Sampling(top_k=2**80).packed()


def test_what_is_no_prompt_is_refused_and_ids_become_ints(model: CausalTransformerModel) -> None:
    wrong: list[Any] = [None, 3, [1.5], [1, 1.5], [[1]], {"role": "user"}, ["a"], [None], gp.from_numpy(np.arange(3))]
    for prompt in wrong:
        for ask in (model.generate, model.stream, lambda prompt: model.generate_batch([prompt])):
            with pytest.raises(TypeError, match="prompt"):
                ask(prompt)
    batches: list[Any] = ["ab", {"role": "user"}, 3, None]
    for prompts in batches:
        with pytest.raises(TypeError, match="give a list of prompts"):
            model.generate_batch(prompts)
    with pytest.raises(TypeError, match="prompt=1; give text"):
        model.generate_batch([1, 2, 3, 4, 5])  # type: ignore[list-item]
    with pytest.raises(InvalidSpecError, match=r"input_ids=1.5"):
        model([1, 1.5])  # type: ignore[list-item]
    ids = model.generate(np.array(PROMPT), 2)  # type: ignore[call-overload]
    assert [type(one) for one in ids] == [int] * 7
    assert is_free(model)


def test_a_batch_takes_its_stop_strings_and_prompts_from_iterators(model: CausalTransformerModel) -> None:
    plain = model.stream(PROMPT, 6).complete().token_ids
    answers = model.generate_batch(iter([PROMPT, PROMPT]), 6, eos_token_id=iter([plain[2]]))  # type: ignore[arg-type]
    ended = plain[: plain.index(plain[2]) + 1]
    assert [answer.token_ids for answer in answers] == [ended, ended]


def test_what_fails_when_an_answer_begins_or_is_told_gives_the_slot_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    model = gp.llm.load(model_files.llama(tmp_path / "m.gguf"), context=16, progress=False)
    for stop in ("", [""], 3):
        with pytest.raises(InvalidSpecError, match="none of them empty"):
            model.generate("hello", 2, stop=stop)

    def fail(*_: Any) -> Any:
        raise RuntimeError("on purpose")

    for place in ("AnswerText.__init__", "AnswerText.push"):
        with monkeypatch.context() as patch:
            patch.setattr(f"pygpukit.llm.text.{place}", fail)
            with pytest.raises(RuntimeError, match="on purpose") as raised:
                model.generate("hello", 2, ignore_eos=True)
            assert raised.traceback and is_free(model), place
    assert len(model.generate("hello", 2, ignore_eos=True).tokens) == 2


def test_an_answer_that_could_not_begin_changes_no_other(model: CausalTransformerModel) -> None:
    settings: dict[str, Any] = {"temperature": 1.0, "seed": 3, "logit_bias": {1: 0.0}}
    alone = model.stream(PROMPT, 8, **settings).complete().token_ids
    stream = model.stream(PROMPT, 8, **settings)
    found = [next(stream).token_id for _ in range(3)]
    with pytest.raises(InvalidSpecError, match="no token 99"):
        model.stream([7, 8], 8, logit_bias={99: 1.0}).complete()
    found += [next(stream).token_id for _ in range(2)]
    stopped = model.stream([7, 8], 8, logit_bias={2: 0.0})
    stopped.stop()
    assert list(stopped) == [] and stopped.finish_reason == "cancelled"
    found += [token.token_id for token in stream]
    assert found == alone


def test_models_are_loaded_with_room_for_something_or_not_at_all(tmp_path: Path) -> None:
    absent = tmp_path / "absent.gguf"
    for name in ("slots", "context"):
        for value in ("2", 0, -1, 1.5, True):
            with pytest.raises(InvalidSpecError, match=f"{name}={value!r}; give a whole number of 1 or more"):
                gp.llm.load(absent, **{name: value})
        with pytest.raises(InvalidSpecError, match=f"{name}=0"):
            tiny.model("llama", **{name: 0})
    with pytest.raises(TypeError, match="load: model=3; give a name, or the path"):
        gp.llm.load(3)  # type: ignore[arg-type]


def test_models_that_are_not_there_are_refused_by_name() -> None:
    with pytest.raises(InvalidSpecError, match="mixture of experts"):
        gp.llm.detect_model_spec(["model.layers.0.mlp.experts.0.up_proj.weight"])
    with pytest.raises(InvalidSpecError, match="gemma"):
        tiny.model("llama", model_type="gemma")
    with pytest.raises(InvalidSpecError, match="longrope"):
        tiny.model("llama", rope_scaling={"rope_type": "longrope", "factor": 2.0})
    with pytest.raises(InvalidSpecError, match="relu"):
        tiny.model("llama", hidden_act="relu")
    for name in ("hidden_size", "intermediate_size"):
        with pytest.raises(InvalidSpecError, match=f"{name} is 52, must be a multiple of 8"):
            tiny.model("qwen3", **{name: 52})
    with pytest.raises(ShapeError, match="q_proj"):
        from llm.tiny_weights import CONFIGS, tensors

        from pygpukit.llm.weights import from_checkpoint

        wrong = tensors(CONFIGS["llama"])
        wrong["model.layers.0.self_attn.q_proj.weight"] = np.zeros((31, 32), np.float32)
        from_checkpoint(tiny.MemoryCheckpoint(CONFIGS["llama"], wrong))  # type: ignore[arg-type]


def test_an_answer_that_is_collected_with_its_model_gives_its_slot_back(monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", raised.append)
    model = tiny.model("llama", context=16)
    answer = model.stream(PROMPT, 4)
    next(answer)
    answer.itself = answer  # type: ignore[attr-defined]
    del answer
    gc.collect()
    assert not raised and is_free(model)
