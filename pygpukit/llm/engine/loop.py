"""Loop: all sequences of a model, step by step. Whoever waits for a token runs the next step, for all of them."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Sequence as Several
from contextlib import contextmanager
from itertools import accumulate
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, cast

from pygpukit._core import native
from pygpukit.core import doing
from pygpukit.core.errors import GPUError, InvalidSpecError
from pygpukit.core.event import Event
from pygpukit.core.turns import Turn, turn, turn_ahead
from pygpukit.llm.engine import holdings
from pygpukit.llm.engine.blocks import BlockManager
from pygpukit.llm.engine.drafting import NO_DRAFTS, Asked, Drafts, deliver, note, propose
from pygpukit.llm.engine.holdings import Holding
from pygpukit.llm.engine.prefill import Part, Prefill
from pygpukit.llm.engine.room import block_size, new_cache
from pygpukit.llm.engine.rows import Line
from pygpukit.llm.engine.scheduler import Chunk, Plan, Row, Scheduler
from pygpukit.llm.engine.sequence import Sequence, Standing
from pygpukit.llm.engine.step import DecodeSteps, Launched
from pygpukit.ops import host

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.llm.engine.sampling import Choice
    from pygpukit.nn.transformer import Transformer

_LOOK_S = 0.1  # a finalizer in the wrong moment gives back what somebody waits for, and can tell nobody

_BUDGET = 768  # tokens of a step
# A pass costs the host as much for each device that computes a layer, whatever its rows; and 768 of them are soon done.
_BUDGET_OF_SEVERAL = 2304


class _Begun(NamedTuple):
    """A plan on the device: who gets a token of which row of which step, and the event of its end, on a stream.
    alone: no prompt is read beside its rows. ended: tells whoever gives turns."""

    plan: Plan
    launched: list[tuple[Launched, list[Sequence | None]]]
    end: Event
    stream: int
    alone: bool
    ended: Callable[[], None]


class _Pass(NamedTuple):
    """A pass over chunks of prompts that goes on by parts. stages, x: as Prefill.begin() gives them."""

    chunks: Several[Chunk]
    parts: Several[Part]
    stages: Iterator[None]
    x: GPUArray


class Loop:
    """Continuous batching on one network; safe from several threads.

    blocks: of the cache, block_size() positions each. max_rows, budget, max_waiting: as Scheduler's. graphs: whether
    steps are captured; the same bits. kv_dtype: of keys and values, the weights' by default. There is no thread: of
    those who wait for tokens one launches a step and waits for it, and everybody gets theirs. A sequence whose tokens
    nobody takes stands still, and gives way to others.
    """

    def __init__(
        self,
        network: Transformer,
        blocks: int,
        *,
        max_rows: int = 256,
        budget: int | None = None,
        max_waiting: int = 256,
        graphs: bool = True,
        name: str = "model",
        kv_dtype: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.network, self.name = network, name
        if budget is None:
            budget = _BUDGET if network.at_once == 1 else _BUDGET_OF_SEVERAL
        size = block_size(network.config, network.positions)
        self.scheduler = Scheduler(
            BlockManager(blocks, size, partial=network.config.state_space is None),
            max_rows=max_rows,
            budget=budget,
            max_waiting=max_waiting,
        )
        self.cache = new_cache(network, blocks, kv_dtype or network.dtype, name)
        longest = -(-network.positions // size)
        self.steps = DecodeSteps(network, self.cache, longest, graphs)
        self.firsts = DecodeSteps(network, self.cache, longest, graphs)
        self._prefill = Prefill(network, self.cache, budget, longest)
        self._clock = clock
        self._changed = threading.Condition(threading.Lock())  # guards the scheduler and what is planned and begun
        self._plan: Plan | None = None  # to be launched
        self._pass: _Pass | None = None  # under way
        self._begun = deque[_Begun]()  # on the device, at most two
        self._ended = 0.0  # when the last step was found to have ended
        self._led = False  # somebody launches a step or waits for its end
        self._leaving = deque[Sequence]()
        holdings.remember(self)

    def open(self, sequence: Sequence, deadline: float | None = None) -> None:
        """Let a sequence wait for its turn. deadline: seconds from now after which it ends, whatever it has by then.

        Raises as Scheduler.submit(), and InvalidSpecError where it has more positions than the model.
        """
        if sequence.positions >= self.network.positions:
            raise InvalidSpecError(
                f"a prompt of {len(sequence.prompt)} tokens and an answer of {sequence.max_new_tokens} are "
                f"{sequence.positions + 1} positions, the context has {self.network.positions}",
                "max_new_tokens",
            )
        with self._changed:
            self._drain()
            sequence.opened = self._clock()
            if deadline is not None:
                sequence.deadline = sequence.opened + deadline
            self.scheduler.submit(sequence)
            self._changed.notify_all()

    def close(self, sequence: Sequence) -> None:
        """It gets no more tokens; its blocks are free before the next step. At any time, from any thread, a finalizer's
        too."""
        self._leaving.append(sequence)
        if sequence.open_range is not None:
            sequence.open_range.end(sequence.error)
        if self._changed.acquire(blocking=False):  # else who has the lock does it, this very thread perhaps
            try:
                self._drain()
                self._changed.notify_all()
            finally:
                self._changed.release()

    def next(self, sequence: Sequence) -> Choice | None:
        """The next token of a sequence; None when it has ended. Runs steps until it is there.

        Raises what made a step of the sequence fail. Ctrl-C while a step runs leaves that to whoever asks next.
        """
        while True:
            with self._changed:
                self._drain()
                if sequence.ready:
                    self.scheduler.set_credit(sequence, sequence.credit + 1)
                    return sequence.ready.popleft()
                if sequence.is_over:
                    break
            self.run_until(lambda: sequence.has_news)
        if sequence.error is not None:
            raise sequence.error
        return None

    def run_until(self, ready: Callable[[], bool]) -> None:
        """Run steps, or wait for those that others run, until ready() is true: it is asked again after each."""
        while True:
            with self._changed:
                self._drain()
                if ready():
                    return
                if self._led:
                    self._changed.wait()
                    continue
                if not self._begun and self._plan is None and not self._make_plan():
                    self._changed.wait(self._until_deadline())
                    continue
                self._led = True
            try:
                with self.network.at_home():
                    self._lead()
            finally:
                self._leave()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """`with loop.paused():` no step runs, and none is on the device."""
        with self._changed:
            self._changed.wait_for(lambda: not self._led)
            self._led = True
        try:
            while self._begun:
                self._begun[0].end.synchronize()
                self._collect()
            yield
        finally:
            self._leave()

    def standing(self, sequence: Sequence) -> Standing:
        """The place, tokens and waiting of a sequence."""
        with self._changed:
            ahead = self.scheduler.queue_position(sequence) if sequence.state == "waiting" else 0
            until = self._clock() if sequence.begun is None and sequence.state != "ended" else sequence.begun
            waited = 0.0 if until is None else until - sequence.opened
            return Standing(sequence.state, ahead, len(sequence.answer), waited)

    def holdings(self) -> list[Holding]:
        """Who has how many blocks: the sequences that run, in their order; what can be found again; what is free."""
        with self._changed:
            blocks = self.scheduler.blocks
            running = [
                Holding(f"{r.client or 'answer'} {r.number}", len(r.table.blocks), blocks.shared_of(r.table))
                for r in self.scheduler.running
            ]
            earlier = blocks.reusable
            return [*running, Holding("earlier prompts", earlier, 0), Holding("free", blocks.free - earlier, 0)]

    def clear(self) -> None:
        """Forget the prompts whose keys are in the cache: those that come are computed."""
        with self._changed:
            self.scheduler.blocks.clear()

    def _leave(self) -> None:
        with self._changed:
            self._led = False
            self._changed.notify_all()

    def _drain(self) -> None:
        """End those whose clients have left."""
        while self._leaving:
            sequence = self._leaving.popleft()
            sequence.is_over = True
            sequence.ready.clear()
            self.scheduler.end(sequence)

    def _make_plan(self) -> bool:
        """Plan the next step; False if there is nothing to do.

        Of two plans, the second lets others in the place of those who stand still.
        """
        for _ in range(2):
            plan = self.scheduler.plan(self._clock())
            for request in plan.expired:
                expired = cast("Sequence", request)
                expired.is_over = expired.expired = True
            for chunk in plan.chunks:
                if (sequence := _sequence(chunk)).begun is None:
                    sequence.begun = self._clock()
            if plan.rows or plan.chunks or self._pass is not None:
                self._plan = plan
                return True
            if plan.expired:
                self._changed.notify_all()
        return False

    def _until_deadline(self) -> float:
        """Seconds that somebody waits for whom nothing can be done."""
        return min(max(self.scheduler.next_deadline - self._clock(), 0.0), _LOOK_S)

    def _lead(self) -> None:
        """Launch the step that is planned, unless it runs already, and wait for its end; before that begin the one
        after it, if that needs nothing of it and the next step on the device is to be this model's."""
        launching: Plan | None = None
        try:
            if not self._begun and self._plan is not None:
                with turn() as own:
                    launching, self._plan = self._plan, None
                    self._begun.append(self._launch(launching, own))
            if self._begun and (ahead := turn_ahead()) is not None:
                with ahead:
                    if (launching := self._plan_ahead()) is not None:
                        self._begun.append(self._launch(launching, ahead))
            launching = None
            if self._begun:
                self._begun[0].end.synchronize()
                self.network.check()
        except BaseException as error:
            for begun in self._begun:  # nobody waits for them here any more
                begun.ended()
            if launching is not None or isinstance(error, Exception):
                self._fail(error, launching)
            raise
        self._collect()

    def _plan_ahead(self) -> Plan | None:
        """The next step, where it can be launched behind the one on the device; else it is left for later."""
        begun = self._begun[0]
        if len(self._begun) > 1 or begun.stream != native.current_stream().id:
            return None
        if not all(launched.step.sampler.is_plain for launched, _ in begun.launched):
            return None  # whose figures are read where the next step writes its own
        if any(row.drafts for row in begun.plan.rows):
            return None  # nobody knows yet which position is next
        with self._changed:
            self._drain()
            plan = self._plan
            if plan is None:
                if not begun.launched or not self._make_plan():
                    return None
                plan = self._plan
            if plan is None or plan.chunks or plan.copies or any(row.drafts for row in plan.rows):
                return None
            if not self.steps.follows(_lines(plan.rows)):
                return None
            self._plan = None
            return plan

    def _fail(self, error: BaseException, launching: Plan | None) -> None:
        """A step was not computed: its sequences end, and nothing that it was to write is found again."""
        if not isinstance(error, Exception):
            error = GPUError(f"the step of this answer was broken off by {type(error).__name__} in another one's")
        with self._changed:
            for plan in [begun.plan for begun in self._begun] + ([] if launching is None else [launching]):
                under_way = () if self._pass is None else self._pass.chunks
                for sequence in [*map(_sequence, plan.rows), *map(_sequence, (*plan.chunks, *under_way))]:
                    if not sequence.is_over:
                        sequence.error, sequence.is_over = error, True
                    self.scheduler.end(sequence)
            self._pass = None
            self.scheduler.passed()
            self.scheduler.blocks.clear()
            self._begun.clear()
            self.network.recover()
            self.steps.forget()

    def _collect(self) -> None:
        """The tokens of the step that has ended, to their sequences."""
        with self._changed:
            if not self._begun:
                return
            begun = self._begun.popleft()
            begun.ended()
            now = self._clock()
            seconds, self._ended = now - self._ended, now  # with what the host does between steps
            said: dict[Sequence, list[tuple[Line, Choice]]] = {}
            for launched, sequences in begun.launched:
                for sequence, line, choice in zip(sequences, launched.lines, launched.read(), strict=True):
                    if sequence is not None:
                        said.setdefault(sequence, []).append((line, choice))
            for sequence, choices in said.items():
                if accepted := deliver(sequence, choices):
                    self.scheduler.accept(sequence, accepted)
                if sequence.is_over:
                    self.scheduler.end(sequence)
            for row in begun.plan.rows:
                if (sequence := _sequence(row)).drafting is not None and sequence in said:
                    note(sequence, row.drafts > 0, said[sequence], seconds if begun.alone else None)

    def _launch(self, plan: Plan, own: Turn) -> _Begun:
        alone = self._pass is None and not plan.chunks
        launched = self._go_on(plan)
        self.cache.copy(plan.copies)
        rows = [row for row in plan.rows if not _sequence(row).is_over]
        drafts = propose(Asked(_sequence(row), row.blocks, row.drafts) for row in rows if row.drafts)
        # Where rows and prompts are computed alike they are in one pass.
        beside = rows if plan.chunks and host.computes() and not plan.parted else []
        if rows and not beside:
            launched.append((self.steps.launch(_lines(rows, drafts)), _choosing(rows, drafts)))
        if plan.chunks and plan.parted and self._has_parts:
            parts = [_part_of_prompt(chunk) for chunk in plan.chunks]
            self._pass = _Pass(plan.chunks, parts, *self._prefill.begin(parts))
        elif plan.chunks:
            launched += self._launch_chunks(beside, plan.chunks, drafts)
            self._tell_passed()
        end = Event(timing=False)
        end.record()
        return _Begun(plan, launched, end, native.current_stream().id, alone, own.go_on())

    def _launch_chunks(
        self, rows: Several[Row], chunks: Several[Chunk], drafts: Drafts
    ) -> list[tuple[Launched, list[Sequence | None]]]:
        """A pass over chunks, and rows beside them; then the tokens of those that come to the end of what is known."""
        for chunk in chunks:
            if chunk.start > chunk.request.reused:
                doing.say(f"Reading {len(chunk.request.prompt)} tokens, {chunk.start} are read")
        parts = [*(_part(row, drafts) for row in rows), *map(_part_of_prompt, chunks)]
        return self._choose(rows, chunks, drafts, parts, self._prefill.compute(parts))

    def _go_on(self, plan: Plan) -> list[tuple[Launched, list[Sequence | None]]]:
        """The next layer of the pass that is under way, or all that are left; then the tokens that come of it."""
        current = self._pass
        if current is None:
            return []
        for _ in current.stages:
            if plan.parted:
                return []
        self._pass = None
        self._tell_passed()
        return self._choose([], current.chunks, NO_DRAFTS, current.parts, current.x)

    def _tell_passed(self) -> None:
        with self._changed:
            self.scheduler.passed()

    @property
    def _has_parts(self) -> bool:
        """True if a pass can go on by layers: on one device, which has all of them."""
        return len(self.network.parts) == 1 and self.network.streaming is None

    def _choose(
        self, rows: Several[Row], chunks: Several[Chunk], drafts: Drafts, parts: Several[Part], x: GPUArray
    ) -> list[tuple[Launched, list[Sequence | None]]]:
        """The tokens behind the ends of a pass, whose output is x."""
        ends = list(accumulate(len(part.tokens) for part in parts))
        lines = _lines((row for row in rows if row.samples), drafts)
        lines += [Line(_sequence(chunk), chunk.end - 1, chunk.blocks) for chunk in chunks if chunk.samples]
        if not lines:
            return []
        going: list[int] = []  # rows of x behind which a token is chosen
        for row, part, end in zip(rows, parts, ends, strict=False):
            going += range(end - len(part.tokens), end) if row.samples else ()
        going += [end - 1 for chunk, end in zip(chunks, ends[len(rows) :], strict=True) if chunk.samples]
        first = self.firsts.launch_first(lines, [x[row : row + 1] for row in going])
        return [(first, [line.sequence for line in lines])]


