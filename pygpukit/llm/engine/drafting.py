"""Drafting: where the drafts of an answer come from, whether they pay, and what became of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Sequence as Several
from dataclasses import dataclass, replace
from itertools import zip_longest
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from pygpukit.llm.engine.gain import Gain

if TYPE_CHECKING:
    from pygpukit.llm.engine.rows import Line
    from pygpukit.llm.engine.sampling import Choice
    from pygpukit.llm.engine.sequence import Sequence

Drafts: TypeAlias = "Mapping[Sequence, tuple[int, ...]]"
NO_DRAFTS: Drafts = MappingProxyType({})


class Asked(NamedTuple):
    """A sequence whose tokens are all known, its blocks, and how many tokens behind those may be proposed, at most."""

    sequence: Sequence
    blocks: Several[int]
    room: int


class Source(Protocol):
    """Proposes how answers go on; one for several sequences, or for each its own. Right or wrong, drafts change
    no token: the model chooses each, and one that it chooses otherwise is dropped with those behind it."""

    def propose(self, asked: Several[Asked]) -> Several[Several[int]]:
        """Up to `room` tokens for each; may launch work on the device."""
        ...

    def learn(self, sequence: Sequence, drafts: Several[int], chosen: Several[int]) -> None:
        """Take note of what the model chose in the place of each draft and behind the last one."""
        ...


@dataclass(eq=False)
class Drafting:
    """The drafts of one sequence. steps: that gave it tokens, drafted: tokens that were proposed, accepted: those of
    them that the model chose, too."""

    source: Source
    gain: Gain
    steps: int = 0
    drafted: int = 0
    accepted: int = 0


def right_count(drafts: Several[int], chosen: Several[int]) -> int:
    """Drafts that the model chose, too, up to the first that it did not."""
    pairs = enumerate(zip(drafts, chosen, strict=False))
    return next((index for index, (draft, token) in pairs if draft != token), len(drafts))


def propose(asked: Iterable[Asked]) -> Drafts:
    """The drafts of each sequence. None goes beyond its room, or is an end token: nothing comes behind that."""
    by_source: dict[Source, list[Asked]] = {}
    for one in asked:
        if one.room and one.sequence.drafting is not None:
            by_source.setdefault(one.sequence.drafting.source, []).append(one)
    drafts: dict[Sequence, tuple[int, ...]] = {}
    for source, wishes in by_source.items():
        for one, tokens in zip(wishes, source.propose(wishes), strict=True):
            own = tuple(tokens[: one.room])
            ends = (index for index, token in enumerate(own) if token in one.sequence.end_tokens)
            drafts[one.sequence] = own[: next(ends, len(own))]
    return drafts


def deliver(sequence: Sequence, choices: Several[tuple[Line, Choice]]) -> int:
    """Tokens of a step to their sequence: of its row and of the drafts behind it, as long as these are right; returns
    how many drafts were."""
    if len(choices) == 1:
        line, choice = choices[0]
        if line.is_right:
            sequence.deliver(choice)
        return 0
    taken = 0
    for (line, choice), following in zip_longest(choices, choices[1:]):
        if sequence.is_over or not line.is_right:
            break
        drafted = following is not None and following[0].drafts[-1] == choice.token
        sequence.deliver(replace(choice, drafted=True) if drafted else choice)
        taken += 1
    return max(taken - 1, 0)


def note(sequence: Sequence, drafting: bool, choices: Several[tuple[Line, Choice]], seconds: float | None) -> None:
    """Note what a step of a sequence chose that took so long, None where other things took a part of it. The next one
    tries as many drafts as have paid. drafting: it was to try some, whether there were any or not."""
    own = sequence.drafting
    if own is None:
        return
    drafts, chosen = choices[-1][0].drafts, [choice.token for _, choice in choices]
    right = right_count(drafts, chosen)
    own.steps += 1
    own.drafted += len(drafts)
    own.accepted += right
    own.source.learn(sequence, drafts, chosen)
    if seconds is not None:
        own.gain.note(drafting, right + 1, seconds)
    sequence.drafts = own.gain.drafts
