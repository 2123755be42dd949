"""Random lives of a loop: clients that come, read slowly, leave, have deadlines and policies; what each gets is the
beginning of what it gets alone, who leaves has no blocks any more, and in the end nothing is left of anybody."""

from __future__ import annotations

import random
from collections import Counter
from functools import cache

import pytest
from llm import tiny

from pygpukit.core.errors import InvalidSpecError, TaskRejectedError
from pygpukit.llm.engine import room
from pygpukit.llm.engine.loop import Loop
from pygpukit.llm.engine.request import POLICIES
from pygpukit.llm.engine.sequence import AHEAD, Sequence
from pygpukit.nn.transformer import Transformer

LIVES, GROUPS, LONGEST = 200, 20, 24
SIZE = 16  # positions of a block
SHARED = [random.Random(3).randrange(90) for _ in range(60)]
PROMPTS = [SHARED[:count] + [count] for count in (0, 9, 15, 16, 22, 37, 48, 60)]


@cache
def network() -> Transformer:
    return tiny.model("llama", dtype="bfloat16", context=128).engine.network


@cache
def alone(number: int) -> list[int]:
    """The longest answer to a prompt, with nobody beside it; shorter ones are its beginning."""
    loop, sequence = Loop(network(), 8, max_rows=1, budget=128, graphs=False), Sequence(PROMPTS[number], LONGEST)
    loop.open(sequence)
    while loop.next(sequence) is not None:
        pass
    return sequence.answer


class Life:
    """A loop and its clients, all in one thread; the clock is the test's."""

    def __init__(self, seed: int) -> None:
        self.random, self.now, self.met = random.Random(seed), 0.0, Counter[str]()
        pick = self.random.randint
        rows = pick(1, 4)
        self.loop = Loop(
            network(),
            pick(6, 12),
            max_rows=rows,
            budget=rows + pick(1, 90),
            max_waiting=4,
            graphs=False,
            clock=lambda: self.now,
        )
        self.open: dict[Sequence, int] = {}
        self.taken: dict[Sequence, list[int]] = {}

    def come(self) -> None:
        number = self.random.randrange(len(PROMPTS))
        sequence = Sequence(
            PROMPTS[number], self.random.randint(1, LONGEST), self.random.choice(POLICIES), self.random.choice("ab")
        )
        try:
            self.loop.open(sequence, self.random.uniform(1, 30) if self.random.random() < 0.2 else None)
        except TaskRejectedError:
            self.met["refused"] += 1
        except InvalidSpecError:
            assert sequence.positions > self.loop.cache.count * SIZE
        else:
            self.open[sequence], self.taken[sequence] = number, []

    def leave(self) -> None:
        """Whoever it is has no blocks and no place in the queue before the next step."""
        sequence = self.random.choice(list(self.open))
        self.met[f"{sequence.state} leaves"] += sequence.state != "ended"
        self.loop.close(sequence)
        scheduler = self.loop.scheduler
        assert sequence.state == "ended" and not sequence.table.blocks
        assert sequence not in (*scheduler.running, *scheduler.waiting)
        self.check(sequence)

    def read(self) -> None:
        """Steps until somebody has something, who takes it; others go on without being asked."""
        self.loop.run_until(lambda: any(sequence.has_news for sequence in self.open))
        sequence = self.random.choice([sequence for sequence in self.open if sequence.has_news])
        self.now += 0.3
        choice = self.loop.next(sequence)
        if choice is not None:
            self.taken[sequence].append(choice.token)
        else:
            self.met["expired"] += sequence.expired
            assert sequence.expired or len(self.taken[sequence]) == sequence.max_new_tokens
            self.check(sequence)
        waiting = sum(not request.preemptions for request in self.loop.scheduler.waiting)
        assert waiting <= 4 and all(len(sequence.ready) <= AHEAD + 1 for sequence in self.open)

    def check(self, sequence: Sequence) -> None:
        found = self.taken[sequence]
        assert found == alone(self.open.pop(sequence))[: len(found)]
        self.met["preempted"] += sequence.preemptions

    def run(self) -> None:
        for _ in range(60):
            action = self.random.random()
            if action < 0.2:
                self.come()
            elif action < 0.26 and self.open:
                self.leave()
            elif action < 0.32 and self.loop.scheduler.running:
                self.loop.scheduler._preempt(self.random.choice(self.loop.scheduler.running), [])
            elif self.open:
                self.read()
        while self.open:
            self.read()
        with self.loop.paused():
            pass
        scheduler = self.loop.scheduler
        assert scheduler.blocks.free == scheduler.blocks.count
        assert not (scheduler.running or scheduler.waiting or self.loop._leaving or scheduler._clients._clients)


@pytest.mark.parametrize("group", range(GROUPS))
def test_each_gets_what_it_gets_alone_and_nothing_is_left(group: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "BLOCK", SIZE)
    met = Counter[str]()
    for seed in range(group, LIVES, GROUPS):
        life = Life(seed)
        try:
            life.run()
        except AssertionError as error:
            raise AssertionError(f"life {seed}: {error}") from error
        met += life.met  # without zeros
    assert met.keys() == {"refused", "expired", "preempted", "running leaves", "waiting leaves"}, met
