"""Rows: the device memory that steps of any number of rows share, and what lies in each row."""

from __future__ import annotations

from collections.abc import Sequence as Several
from typing import TYPE_CHECKING, NamedTuple

from pygpukit._core import native
from pygpukit.array import factory
from pygpukit.core.backend import is_sim
from pygpukit.llm.engine.sampling import Sampler, SamplerRows, device_view
from pygpukit.memory.pinned import pinned_empty
from pygpukit.nn.batch import new_batch
from pygpukit.ops.elementwise import mul

if TYPE_CHECKING:
    from pygpukit.llm.engine.sequence import Sequence
    from pygpukit.nn.transformer import Transformer

# The position of a row that has no sequence: attention and cache leave it out, however often a step adds one.
_NOWHERE = -(2**30)


class Line(NamedTuple):
    """A row of a step: the position of a sequence that is computed, and the sequence's blocks. drafts: tokens that were
    proposed for its last positions up to this one, behind all that are known."""

    sequence: Sequence
    position: int
    blocks: Several[int]
    drafts: tuple[int, ...] = ()

    @property
    def token(self) -> int:
        """The token of its position, known or proposed."""
        return self.drafts[-1] if self.drafts else self.sequence.token_at(self.position)

    @property
    def is_right(self) -> bool:
        """True if the tokens up to its position are those of the answer by now."""
        if not self.drafts:
            return True
        return self.sequence.known == self.position + 1 and self.sequence.token_at(self.position) == self.drafts[-1]


class Rows:
    """Room for up to `count` rows of sequences of up to `blocks` blocks; a step of fewer takes the first of them.

    A step leaves the next token of each row where the next step reads it. So a step of the same sequences, one position
    further, needs nothing from the host, and may be launched before the host has seen the tokens.
    """

    def __init__(self, network: Transformer, count: int, blocks: int) -> None:
        import numpy as np

        self.count = count
        self.batch = new_batch(count, blocks)
        self.buffers = network.buffers(count)
        self.sampling = SamplerRows(count, network.config.vocab_size)
        # What the device has: which position is next, of a draft nobody's; None where it is left out.
        self._held: list[tuple[Sequence | None, int] | None] = [None] * count
        self._set: list[Sequence | None] = [None] * count  # whose settings a row has
        self._adjusted: list[Sequence | None] = [None] * count  # whose counts and bias a row has
        self._table = np.zeros((count, blocks), np.int32)  # as the device has it
        self._noted: list[Several[int]] = [[]] * count  # what begins its rows
        self._nowhere = factory.full((1,), _NOWHERE, "int32")
        self._none = np.full(count, _NOWHERE, np.int32)
        native.copy_from_host(self.batch.positions, self._none)
        # Blocks on their way to the device, of two steps that can be under way at a time.
        self._staged = None if is_sim() else pinned_empty((2, count, blocks), "int32")
        self._staging = None if self._staged is None else device_view(self._staged)
        self._turn = 0

    def place(self, lines: Several[Line], size: int) -> list[int]:
        """The row of each line, below size: the one where it is already, or a free one."""
        held = {entry[0]: row for row, entry in enumerate(self._held[:size]) if entry is not None}
        places = [-1 if line.drafts else held.get(line.sequence, -1) for line in lines]
        taken = set(places)
        free = (row for row in range(size) if row not in taken)
        return [next(free) if place < 0 else place for place in places]

    def has(self, lines: Several[Line], places: Several[int], sampler: Sampler) -> bool:
        """True if the device has the tokens and the settings of all lines at their places: never of one whose grammar
        has something to say about each token."""
        return all(
            line.sequence.constraint is None and self._has(line, row, sampler)
            for line, row in zip(lines, places, strict=True)
        )

    def load(self, lines: Several[Line], places: Several[int], size: int, sampler: Sampler) -> None:
        """Tokens, positions, blocks and settings of lines at their places; no sequence in the other rows below size.

        Waits for nothing where has() is true.
        """
        if self.has(lines, places, sampler):
            self._update(lines, places, size)
        else:
            self._upload(lines, places, size, sampler)

    def advance(self, lines: Several[Line], places: Several[int]) -> None:
        """A step of them was launched."""
        for line, row in zip(lines, places, strict=True):
            self._held[row] = (None, 0) if line.drafts else (line.sequence, line.position + 1)

    def drop_tokens(self) -> None:
        """The tokens that steps left for the next ones are not to be computed: those bring theirs."""
        self._held = [None if entry is None else (None, 0) for entry in self._held]

    def forget(self) -> None:
        """A step was broken off: the device may have anything."""
        native.copy_from_host(self.batch.positions, self._none)
        self._held = [None] * self.count
        self._set = [None] * self.count

    def _has(self, line: Line, row: int, sampler: Sampler) -> bool:
        sequence, position = line.sequence, line.position
        if (
            line.drafts
            or self._held[row] != (sequence, position)
            or (sampler.adjusts and self._adjusted[row] is not sequence)
        ):
            return False
        # What was known before, of a sequence that was preempted, comes from the host.
        return position + 1 >= sequence.known

    def _update(self, lines: Several[Line], places: Several[int], size: int) -> None:
        """Bring what differs from the last step, in stream order."""
        self._turn ^= 1
        for row in set(range(size)).difference(places):
            if self._held[row] is not None:
                native.copy(self.batch.positions[row : row + 1], self._nowhere)
                self._held[row] = None
        for line, row in zip(lines, places, strict=True):
            if not self._note(row, line.blocks):
                continue
            target = self.batch.slots[row]
            if self._staged is None or self._staging is None:
                native.copy_from_host(target, self._table[row])
            else:
                self._staged[self._turn, row] = self._table[row]
                mul(self._staging[self._turn, row], 1, out=target)  # a kernel reads the host's memory

    def _upload(self, lines: Several[Line], places: Several[int], size: int, sampler: Sampler) -> None:
        import numpy as np

        loaded = [self._has(line, row, sampler) for line, row in zip(lines, places, strict=True)]
        self._held[:size] = [None] * size
        self.buffers.forget()  # of a step that was broken off
        tokens, positions = np.zeros(size, np.int32), np.full(size, _NOWHERE, np.int32)
        masks: dict[int, bytes | None] = {}
        for line, row, is_loaded in zip(lines, places, loaded, strict=True):
            sequence = line.sequence
            tokens[row], positions[row] = line.token, line.position
            self._note(row, line.blocks)
            if not is_loaded and (sampler.adjusts or self._set[row] is not sequence):
                answer = [*sequence.answer, *line.drafts][: line.position + 1 - len(sequence.prompt)]
                sampler.load(row, sequence.sampling, list(sequence.prompt), answer)
                self._set[row] = sequence
                if sampler.adjusts:
                    self._adjusted[row] = None if line.drafts else sequence
            if sampler.masks is not None:
                masks[row] = None if sequence.constraint is None else sequence.constraint.mask(line.drafts)
        if sampler.masks is not None:
            sampler.masks.put(masks)
        batch = self.batch.first(size)
        for array, values in ((batch.tokens, tokens), (batch.positions, positions), (batch.slots, self._table[:size])):
            native.copy_from_host(array, values)

    def _note(self, row: int, blocks: Several[int]) -> bool:
        """Note the blocks of a row; True if they are others than before."""
        if self._noted[row] == blocks:
            return False
        self._noted[row] = list(blocks)
        self._table[row, : len(blocks)] = blocks
        return True
