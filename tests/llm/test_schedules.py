"""Continuous batching against a simple model: what each sequence says alone; blocks that are memory; 10^5 schedules."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

import pytest

from pygpukit.core.errors import InvalidSpecError, TaskRejectedError
from pygpukit.llm.engine import blocks as blocks_module
from pygpukit.llm.engine.blocks import BlockManager
from pygpukit.llm.engine.request import POLICIES, Request
from pygpukit.llm.engine.scheduler import Chunk, Plan, Scheduler

END = 0  # a token that ends an answer
SCHEDULES, GROUPS = 100_000, 20
SIZES = (1, 1, 2, 3, 3, 5, 8)  # positions of a block: of 8 a beginning of 2 is shared
EVENTS = {
    "refused", "copied", "preempted", "expired", "several prompts", "rows beside prompts", "computed again", "drafts",
    "part of a block found", "one who runs leaves", "one who waits leaves", "by parts", "parts at once",
}  # fmt: skip


def after(state: int, token: int, decoded: bool) -> int:
    """What a position leaves in the cache: it follows from all tokens before and how each was computed."""
    return hash((state, token, decoded))


def chosen(state: int) -> int:
    """The next token."""
    return (state >> 7) % 9


def states(prompt: list[int]) -> list[int]:
    """What the positions of a prompt leave in the cache."""
    return list(accumulate(prompt, lambda state, token: after(state, token, False), initial=0))[1:]


def alone(prompt: list[int], count: int) -> list[int]:
    """The simple model: the answer of a sequence that nobody is beside."""
    state, answer = states(prompt)[-1], list[int]()
    while len(answer) < count:
        answer.append(chosen(state))
        if answer[-1] == END:
            break
        state = after(state, answer[-1], True)
    return answer


class Device:
    """Runs plans on blocks of memory, as an engine does: reads what a table says, and checks that it is the sequence's
    own past."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        blocks = scheduler.blocks
        self.memory = [[None] * blocks.size for _ in range(blocks.count)]
        self.answers: dict[Request, list[int]] = {}
        self.states: dict[Request, list[int]] = {}
        self.late: list[tuple[Request, int]] = []  # chosen by the last plan, not read yet
        self.passing: list[Chunk] = []  # of a pass by parts
        self.parts = 0  # that it has still
        self.met = Counter[str]()
        self.random = random.Random(scheduler.budget)

    def launch(self, plan: Plan) -> list[tuple[Request, int]]:
        """Tokens that a plan chose, several of a request whose drafts were right."""
        tokens = self.go_on(plan)
        for source, target in plan.copies:
            self.memory[target] = list(self.memory[source])
        for request, position, samples, table, drafts in plan.rows:
            said = self.answers[request]
            index = position - len(request.prompt)
            # A row begun before the token before it was read takes that from the device.
            known = said[index] if index < len(said) else dict(self.late)[request]
            state = self.compute(request, table, position, [known], True)
            if samples:
                assert index + 1 == len(said) + (request in dict(self.late)), "no token is chosen twice"
                tokens.append((request, chosen(state)))
            are_right = True
            for draft in range(position + 1, position + 1 + drafts):
                token = chosen(state) if self.random.random() < 0.7 else 9
                are_right = are_right and token == chosen(state)
                state = self.compute(request, table, draft, [token], True)
                if are_right:
                    tokens.append((request, chosen(state)))
        if plan.chunks and plan.parted:
            self.passing = [chunk._replace(blocks=list(chunk.blocks)) for chunk in plan.chunks]
            self.parts = self.random.randint(1, 4)
            return tokens
        tokens += self.prompts(plan.chunks)
        if plan.chunks:
            self.scheduler.passed()
        return tokens

    def go_on(self, plan: Plan) -> list[tuple[Request, int]]:
        """The pass by parts: a part of it leaves in the blocks what nobody can read; the last one what is right."""
        if not self.passing:
            return []
        self.parts -= 1
        if plan.parted and self.parts:
            for _, start, end, _, table in self.passing:
                for position in range(start, end):
                    block, place = divmod(position, self.scheduler.blocks.size)
                    self.memory[table[block]][place] = None
            self.met["by parts"] += 1
            return []
        self.met["parts at once"] += self.parts > 0
        chunks, self.passing = self.passing, []
        self.scheduler.passed()
        return self.prompts(chunks)

    def prompts(self, chunks: Sequence[Chunk]) -> list[tuple[Request, int]]:
        """Tokens behind chunks of prompts."""
        tokens = []
        for request, start, end, samples, table in chunks:
            state = self.compute(request, table, start, request.prompt[start:end], False)
            is_first = not self.answers[request] and request not in dict(self.late)
            assert samples == (end == len(request.prompt) and is_first)
            if samples:
                tokens.append((request, chosen(state)))
        return tokens

    def compute(self, request: Request, table: Sequence[int], start: int, tokens: list[int], decoded: bool) -> int:
        size, past = self.scheduler.blocks.size, self.states[request]
        read = [entry for block in table for entry in self.memory[block]][:start]
        assert read == past[:start], "a sequence reads what is not its own"
        state = read[-1] if read else 0
        for position, token in enumerate(tokens, start):
            state = after(state, token, decoded)
            self.memory[table[position // size]][position % size] = state
            past[position : position + 1] = [state]
        return state


class Schedule:
    """One random life of a scheduler."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        pick = self.random.randint
        rows = pick(1, 4)
        self.scheduler = Scheduler(
            BlockManager(pick(3, 9), self.random.choice(SIZES)),
            max_rows=rows,
            budget=rows + pick(1, 6),
            max_waiting=pick(1, 5),
        )
        self.device = Device(self.scheduler)
        self.now, self.expected = 0, dict[Request, list[int]]()
        self.given_up = set[Request]()
        self.met = Counter[str]()
        self.drafted = False  # the last plan had drafts

    def submit(self) -> None:
        pick = self.random.randint
        repeats = self.scheduler.blocks.size // 3 + 1  # so that prompts that begin alike end in the middle of blocks
        prompt = ([1, 2, 3, 1, 2, 3] * repeats)[: pick(0, 6 * repeats)] + [pick(1, 2) for _ in range(pick(0, 2))] or [1]
        deadline = self.now + pick(1, 15) if pick(0, 5) == 0 else math.inf
        request = Request(prompt, pick(1, 6), self.random.choice(POLICIES), self.random.choice("abc"), deadline)
        blocks, waiting = self.scheduler.blocks, [r for r in self.scheduler.waiting if not r.preemptions]
        here = len(self.scheduler.running) + len(self.scheduler.waiting)
        too_large = -(-request.positions // blocks.size) > blocks.count
        try:
            self.scheduler.submit(request)
        except InvalidSpecError:
            assert too_large
        except TaskRejectedError:
            assert not too_large
            assert (
                len(waiting) == self.scheduler.max_waiting
                or here == self.scheduler.max_waiting + self.scheduler.max_rows
            )
            self.met["refused"] += 1
        else:
            assert not too_large
            if pick(0, 3) == 0:
                request.credit = pick(1, 3)
            if pick(0, 1) == 0:
                request.drafts = pick(1, 4)
            self.expected[request] = alone(prompt, request.max_new_tokens)
            self.device.answers[request], self.device.states[request] = [], states(prompt)

    def step(self) -> None:
        """A plan is made and launched; sometimes before the tokens of the one before are read, if it had no drafts."""
        if self.drafted or self.random.random() < 0.6:
            self.read()
        self.now += 1
        plan = self.scheduler.plan(self.now)
        self.drafted = any(row.drafts for row in plan.rows)
        self.check(plan)
        tokens = self.device.launch(plan)
        self.given_up |= set(plan.expired)
        self.read()
        self.device.late = tokens

    def read(self) -> None:
        """The tokens of the last plan: those of requests that nobody wants any more are dropped."""
        taken = Counter[Request]()
        for request, token in self.device.late:
            answer = self.device.answers[request]
            if request in self.given_up or (answer and answer[-1] == END):
                continue
            answer.append(token)
            taken[request] += 1
        for request, count in taken.items():
            self.scheduler.accept(request, count - 1)
            if self.device.answers[request][-1] == END:
                self.scheduler.end(request)
        self.device.late = []

    def check(self, plan: Plan) -> None:
        scheduler = self.scheduler
        busy = Counter([row.request for row in plan.rows] + [chunk.request for chunk in plan.chunks])
        self.met.update(copied=len(plan.copies), preempted=len(plan.preempted), expired=len(plan.expired))
        self.met["several prompts"] += len(plan.chunks) > 1
        self.met["rows beside prompts"] += bool(plan.rows and plan.chunks)
        self.met["computed again"] += sum(not row.samples for row in plan.rows)
        self.met["drafts"] += self.drafted
        self.met["part of a block found"] += sum(
            chunk.start % scheduler.blocks.size > 0 for chunk in plan.chunks if chunk.start == chunk.request.reused
        )
        assert all(count == 1 for count in busy.values())
        rows = sum(1 + row.drafts for row in plan.rows)
        assert rows <= scheduler.max_rows >= len(scheduler.running)
        assert rows + sum(chunk.end - chunk.start for chunk in plan.chunks) <= scheduler.budget
        assert all(request.tier > 0 for request in plan.preempted)
        assert all(request.sampled <= request.credit for request in busy)
        assert scheduler.running == sorted(scheduler.running, key=lambda request: request.rank)
        assert all(request.deadline > self.now for request in (*scheduler.running, *scheduler.waiting))
        assert all(not request.computed and not request.table.blocks for request in scheduler.waiting)
        used = {block for request in scheduler.running for block in request.table.blocks}
        blocks = scheduler.blocks
        assert blocks.free == blocks.count - len(used)
        # Whatever came and went, nothing grows: those who wait, what can be found again, clients that are remembered.
        assert sum(not request.preemptions for request in scheduler.waiting) <= scheduler.max_waiting
        assert len(scheduler.running) + len(scheduler.waiting) <= scheduler.max_rows + scheduler.max_waiting
        assert max(map(len, (blocks._by_digest, blocks._followers, blocks._beginnings))) <= blocks.count
        assert len(scheduler._clients._clients) <= len("abc")

    def disturb(self) -> None:
        """A client goes, a sequence is preempted whatever the reason, the cache is emptied."""
        what, scheduler = self.random.randint(0, 3), self.scheduler
        live = [*scheduler.running, *scheduler.waiting]
        if what == 0 and live:
            request = self.random.choice(live)
            free, held = scheduler.blocks.free, scheduler.blocks.freed([request.table])
            scheduler.end(request)
            assert scheduler.blocks.free == free + held and not request.table.blocks
            assert request not in (*scheduler.running, *scheduler.waiting)
            self.met[f"one who {'runs' if held else 'waits'} leaves"] += 1
            self.given_up.add(request)
        elif what < 3 and scheduler.running:
            scheduler._preempt(self.random.choice(scheduler.running), [])
        else:
            scheduler.blocks.clear()

    def run(self) -> None:
        for _ in range(self.random.randint(3, 20)):
            action = self.random.random()
            if action < 0.35:
                self.submit()
            elif action < 0.8:
                self.step()
            elif action < 0.88:
                for request in [*self.scheduler.running, *self.scheduler.waiting]:
                    self.scheduler.set_credit(request, request.credit + 1)
            else:
                self.disturb()
        for request in self.expected:
            self.scheduler.set_credit(request, 100)
        for _ in range(400):
            if not (self.scheduler.running or self.scheduler.waiting or self.device.late or self.device.passing):
                break
            self.step()
        else:
            raise AssertionError("it does not come to an end")
        self.met += self.device.met
        for request, answer in self.expected.items():
            found = self.device.answers[request]
            assert request.state == "ended" and not request.table.blocks
            assert found == (answer[: len(found)] if request in self.given_up else answer)
        assert self.scheduler.blocks.free == self.scheduler.blocks.count
        assert self.scheduler._clients._clients == {}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of any size, so that small schedules meet every case."""
    monkeypatch.setattr(blocks_module, "MIN_SIZE", 1)


@pytest.mark.parametrize("group", range(GROUPS))
def test_no_token_is_lost_doubled_or_out_of_order_and_no_block_leaks(group: int) -> None:
    met = Counter[str]()
    for seed in range(group, SCHEDULES, GROUPS):
        schedule = Schedule(seed)
        try:
            schedule.run()
        except AssertionError as error:
            raise AssertionError(f"schedule {seed}: {error}") from error
        met += schedule.met
    assert met.keys() == EVENTS and min(met.values()) > 100, met


def test_answers_that_nobody_reads_are_not_piled_up() -> None:
    """Each stands still after its first token, gives way to the next, and waits for a reader."""
    scheduler = Scheduler(BlockManager(9, 4), max_rows=2, budget=9, max_waiting=3)
    for number in range(5):
        scheduler.submit(Request([1, 2], 4, credit=1))
        for now in range(3):
            scheduler.plan(now)
        assert len(scheduler.running) + len(scheduler.waiting) == number + 1
    with pytest.raises(TaskRejectedError, match="3 requests wait already"):
        scheduler.submit(Request([1, 2], 4, credit=1))
    scheduler.end(scheduler.waiting[0])
    scheduler.submit(Request([1, 2], 4))
