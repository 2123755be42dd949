"""Drafts: whatever is proposed, and how often it is right, an answer has the tokens and logprobs of one without."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from llm import guessing, speaking, tiny
from llm.stepping import answered, settled

import pygpukit as gp
from pygpukit.core.errors import GPUError, InvalidSpecError
from pygpukit.llm.drafts.network import DraftModel, OwnLayers
from pygpukit.llm.engine.drafting import Asked, Drafting, right_count
from pygpukit.llm.engine.gain import Gain
from pygpukit.llm.engine.loop import Loop
from pygpukit.llm.engine.room import BLOCK
from pygpukit.llm.engine.sampling import Choice, Sampling
from pygpukit.llm.engine.sequence import Sequence
from pygpukit.llm.generation import Generation, Limits
from pygpukit.llm.model import CausalTransformerModel
from pygpukit.nn.kv_cache import KVCache

CONTEXT = 256
RANDOM = np.random.default_rng(5)
SHARED = [int(x) for x in RANDOM.integers(0, 99, 130)]
PROMPTS = [SHARED[:count] + [int(x) for x in RANDOM.integers(0, 99, 2)] for count in (0, 61, 64, 128, 17)]
SETTINGS: list[dict[str, Any]] = [
    {"top": 2},
    {"temperature": 0.8, "seed": 7},
    {"repetition_penalty": 1.3, "logit_bias": {5: 2.0}, "frequency_penalty": 0.2, "top": 0},
    {"temperature": 1.2, "top_k": 9, "seed": 3, "request": 2, "presence_penalty": 0.5},
    {},
]
ACCEPTANCES = (0.0, 0.3, 0.8, 1.0)


@cache
def model(name: str) -> CausalTransformerModel:
    return tiny.model(name, dtype="bfloat16", context=CONTEXT)


def said(loop: Loop, opened: list[Sequence]) -> list[list[Choice]]:
    """What sequences of a loop say that all come at once."""
    for sequence in opened:
        loop.open(sequence)
    return answered(loop, opened)


def told(choices: list[list[Choice]]) -> list[list[object]]:
    """With what each was asked to tell: in a batch the others' settings tell more of it."""
    return [
        [(c.token, *((c.logprob, c.margin, c.top) if "top" in settings else ())) for c in own]
        for own, settings in zip(choices, SETTINGS, strict=True)
    ]


def sequences(counts: list[int], salt: int = 0) -> list[Sequence]:
    settings = [replace(Sampling(**own), seed=own.get("seed", 1) + salt) for own in SETTINGS]
    return [Sequence(p, n, sampling=s) for p, n, s in zip(PROMPTS, counts, settings, strict=True)]


def loop_of(name: str, blocks: int = 30, max_rows: int = 32, budget: int = 64) -> Loop:
    return Loop(model(name).engine.network, blocks, max_rows=max_rows, budget=budget)


@cache
def plain(name: str, counts: tuple[int, ...], salt: int = 0) -> list[list[Choice]]:
    return said(loop_of(name), sequences(list(counts), salt))


def drafted(loop: Loop, name: str, counts: tuple[int, ...], acceptance: float, salt: int = 0) -> list[Sequence]:
    """The same sequences with drafts; asserts that they say the same."""
    answers = [[choice.token for choice in own] for own in plain(name, counts, salt)]
    opened = sequences(list(counts), salt)
    for number, (sequence, answer) in enumerate(zip(opened, answers, strict=True)):
        sequence.drafting = guessing.drafting(answer, acceptance, seed=number + salt, count=1 + (number + salt) % 6)
        sequence.drafts = sequence.drafting.gain.drafts
    assert told(said(loop, opened)) == told(plain(name, counts, salt))
    assert settled(loop)
    return opened


SHORT = (25, 30, 40, 12, 33)


@pytest.mark.parametrize("acceptance", ACCEPTANCES)
def test_in_batches_at_any_acceptance_each_says_what_it_says_without(acceptance: float) -> None:
    opened = drafted(loop_of("llama"), "llama", SHORT, acceptance)
    ways = [sequence.drafting for sequence in opened]
    assert all(way is not None and way.drafted for way in ways)
    for way, count in zip(ways, SHORT, strict=True):
        assert way is not None
        assert way.accepted == (0 if acceptance == 0.0 else way.drafted if acceptance == 1.0 else way.accepted)
        # The first token follows the prompt; each step gives one, and one more for each draft that was right.
        assert count - 1 <= way.steps + way.accepted <= count