def _part(row: Row, drafts: Drafts) -> Part:
    sequence = _sequence(row)
    tokens = [sequence.token_at(row.position), *drafts.get(sequence, ())]
    return Part(tokens, row.position, row.blocks, sequence.adapter)


def _part_of_prompt(chunk: Chunk) -> Part:
    sequence = _sequence(chunk)
    return Part(sequence.prompt[chunk.start : chunk.end], chunk.start, chunk.blocks, sequence.adapter)


def _choosing(rows: Iterable[Row], drafts: Drafts) -> list[Sequence | None]:
    """The sequences of the lines of rows, of those that give a token."""
    if not drafts:
        return [_sequence(row) if row.samples else None for row in rows]
    return [
        _sequence(row) if row.samples else None for row in rows for _ in range(1 + len(drafts.get(_sequence(row), ())))
    ]


def _lines(rows: Iterable[Row], drafts: Drafts = NO_DRAFTS) -> list[Line]:
    """The lines of rows: of each its own and those of its drafts."""
    if not drafts:
        return [Line(_sequence(row), row.position, list(row.blocks)) for row in rows]
    lines = []
    for row in rows:
        sequence, blocks = _sequence(row), list(row.blocks)
        own = drafts.get(sequence, ())
        lines += [Line(sequence, row.position + count, blocks, own[:count]) for count in range(len(own) + 1)]
    return lines


# What a loop is given to plan are sequences. Of each row several times a step: so no function of Python's own.
_sequence: Callable[[Row | Chunk], Sequence] = attrgetter("request")
