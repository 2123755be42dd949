"""Loop: all sequences of a model, step by step. Whoever waits for a token runs the next step, for all of them."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, cast

from pygpukit._core import native
from pygpukit.core.errors import GPUError, InvalidSpecError
from pygpukit.core.event import Event
from pygpukit.core.turns import turn
from pygpukit.llm.engine.batch_step import BatchStep, Line
from pygpukit.llm.engine.batched_sequence import BatchedSequence
from pygpukit.llm.engine.blocks import BlockManager
from pygpukit.llm.engine.scheduler import Chunk, Plan, Row, Scheduler
from pygpukit.nn.batch import Batch, new_batch
from pygpukit.nn.block_cache import BlockCache
from pygpukit.ops import host

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.llm.engine.sampling import Choice
    from pygpukit.nn.transformer import Buffers, Transformer

BLOCK = 64  # positions of a block
_EIGHT = 8
_LOOK_S = 0.1  # a finalizer in the wrong moment gives back what somebody waits for, and can tell nobody


class _Begun(NamedTuple):
    """A step on the device: who gets a token of which BatchStep, and the event of its end."""

    steps: list[tuple[BatchStep, list[BatchedSequence | None]]]
    end: Event


class Loop:
    """Continuous batching on one network; safe from several threads.

    blocks: of the KV cache, `BLOCK` positions each. max_rows, budget, max_waiting: as Scheduler's. There is no thread:
    of those who wait for tokens one launches a step and waits for it, and everybody gets theirs. A sequence whose
    tokens nobody takes stands still, and gives way to others.
    """

    def __init__(
        self,
        network: Transformer,
        blocks: int,
        *,
        max_rows: int = 256,
        budget: int = 768,
        max_waiting: int = 256,
        name: str = "model",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.network = network
        self.scheduler = Scheduler(
            BlockManager(blocks, BLOCK), max_rows=max_rows, budget=budget, max_waiting=max_waiting
        )
        self.cache = BlockCache(network.config, blocks, BLOCK, network.dtype, name)
        self._clock = clock
        self._changed = threading.Condition(threading.RLock())  # guards the scheduler and what is begun
        self._plan: Plan | None = None  # to be launched
        self._begun: _Begun | None = None
        self._due = set[BatchedSequence]()  # who is in either
        self._led = False  # somebody launches a step or waits for its end
        self._leaving = deque[BatchedSequence]()
        self._steps: dict[tuple[int, bool, int, bool], BatchStep] = {}
        self._blocks = -(-network.positions // BLOCK)
        self._prefill: tuple[Batch, Buffers] | None = None

    def open(self, sequence: BatchedSequence) -> None:
        """Let a sequence wait for its turn.

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
            self.scheduler.submit(sequence)

    def close(self, sequence: BatchedSequence) -> None:
        """It gets no more tokens; its blocks are free before the next step. At any time, from any thread, a finalizer's
        too."""
        self._leaving.append(sequence)
        if self._changed.acquire(blocking=False):
            try:
                self._changed.notify_all()
            finally:
                self._changed.release()

    def next(self, sequence: BatchedSequence) -> Choice | None:
        """The next token of a sequence; None when it has ended. Runs steps until it is there.

        Raises what made a step of the sequence fail. Ctrl-C while a step runs leaves that to whoever asks next.
        """
        while True:
            with self._changed:
                self._drain()
                if sequence.is_closed:
                    return None
                if sequence.ready:
                    self.scheduler.set_credit(sequence, sequence.credit + 1)
                    self._changed.notify_all()
                    return sequence.ready.popleft()
                if sequence.error is not None:
                    raise sequence.error
                if sequence.state == "ended" and sequence not in self._due:
                    return None
                if self._led:
                    self._changed.wait()
                    continue
                if self._begun is None and self._plan is None and not self._make_plan():
                    self._changed.wait(self._until_deadline())
                    continue
                self._led = True
            try:
                self._lead()
            finally:
                with self._changed:
                    self._led = False
                    self._changed.notify_all()

    def _drain(self) -> None:
        """End those whose clients have left."""
        while self._leaving:
            sequence = self._leaving.popleft()
            sequence.is_closed = True
            self.scheduler.end(sequence)

    def _make_plan(self) -> bool:
        """Plan the next step; False if there is nothing to do.

        Of two plans, the second lets others in the place of those who stand still.
        """
        for _ in range(2):
            plan = self.scheduler.plan(self._clock())
            if plan.rows or plan.chunks:
                self._plan = plan
                self._due = {*map(_sequence, plan.rows), *map(_sequence, plan.chunks)}
                return True
        return False

    def _until_deadline(self) -> float:
        """Seconds that somebody waits for whom nothing can be done."""
        return min(max(self.scheduler.next_deadline - self._clock(), 0.0), _LOOK_S)

    def _lead(self) -> None:
        """Launch the step that is planned, unless it runs already, and wait for its end."""
        with turn():
            try:
                if self._plan is not None:
                    plan, self._plan = self._plan, None
                    self._begun = self._launch(plan)
                if self._begun is not None:
                    self._begun.end.synchronize()
            except BaseException as error:
                if self._begun is None or isinstance(error, Exception):
                    self._fail(error)
                raise
        with self._changed:
            begun, self._begun = self._begun, None
            if begun is not None:
                self._collect(begun)

    def _fail(self, error: BaseException) -> None:
        """A step was not computed: its sequences end, and nothing that it was to write is found again."""
        if not isinstance(error, Exception):
            error = GPUError(f"the step of this answer was broken off by {type(error).__name__} in another one's")
        with self._changed:
            for sequence in self._due:
                sequence.error = error
                self.scheduler.end(sequence)
            self.scheduler.blocks.clear()
            self._begun, self._due = None, set()

    def _collect(self, begun: _Begun) -> None:
        """The tokens of a step, to their sequences."""
        self._due = set()
        for step, sequences in begun.steps:
            for sequence, choice in zip(sequences, step.read(), strict=True):
                if sequence is None or sequence.is_closed:
                    continue
                sequence.answer.append(choice.token)
                sequence.ready.append(choice)
                if choice.token in sequence.end_tokens:
                    self.scheduler.end(sequence)

    def _launch(self, plan: Plan) -> _Begun:
        self.cache.copy(plan.copies)
        steps: list[tuple[BatchStep, list[BatchedSequence | None]]] = []
        if plan.rows:
            lines = [Line(_sequence(row), row.position, row.blocks) for row in plan.rows]
            step = self._step(lines, False)
            step.run(lines)
            steps.append((step, [_sequence(row) if row.samples else None for row in plan.rows]))
        firsts = [Line(_sequence(c), c.end - 1, c.blocks) for c in plan.chunks if c.samples]
        first = self._step(firsts, True) if firsts else None
        row = 0
        for chunk in plan.chunks:
            x = self._compute(chunk)
            if chunk.samples and first is not None:
                first.put(row, x[-1:])
                row += 1
        if first is not None:
            first.choose_first(firsts)
            steps.append((first, [line.sequence for line in firsts]))
        end = Event(timing=False)
        end.record()
        return _Begun(steps, end)

    def _step(self, lines: list[Line], is_first: bool) -> BatchStep:
        """The step of the number of rows that is captured for so many, with what their settings need."""
        samplings = [line.sequence.sampling for line in lines]
        top = max(0 if s.top is None else max(s.top, 2) for s in samplings)
        # Where the host computes every row costs, and there is nothing to capture.
        size = len(lines) if host.computes() else padded(len(lines))
        key = size, any(s.adjusts for s in samplings), top, is_first
        if key not in self._steps:
            self._steps[key] = BatchStep(self.network, self.cache, size, self._blocks, *key[1:3])
        return self._steps[key]

    def _compute(self, chunk: Chunk) -> GPUArray:
        """The last layer's output for a chunk, float32 (tokens, hidden); its keys are in the cache then."""
        import numpy as np

        count = chunk.end - chunk.start
        if self._prefill is None:
            budget = self.scheduler.budget
            self._prefill = new_batch(budget, self._blocks), self.network.buffers(budget)
        inputs, buffers = self._prefill
        batch = Batch(inputs.tokens[:count], inputs.positions[:count], inputs.slots[:count], chunk.start)
        table = np.zeros((count, self._blocks), np.int32)
        table[:, : len(chunk.blocks)] = chunk.blocks
        values = (chunk.request.prompt[chunk.start : chunk.end], range(chunk.start, chunk.end), table)
        for array, numbers in zip((batch.tokens, batch.positions, batch.slots), values, strict=True):
            native.copy_from_host(array, np.asarray(numbers, np.int32))
        part = buffers.first(count)
        self.network.forward(batch, self.cache, part)
        return part.x


def padded(rows: int) -> int:
    """The number of rows of the step that takes so many: few numbers, each captured once."""
    return 1 << (rows - 1).bit_length() if rows <= _EIGHT else -(-rows // _EIGHT) * _EIGHT


def _sequence(item: Row | Chunk) -> BatchedSequence:
    return cast("BatchedSequence", item.request)