@pytest.mark.parametrize(("blocks", "max_rows", "budget"), [(4, 3, 9), (6, 7, 300), (6, 5, 6), (30, 1, 64)])
def test_where_blocks_and_rows_are_few_and_some_give_way(blocks: int, max_rows: int, budget: int) -> None:
    opened = drafted(loop_of("llama", blocks, max_rows, budget), "llama", SHORT, 0.7)
    if blocks < 30:
        assert any(sequence.preemptions for sequence in opened)


@pytest.mark.parametrize("name", ["gemma3", "gpt2", "gemma2", "phi4", "smollm3", "olmo2", "granite", "qwen3"])
def test_of_every_architecture(name: str) -> None:
    drafted(loop_of(name), name, (12, 14, 10, 9, 16), 0.6)


@pytest.mark.slow
@pytest.mark.turns(110)
@pytest.mark.parametrize("part", range(11))
@pytest.mark.parametrize("acceptance", [0.0, 0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9, 1.0])
def test_ten_thousand_tokens_at_each_acceptance(acceptance: float, part: int) -> None:
    counts = (250, 190, 180, 120, 230)  # 970 tokens
    drafted(loop_of("llama", 8 + part, 5 + part), "llama", counts, acceptance, part)


@pytest.mark.parametrize("proposing", [0.0, 2.0])
def test_drafts_that_are_never_right_are_left_out_by_what_they_cost(
    proposing: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that goes on by 1 in a step, by 1.63 in one with drafts, and by what proposing them takes."""
    network = tiny.model("llama", context=512).engine.network
    [answer] = said(Loop(network, 8, max_rows=8), [Sequence([3], 500)])
    now = 0.0
    loop, rows = Loop(network, 8, max_rows=8, clock=lambda: now), list[int]()
    launch = loop.steps.launch

    def launched(lines: Any) -> Any:
        nonlocal now
        now += 1.0 if len(lines) == 1 else 1.63 + proposing
        rows.append(len(lines))
        return launch(lines)

    monkeypatch.setattr(loop.steps, "launch", launched)
    sequence, own = Sequence([3], 500), guessing.drafting([choice.token for choice in answer], 0.0, always=False)
    sequence.drafting = own
    assert said(loop, [sequence]) == [answer]
    tried = [count for count in rows if count > 1]
    assert own.drafted == sum(count - 1 for count in tried) > 0 == own.accepted
    assert now < 1.02 * len(rows) == 1.02 * 499


def test_preempted_at_any_step_they_go_on_with_the_same_bits() -> None:
    random = np.random.default_rng(9)
    answers = plain("llama", SHORT)
    loop, opened = loop_of("llama"), sequences(list(SHORT))
    for sequence, own in zip(opened, answers, strict=True):
        sequence.drafting = guessing.drafting([choice.token for choice in own], 0.7)
        sequence.drafts = sequence.drafting.gain.drafts
        loop.open(sequence)
    found: list[list[Choice]] = [[] for _ in opened]
    for _ in range(max(SHORT)):
        for number, sequence in enumerate(opened):
            if (choice := loop.next(sequence)) is not None:
                found[number].append(choice)
        if loop.scheduler.running and random.random() < 0.4:
            loop.scheduler._preempt(loop.scheduler.running[random.integers(len(loop.scheduler.running))], [])
    assert told(found) == told(answers)
    assert sum(sequence.preemptions for sequence in opened) > 5


def test_an_end_token_ends_it_even_where_drafts_go_on() -> None:
    own = [choice.token for choice in plain("llama", SHORT)[2]]
    for place in (0, 1, 5, 6, 7, 8):
        end = own[place]
        sequence = sequences(list(SHORT))[2]
        loop = loop_of("llama")
        sequence.end_tokens = frozenset({end})
        sequence.drafting = guessing.drafting(own, 1.0)
        sequence.drafts = 4
        loop.open(sequence)
        found = []
        while (choice := loop.next(sequence)) is not None:
            found.append(choice.token)
        assert found == own[: own.index(end) + 1] and settled(loop)


def test_who_leaves_between_drafts_frees_the_blocks() -> None:
    own = [choice.token for choice in plain("llama", SHORT)[2]]
    loop, sequence = loop_of("llama"), sequences(list(SHORT))[2]
    sequence.drafting = guessing.drafting(own, 0.9)
    sequence.drafts = 4
    loop.open(sequence)
    assert [loop.next(sequence).token for _ in range(7)] == own[:7]  # type: ignore[union-attr]
    loop.close(sequence)
    assert loop.next(sequence) is None and settled(loop)


def test_a_source_that_fails_ends_its_answers_with_the_error() -> None:
    class Broken(guessing.Oracle):
        def propose(self, asked: object) -> list[list[int]]:
            raise GPUError("no idea")

    loop, sequence = loop_of("llama"), sequences(list(SHORT))[0]
    sequence.drafting = Drafting(Broken([], 1.0, 0, 99), Gain(4, always=True))
    sequence.drafts = 4
    loop.open(sequence)
    assert loop.next(sequence) is not None  # of the prompt
    with pytest.raises(GPUError, match="no idea"):
        loop.next(sequence)
    assert settled(loop)


def methods() -> list[gp.llm.Speculation]:
    """Every way to draft, tried in every step."""
    made = [
        gp.llm.Speculation(method, tokens=tokens, always=True)  # type: ignore[arg-type]
        for method, tokens in (("ngram", 5), ("jacobi", 6), ("lookahead", 3), ("layers", 4))
    ]
    other = tiny.model("llama", seed=1, dtype="bfloat16", context=CONTEXT // 2)
    return [*made, gp.llm.Speculation("model", model=other, always=True)]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("number", range(5))
def test_each_method_by_the_public_calls(number: int, settings: dict[str, Any]) -> None:
    asked, prompt, always = model("llama"), [3, 4, 5, 6, 7, 8] * 9, methods()[number]
    one = asked.stream(prompt, 60, ignore_eos=True, **settings).complete()
    other = asked.stream(prompt, 60, ignore_eos=True, speculate=always, **settings).complete()
    assert other.token_ids == one.token_ids
    assert [(t.logprob, t.margin, t.top) for t in other.tokens] == [(t.logprob, t.margin, t.top) for t in one.tokens]
    figures = other.figures
    assert figures.drafted >= figures.accepted >= sum(token.drafted for token in other.tokens) - 1
    assert (one.figures.drafted, one.figures.accepted) == (0, 0)
    prompts = [prompt, prompt[:7], PROMPTS[1]]
    batch = asked.generate_batch(prompts, 20, ignore_eos=True, speculate=always, **settings)
    again = asked.generate_batch(prompts, 20, ignore_eos=True, **settings)
    assert [answer.token_ids for answer in batch] == [answer.token_ids for answer in again]


@pytest.mark.slow
@pytest.mark.turns(20)
@pytest.mark.parametrize("settings", [{"top": 2}, {"temperature": 0.9, "seed": 5, "repetition_penalty": 1.2}])
def test_by_kernels_each_says_what_it_says_without(kernels_on_sim: None, settings: dict[str, Any]) -> None:
    asked = tiny.model("qwen3", dtype="bfloat16", context=128)
    prompt = SHARED[:62]
    one = asked.stream(prompt, 5, ignore_eos=True, **settings).complete()
    loop = Loop(asked.engine.network, 6, max_rows=8, budget=80)
    sequence = Sequence(prompt, 5, sampling=Sampling(**settings))
    sequence.drafting = guessing.drafting([*one.token_ids[:3], 5, 6], 1.0, count=3)
    sequence.drafts = 3
    loop.open(sequence)
    found = [loop.next(sequence) for _ in range(5)]
    assert [(c.token, c.logprob) for c in found if c] == [(t.token_id, t.logprob) for t in one.tokens]


def test_the_same_model_as_a_draft_is_always_right_and_its_keys_keep_up() -> None:
    asked, twin = model("llama"), tiny.model("llama", dtype="bfloat16", context=CONTEXT)
    for more in ({}, {"temperature": 0.9, "seed": 4}, {"repetition_penalty": 1.2}):
        draft = gp.llm.Speculation("model", tokens=3, model=twin, always=True)
        answer = asked.stream(SHARED[:70], 60, ignore_eos=True, speculate=draft, **more).complete()
        assert answer.figures.accepted > 0.8 * answer.figures.drafted > 20  # a prompt's keys are not a step's
        assert answer.token_ids == asked.stream(SHARED[:70], 60, ignore_eos=True, **more).complete().token_ids
    source = asked.engine.sources["model", twin.engine.network]
    asked.stream([1], 20, ignore_eos=True, speculate=draft).complete()
    assert source._blocks.count - source._blocks.free <= 1  # type: ignore[attr-defined] # of the last one alone


@pytest.mark.parametrize("settings", [{}, {"repetition_penalty": 1.4}, {"temperature": 0.9, "seed": 4}])
@pytest.mark.parametrize("kind", ["layers", "model"])
def test_where_only_the_last_draft_was_wrong_the_next_ones_follow_the_right_token(
    kind: str, settings: dict[str, Any]
) -> None:
    """Of a text whose every fifth token is another one than the network chooses, the others are accepted."""
    network = tiny.model("llama", context=CONTEXT, num_hidden_layers=3).engine.network
    sequence, count = Sequence(SHARED[:1], 200, sampling=Sampling(**settings)), 5
    cache = KVCache(network.config, 3, BLOCK, network.dtype, "drafts")

    def new() -> OwnLayers | DraftModel:
        return OwnLayers(network, cache, 2) if kind == "layers" else DraftModel(network, 3, "drafts")

    source, accepted = new(), 0
    for _ in range(12):
        [drafts], [expected] = (one.propose([Asked(sequence, [0, 1, 2], count)]) for one in (source, new()))
        accepted += right_count(drafts, expected)
        sequence.answer += [*expected[:-1], (expected[-1] + 1) % network.config.vocab_size]
    assert accepted > 9 * count  # a prompt's keys are not a step's


def test_all_layers_but_the_last_draft_better_than_the_first() -> None:
    asked, accepted = tiny.model("llama", dtype="bfloat16", context=CONTEXT, num_hidden_layers=4), []
    for layers in (1, 3):
        way = gp.llm.Speculation("layers", tokens=3, layers=layers, always=True)
        accepted.append(asked.stream(SHARED[:70], 80, ignore_eos=True, speculate=way).complete().figures.accepted)
    assert accepted[1] > accepted[0]
    with pytest.raises(InvalidSpecError, match="layers=4, and tiny has 4; give fewer"):
        asked.stream([1], 5, speculate=gp.llm.Speculation("layers", layers=4))


def test_a_text_that_repeats_itself_takes_fewer_steps_by_ngrams_jacobi_and_lookahead() -> None:
    asked = model("llama")
    plain = asked.stream([3, 4], 1, ignore_eos=True).complete().token_ids[0]
    for method in ("ngram", "jacobi", "lookahead"):
        way = gp.llm.Speculation(method, always=True)  # type: ignore[arg-type]
        answer = asked.stream([3, 4], 100, ignore_eos=True, logit_bias={plain: 1e6}, speculate=way).complete()
        assert answer.figures.accepted > 70 and set(answer.token_ids) == {plain}


def test_a_stop_string_ends_it_where_it_ends_without_drafts() -> None:
    asked = speaking.model(slots=2, context=256)
    plain = asked.stream("hello hello hello", 60, ignore_eos=True).complete()
    for begin in (3, 10, 21):
        stop = plain.text[begin : begin + 3]
        one = asked.stream("hello hello hello", 60, ignore_eos=True, stop=stop).complete()
        own = guessing.drafting(plain.token_ids, 0.9, vocabulary=asked.config.vocab_size)
        limits = Limits(60, stop=(stop,))
        ids = asked.token_ids("hello hello hello")
        with Generation(asked.engine, asked.tokenizer, ids, Sampling(), limits, drafting=own) as generation:
            other = generation.complete()
        assert (other.text, other.token_ids, other.finish_reason) == (one.text, one.token_ids, "stop")
        assert own.accepted and asked.engine.occupancy.running == 0


def test_what_speculate_cannot_be_is_refused_by_name() -> None:
    asked = model("llama")
    with pytest.raises(InvalidSpecError, match="speculate='medusa'; give one of 'ngram', 'layers'"):
        asked.stream([1], 5, speculate="medusa")
    with pytest.raises(InvalidSpecError, match="tokens=0; give a whole number of 1 to 16"):
        gp.llm.Speculation(tokens=0)
    with pytest.raises(InvalidSpecError, match="method='eagle'"):
        gp.llm.Speculation("eagle")  # type: ignore[arg-type]
    with pytest.raises(InvalidSpecError, match='layers=2 is of method="layers"'):
        gp.llm.Speculation("ngram", layers=2)
    with pytest.raises(InvalidSpecError, match="model=None with method='model'; give a loaded model"):
        gp.llm.Speculation("model")
    with pytest.raises(InvalidSpecError, match="would draft for itself"):
        asked.stream([1], 5, speculate=asked)
    with pytest.raises(InvalidSpecError, match="has 50 tokens, tiny 99"):
        asked.stream([1], 5, speculate=tiny.model("llama", vocab_size=50))
    with pytest.raises(InvalidSpecError, match="always='no'"):
        gp.llm.Speculation(always="no")  # type: ignore[arg-type]
