"""The loop of a model: the tokens and logprobs of each sequence are what it gets alone, whoever is there beside it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from llm import tiny
from llm.stepping import answered, settled

from pygpukit.core.errors import GPUError, InvalidSpecError, TaskRejectedError
from pygpukit.llm.engine.loop import Loop
from pygpukit.llm.engine.sampling import Choice, Sampling
from pygpukit.llm.engine.sequence import AHEAD, Sequence
from pygpukit.llm.engine.step import padded
from pygpukit.llm.model import CausalTransformerModel

CONTEXT = 256
RANDOM = np.random.default_rng(2)
SHARED = [int(x) for x in RANDOM.integers(0, 99, 130)]
PROMPTS = [SHARED[:count] + [int(x) for x in RANDOM.integers(0, 99, 3)] for count in (0, 5, 61, 64, 128, 128, 127)]
SETTINGS = [
    {},
    {"temperature": 0.8, "seed": 7, "top": 3},
    {"repetition_penalty": 1.3, "logit_bias": {5: 2.0}, "top": 0},
    {"temperature": 1.2, "top_k": 9, "seed": 3, "request": 2, "presence_penalty": 0.5},
    {"top": 2},
    {},
    {"temperature": 0.6, "top_p": 0.9, "seed": 1},
]
ANSWERS = [9, 30, 70, 12, 40, 25, 64]


@cache
def model(name: str) -> CausalTransformerModel:
    return tiny.model(name, dtype="bfloat16", context=CONTEXT)


@cache
def alone(name: str) -> list[list[Choice]]:
    """What the model says of one sequence at a time."""
    found = []
    for prompt, settings, count in zip(PROMPTS, SETTINGS, ANSWERS, strict=True):
        asked = model(name)
        asked.engine.loop.clear()
        tokens = asked.stream(prompt, count, ignore_eos=True, **settings).complete().tokens
        found.append(
            [Choice(t.token_id, t.logprob, t.margin, tuple((a.token_id, a.logprob) for a in t.top)) for t in tokens]
        )
    return found


def sequences() -> list[Sequence]:
    return [
        Sequence(prompt, count, sampling=Sampling(**settings))  # type: ignore[arg-type]
        for prompt, settings, count in zip(PROMPTS, SETTINGS, ANSWERS, strict=True)
    ]


def plain(said: list[list[Choice]]) -> list[list[object]]:
    """With what each row was asked to tell: in a batch the others' settings tell more of it."""
    return [
        [(c.token, *((c.logprob, c.margin, c.top) if "top" in settings else ())) for c in choices]
        for choices, settings in zip(said, SETTINGS, strict=True)
    ]


@pytest.mark.parametrize(
    "name", ["llama", "gemma3", "gpt2", "gemma2", "phi4", "smollm3", "olmo2", "granite", "mistral_nemo"]
)
def test_together_each_says_what_it_says_alone(name: str) -> None:
    loop = Loop(model(name).engine.network, 30, max_rows=8, budget=40)
    opened = sequences()
    for sequence in opened:
        loop.open(sequence)
    assert plain(answered(loop, opened)) == plain(alone(name))
    assert settled(loop)


@pytest.mark.parametrize(
    ("name", "blocks", "max_rows", "budget"),
    [("llama", 4, 3, 9), ("llama", 6, 7, 300), ("llama", 30, 1, 64)]
    + [("gemma2", 4, 3, 40), ("phi4", 6, 7, 9), ("smollm3", 4, 7, 64), ("olmo2", 6, 3, 9), ("granite", 4, 3, 300)],
)
def test_with_few_blocks_and_any_budget_prefixes_cold_and_warm_the_same(
    name: str, blocks: int, max_rows: int, budget: int
) -> None:
    loop = Loop(model(name).engine.network, blocks, max_rows=max_rows, budget=budget)
    preempted = 0
    for _ in range(2):
        opened = sequences()
        for sequence in opened:
            loop.open(sequence)
        assert plain(answered(loop, opened)) == plain(alone(name))
        preempted += sum(sequence.preemptions for sequence in opened)
    assert settled(loop) and preempted  # for want of blocks, or because they were not asked for just then


