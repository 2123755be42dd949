"""Prompts beside who is guaranteed: a layer a step, with the tokens that they have alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from llm import tiny
from llm.stepping import answered, settled

from pygpukit.llm.engine import scheduler
from pygpukit.llm.engine.loop import Loop
from pygpukit.llm.engine.sampling import Choice, Sampling
from pygpukit.llm.engine.sequence import Sequence

LAYERS = 4
NETWORK = tiny.model("llama", context=256, num_hidden_layers=LAYERS).engine.network
LONG = [(7 * n + n // 5) % 99 for n in range(90)]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "BESIDE", 32)


class Watched:
    """A loop, and what each step had: rows, layers of prompts, first tokens of answers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.loop, self.steps = Loop(NETWORK, 12, max_rows=4, budget=64), list[tuple[int, int, int]]()
        self.layers = self.firsts = 0
        pass_layers, launch, first = NETWORK.pass_layers, self.loop._launch, self.loop.firsts.launch_first

        def passed(batch: Any, cache: Any, buffers: Any, layers: int | None) -> Iterator[None]:
            for _ in pass_layers(batch, cache, buffers, layers):
                self.layers += bool(batch.spans)
                yield

        def launched(plan: Any, own: Any) -> Any:
            self.layers = self.firsts = 0
            begun = launch(plan, own)
            self.steps.append((len(plan.rows), self.layers, self.firsts))
            return begun

        def chose(lines: Any, outputs: Any) -> Any:
            self.firsts += len(lines)
            return first(lines, outputs)

        monkeypatch.setattr(NETWORK, "pass_layers", passed)
        monkeypatch.setattr(self.loop, "_launch", launched)
        monkeypatch.setattr(self.loop.firsts, "launch_first", chose)

    def open(self, prompt: list[int], count: int, policy: Any = "best_effort", **settings: Any) -> Sequence:
        sequence = Sequence(prompt, count, policy, sampling=Sampling(**settings))
        self.loop.open(sequence)
        return sequence


def alone(prompt: list[int], count: int, **settings: Any) -> list[Choice]:
    loop = Loop(NETWORK, 12)
    sequence = Sequence(prompt, count, sampling=Sampling(**settings))
    loop.open(sequence)
    return answered(loop, [sequence])[0]


def read(loop: Loop, opened: list[Sequence]) -> list[list[Choice]]:
    """What open sequences say, each taken as soon as it is there: nobody stands still."""
    found: list[list[Choice]] = [[] for _ in opened]
    going = set(range(len(opened)))
    while going:
        loop.run_until(lambda: any(opened[number].has_news for number in going))
        for number in [number for number in going if opened[number].has_news]:
            choice = loop.next(opened[number])
            if choice is None:
                going.remove(number)
            else:
                found[number].append(choice)
    return found


def test_a_step_of_who_is_guaranteed_has_one_layer_of_others_prompts(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch)
    promised = watched.open([5, 6, 7], 60, "guaranteed", temperature=0.7, seed=3)
    said = [watched.loop.next(promised)]
    others = [watched.open(LONG, 6), watched.open(LONG[:40], 1, "burstable", temperature=0.9, seed=8)]
    watched.steps.clear()
    found = read(watched.loop, [promised, *others])
    assert [*said, *found[0]] == alone([5, 6, 7], 60, temperature=0.7, seed=3)
    assert found[1:] == [alone(LONG, 6), alone(LONG[:40], 1, temperature=0.9, seed=8)]
    assert settled(watched.loop)
    beside = [(layers, firsts) for rows, layers, firsts in watched.steps if rows]
    assert max(layers for layers, _ in beside) == 1
    # 90 and, of the other one, what is not shared: in parts of 32 tokens, each of as many steps as there are layers.
    assert sum(layers for layers, _ in beside) >= 3 * LAYERS and sum(firsts for _, firsts in beside) == 2


def test_without_anybody_guaranteed_a_prompt_is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch)
    first = watched.open([5, 6, 7], 20)
    watched.loop.next(first)
    watched.steps.clear()
    answered(watched.loop, [first, watched.open(LONG[:50], 2)])
    assert {layers for _, layers, _ in watched.steps} == {0, LAYERS}


@pytest.mark.parametrize("who", ["the prompt's", "who is guaranteed"])
def test_who_leaves_in_the_middle_of_a_pass_gives_blocks_back_and_no_key_is_lost(
    who: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched(monkeypatch)
    promised = watched.open([5, 6, 7], 60, "guaranteed")
    loop = watched.loop
    loop.next(promised)
    reader = watched.open(LONG, 6)
    watched.steps.clear()
    while not sum(layers for _, layers, _ in watched.steps):
        loop.next(promised)
    left, stays = (reader, promised) if who == "the prompt's" else (promised, reader)
    free = loop.scheduler.blocks.free
    held = loop.scheduler.blocks.freed([left.table])
    loop.close(left)
    assert loop.scheduler.blocks.free == free + held
    again = watched.open(LONG, 6)  # which finds the keys of the pass that was under way
    found = answered(loop, [stays, again])
    assert found[1] == alone(LONG, 6)
    whole = alone([5, 6, 7], 60) if stays is promised else alone(LONG, 6)
    assert found[0] == whole[len(whole) - len(found[0]) :] and settled(loop)


def test_a_step_that_fails_in_the_middle_of_a_pass_ends_its_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch)
    loop = watched.loop
    promised, launch = watched.open([5, 6, 7], 60, "guaranteed"), loop.steps.launch
    loop.next(promised)
    reader = watched.open(LONG, 6)
    watched.steps.clear()
    while not sum(layers for _, layers, _ in watched.steps):
        loop.next(promised)

    def failing(lines: Any) -> Any:
        raise ValueError("no step")

    monkeypatch.setattr(loop.steps, "launch", failing)
    for sequence in (promised, reader):
        with pytest.raises(ValueError, match="no step"):
            while True:
                loop.next(sequence)
    monkeypatch.setattr(loop.steps, "launch", launch)
    assert settled(loop) and answered(loop, [watched.open(LONG, 6)])[0] == alone(LONG, 6)
