"""OwnLayers and DraftModel: drafts that a network computes, step by step, for all sequences that ask at once."""

from __future__ import annotations

from collections.abc import Sequence as Several
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pygpukit.core.event import Event
from pygpukit.llm.engine.blocks import BlockManager, BlockTable
from pygpukit.llm.engine.drafting import Asked
from pygpukit.llm.engine.prefill import Part, Prefill
from pygpukit.llm.engine.room import BLOCK, new_cache
from pygpukit.llm.engine.rows import Line
from pygpukit.llm.engine.sequence import Sequence
from pygpukit.llm.engine.step import DecodeSteps

if TYPE_CHECKING:
    from pygpukit.nn.transformer import Cache, Transformer

_CHUNK = 512  # tokens that a draft model reads at once


@dataclass(eq=False)
class _Shadow:
    """A sequence with drafts in the place of tokens that are not known yet. computed: positions whose keys a draft
    model has of it, in the blocks of table."""

    sequence: Sequence
    computed: int = 0
    table: BlockTable = field(default_factory=BlockTable)


class _Shadows:
    """The shadow of each sequence that goes on."""

    def __init__(self) -> None:
        self._by_sequence: dict[Sequence, _Shadow] = {}

    def of(self, sequence: Sequence) -> _Shadow:
        """Its shadow, made on first use, whose tokens are as they were left."""
        if sequence not in self._by_sequence:
            sampling = replace(sequence.sampling, top=None)
            self._by_sequence[sequence] = _Shadow(Sequence(sequence.prompt, sequence.max_new_tokens, sampling=sampling))
        return self._by_sequence[sequence]

    def drop_ended(self) -> list[_Shadow]:
        """Forget those of sequences that have ended."""
        ended = [sequence for sequence in self._by_sequence if sequence.state == "ended" or sequence.is_over]
        return [self._by_sequence.pop(sequence) for sequence in ended]


def _draft(steps: DecodeSteps, rows: Several[tuple[Sequence, Several[int], int]]) -> None:
    """Let shadows go on by up to so many tokens each, over their blocks; a step for all of them at a time."""
    for count in range(max((room for _, _, room in rows), default=0)):
        lines = [Line(shadow, shadow.known - 1, list(blocks)) for shadow, blocks, room in rows if room > count]
        launched = steps.launch(lines)
        end = Event(timing=False)
        end.record()
        end.synchronize()
        for line, choice in zip(lines, launched.read(), strict=True):
            line.sequence.answer.append(choice.token)
    steps.drop_tokens()  # where only the last draft was wrong, the right token has the position that comes next


class OwnLayers:
    """Drafts by the first layers of the model itself, whose output goes to its head. Their keys are in the model's own
    cache: those of tokens that are known lie there already, those of drafts are written again by the model's step."""

    def __init__(self, network: Transformer, cache: Cache, layers: int) -> None:
        self._steps = DecodeSteps(network, cache, -(-network.positions // BLOCK), layers=layers)
        self._shadows = _Shadows()

    def propose(self, asked: Several[Asked]) -> list[list[int]]:
        """Tokens that the first layers choose."""
        self._shadows.drop_ended()
        rows = []
        for one in asked:
            shadow = self._shadows.of(one.sequence).sequence
            shadow.adapter = one.sequence.adapter
            shadow.answer[:] = one.sequence.answer
            rows.append((shadow, one.blocks, one.room))
        _draft(self._steps, rows)
        return [shadow.answer[-room:] for shadow, _, room in rows]

    def learn(self, sequence: Sequence, drafts: Several[int], chosen: Several[int]) -> None:
        """Nothing: the next drafts follow from the tokens."""


class DraftModel:
    """Drafts by another network with the same tokens, and a cache of its own with as many blocks as the model's."""

    def __init__(self, network: Transformer, blocks: int, name: str) -> None:
        self._network = network
        self._blocks = BlockManager(blocks, BLOCK)
        self._cache = new_cache(network, blocks, network.dtype, name)
        longest = -(-network.positions // BLOCK)
        self._steps = DecodeSteps(network, self._cache, longest)
        self._prefill = Prefill(network, self._cache, _CHUNK, longest)
        self._shadows = _Shadows()

    def propose(self, asked: Several[Asked]) -> list[list[int]]:
        """Tokens that it chooses; none where it has no room for a sequence."""
        with self._network.at_home():
            return self._propose(asked)

    def _propose(self, asked: Several[Asked]) -> list[list[int]]:
        for shadow in self._shadows.drop_ended():
            self._blocks.close(shadow.table)
        rows: list[tuple[Sequence, Several[int], int]] = []
        for one in asked:
            shadow = self._shadows.of(one.sequence)
            self._take_tokens(shadow, one.sequence)
            end = one.sequence.known - 1 + one.room
            fits = end <= self._network.positions
            if fits and self._blocks.grow(shadow.table, shadow.computed, end) is not None:
                self._read(shadow)
                shadow.computed = end
                rows.append((shadow.sequence, shadow.table.blocks, one.room))
            else:
                rows.append((shadow.sequence, (), 0))
        _draft(self._steps, rows)
        return [shadow.answer[len(shadow.answer) - room :] for shadow, _, room in rows]

    def learn(self, sequence: Sequence, drafts: Several[int], chosen: Several[int]) -> None:
        """Nothing: the next drafts follow from the tokens."""

    def _take_tokens(self, shadow: _Shadow, sequence: Sequence) -> None:
        """The tokens that are known by now; keys of drafts that were right stay."""
        before, answer = shadow.sequence.answer, sequence.answer
        pairs = enumerate(zip(before, answer, strict=False))
        same = next((i for i, (a, b) in pairs if a != b), min(len(before), len(answer)))
        shadow.computed = min(shadow.computed, len(sequence.prompt) + same)
        before[:] = answer

    def _read(self, shadow: _Shadow) -> None:
        """Keys of all tokens but the last."""
        sequence = shadow.sequence
        while shadow.computed < sequence.known - 1:
            end = min(shadow.computed + _CHUNK, sequence.known - 1)
            tokens = [sequence.token_at(position) for position in range(shadow.computed, end)]
            self._prefill.compute([Part(tokens, shadow.computed, shadow.table.blocks)])
            shadow.computed = end