def test_preempted_at_any_step_they_go_on_with_the_same_bits() -> None:
    random = np.random.default_rng(9)
    loop = Loop(model("llama").engine.network, 30, max_rows=8, budget=64)
    opened = sequences()
    for sequence in opened:
        loop.open(sequence)
    found: list[list[Choice]] = [[] for _ in opened]
    for _ in range(max(ANSWERS)):
        for number, sequence in enumerate(opened):
            if (choice := loop.next(sequence)) is not None:
                found[number].append(choice)
        if loop.scheduler.running and random.random() < 0.4:
            loop.scheduler._preempt(loop.scheduler.running[random.integers(len(loop.scheduler.running))], [])
    assert plain(found) == plain(alone("llama"))
    assert sum(sequence.preemptions for sequence in opened) > 5


def test_threads_that_ask_by_themselves_meet_in_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(model("llama").engine.network, 30, max_rows=8, budget=64)
    opened, found, rows = sequences(), {}, Counter[int]()
    everybody = threading.Barrier(len(opened))
    plan = loop.scheduler.plan
    monkeypatch.setattr(loop.scheduler, "plan", lambda now: _counted(plan(now), rows))

    def ask(number: int) -> None:
        loop.open(opened[number])
        everybody.wait()
        said = []
        while (choice := loop.next(opened[number])) is not None:
            said.append(choice)
        found[number] = said

    _in_threads([lambda number=number: ask(number) for number in range(len(opened))])  # type: ignore[misc]
    assert plain([found[number] for number in range(len(opened))]) == plain(alone("llama"))
    assert max(rows) > 1 and sum(rows.values()) < sum(ANSWERS)
    assert settled(loop)


def test_one_who_leaves_frees_the_blocks_before_the_next_step() -> None:
    loop = Loop(model("llama").engine.network, 6, max_rows=2, budget=300)
    stays, leaves, waits = (Sequence(PROMPTS[4], 60, client=name) for name in "abc")
    for sequence in (stays, leaves, waits):
        loop.open(sequence)
    assert loop.next(stays) is not None and loop.next(leaves) is not None
    assert waits.state == "waiting"
    loop.close(leaves)
    loop.close(waits)
    assert loop.next(leaves) is None and loop.next(waits) is None
    assert loop.scheduler.running == [stays] and not loop.scheduler.waiting
    assert loop.scheduler.blocks.free == 6 - len(stays.table.blocks)
    loop.close(stays)
    assert loop.next(stays) is None and settled(loop)


def test_whose_tokens_nobody_takes_stands_still_and_is_not_lost() -> None:
    loop = Loop(model("llama").engine.network, 30, max_rows=1, budget=300)
    opened = sequences()
    for sequence in opened:
        loop.open(sequence)
    first = loop.next(opened[2])
    rest = answered(loop, [*opened[3:], *opened[:2]])
    assert len(opened[2].ready) <= AHEAD + 1 and opened[2].state != "ended"
    mine = [first, *answered(loop, [opened[2]])[0]]
    assert plain([*rest[-2:], mine, *rest[:-2]]) == plain(alone("llama"))  # type: ignore[list-item]


def test_an_end_token_ends_it_in_the_step_that_chose_it() -> None:
    loop = Loop(model("llama").engine.network, 30, max_rows=8, budget=64)
    said = [choice.token for choice in alone("llama")[0]]
    end = said[4]
    sequence = Sequence(PROMPTS[0], 9, end_tokens=frozenset({end}))
    loop.open(sequence)
    assert [choice.token for choice in answered(loop, [sequence])[0]] == said[: said.index(end) + 1]
    assert settled(loop)


def test_a_step_that_fails_ends_its_sequences_with_the_error_and_nothing_of_it_is_found_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop = Loop(model("llama").engine.network, 30, max_rows=8, budget=300)
    opened = sequences()[3:5]
    for sequence in opened:
        loop.open(sequence)
    forward = loop.network.forward

    def fails(*arguments: object, **more: object) -> None:
        raise GPUError("no more")

    monkeypatch.setattr(loop.network, "forward", fails)
    for sequence in opened:
        with pytest.raises(GPUError, match="no more"):
            loop.next(sequence)
    monkeypatch.setattr(loop.network, "forward", forward)
    assert settled(loop) and loop.scheduler.blocks.cached == 0
    again = sequences()[4]
    loop.open(again)
    assert [c.token for c in answered(loop, [again])[0]] == [c.token for c in alone("llama")[4]]


def test_ctrl_c_in_one_thread_costs_the_others_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from pygpukit.core.event import Event

    loop = Loop(model("llama").engine.network, 30, max_rows=8, budget=300)
    mine, other = sequences()[3:5]
    loop.open(mine)
    loop.open(other)
    first = loop.next(other)

    def interrupted(self: Event) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Event, "synchronize", interrupted)
        while True:
            loop.next(mine)
    loop.close(mine)
    said = [first, *answered(loop, [other])[0]]
    assert [c.token for c in said if c] == [c.token for c in alone("llama")[4]]


def test_too_many_who_wait_are_refused() -> None:
    loop = Loop(model("llama").engine.network, 30, max_rows=1, budget=300, max_waiting=1)
    loop.open(Sequence([1], 5))
    with pytest.raises(TaskRejectedError, match="come back later"):
        loop.open(Sequence([1], 5))


def test_an_answer_may_fill_the_context_and_not_go_beyond_it() -> None:
    loop = Loop(model("llama").engine.network, 4, max_rows=1, budget=300)
    with pytest.raises(InvalidSpecError, match="are 257 positions, the context has 256"):
        loop.open(Sequence(PROMPTS[4], 257 - len(PROMPTS[4])))
    whole = Sequence(PROMPTS[4], 256 - len(PROMPTS[4]))
    loop.open(whole)
    found = [choice.token for choice in answered(loop, [whole])[0]]
    model("llama").engine.loop.clear()
    assert found == model("llama").stream(PROMPTS[4], 1000, ignore_eos=True).complete().token_ids


@pytest.mark.slow
def test_by_kernels_and_beside_padded_rows_each_says_what_it_says_alone(kernels_on_sim: None) -> None:
    asked = tiny.model("llama", dtype="bfloat16", context=128)
    prompts, settings = [SHARED[:70], SHARED[:64], [3]], [{}, {"top": 2}, {"temperature": 0.9, "seed": 5}]
    loop = Loop(asked.engine.network, 6, max_rows=4, budget=40)
    opened = [
        Sequence(prompt, 4, sampling=Sampling(**more))  # type: ignore[arg-type]
        for prompt, more in zip(prompts, settings, strict=True)
    ]
    for sequence in opened:
        loop.open(sequence)
    found = answered(loop, opened)
    assert 4 in loop.steps.sizes  # for three
    for prompt, more, choices in zip(prompts, settings, found, strict=True):
        tokens = asked.stream(prompt, 4, ignore_eos=True, **more).complete().tokens
        assert [choice.token for choice in choices] == [token.token_id for token in tokens]
        if "top" in more:
            assert [choice.logprob for choice in choices] == [token.logprob for token in tokens]


def test_steps_are_captured_for_few_numbers_of_rows(kernels_on_sim: None) -> None:
    sizes = [padded(rows) for rows in range(1, 257)]
    assert sorted(set(sizes)) == [1, 2, 4, *range(8, 257, 8)]
    assert all(size >= rows for rows, size in enumerate(sizes, 1))


def _counted(plan, rows: Counter[int]):  # type: ignore[no-untyped-def]
    rows[len(plan.rows)] += 1
    return plan


def _in_threads(work: list[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=one) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
