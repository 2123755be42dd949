"""Blocks of the KV cache against memory that is written and read: none lost, none used twice, contents as promised."""

from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from pygpukit.core.errors import InvalidSpecError
from pygpukit.llm.engine.blocks import BlockManager, BlockTable, Copy

SIZE = 16
WORDS = st.lists(st.sampled_from([[1] * SIZE, [2] * SIZE, [*range(SIZE)]]), max_size=4)
PROMPTS = st.builds(
    lambda words, tail: [*chain(*words), *tail], WORDS, st.lists(st.integers(0, 2), min_size=1, max_size=20)
)


class Sequence:
    """What one sequence wrote: its tokens so far, of which `computed` are in the cache. An answer's differ from what a
    prompt's would be, as their bits do."""

    def __init__(self, prompt: list[int], table: BlockTable) -> None:
        self.prompt, self.table, self.written = prompt, table, list(prompt[: table.cached])


class Blocks(RuleBasedStateMachine):
    """Tables that come, grow, fork and go, over memory of blocks."""

    sequences = Bundle("sequences")

    def __init__(self) -> None:
        super().__init__()
        self.manager = BlockManager(9, SIZE)
        self.memory = [[-1] * SIZE for _ in range(9)]
        self.open: list[Sequence] = []

    @rule(target=sequences, prompt=PROMPTS)
    def opens(self, prompt: list[int]) -> Sequence:
        found, cached = self.manager.lookup(prompt)
        table = self.manager.open(prompt)
        assert table.blocks == found and table.cached == cached < len(prompt)
        assert table.borrowed == (cached < len(found) * SIZE)
        self.open.append(Sequence(prompt, table))
        return self.open[-1]

    @rule(sequence=sequences, count=st.integers(1, 40), registers=st.booleans())
    def computes(self, sequence: Sequence, count: int, registers: bool) -> None:
        """The next tokens: of the prompt, then of an answer."""
        first, table, manager = len(sequence.written), sequence.table, self.manager
        rest = sequence.prompt[first:]
        tokens = rest[:count] if rest else [1000 + first + i for i in range(count)]
        end = first + len(tokens)
        before, missing, free = list(table.blocks), manager.missing(table, first, end), manager.free
        copies = manager.grow(table, first, end)
        if copies is None:
            assert missing > free and table.blocks == before and manager.free == free
            return
        assert missing <= free and manager.free == free - missing
        assert len(table.blocks) == max(len(before), -(-end // SIZE))
        self.write(copies, table, first, tokens)
        sequence.written += tokens
        if registers and sequence.written[: len(sequence.prompt)] == sequence.prompt[: len(sequence.written)]:
            manager.register(table, sequence.prompt, end)

    @rule(target=sequences, sequence=sequences)
    def forks(self, sequence: Sequence) -> Sequence:
        copy = Sequence(sequence.prompt, self.manager.fork(sequence.table))
        copy.written = list(sequence.written)
        self.open.append(copy)
        return copy

    @rule(sequence=consumes(sequences))
    def closes(self, sequence: Sequence) -> None:
        self.manager.close(sequence.table)
        assert not sequence.table.blocks
        self.open.remove(sequence)

    @rule()
    def clears(self) -> None:
        self.manager.clear()
        assert self.manager.cached == 0

    @rule(prompt=PROMPTS)
    def finds_only_what_was_computed_as_a_prompt(self, prompt: list[int]) -> None:
        found, cached = self.manager.lookup(prompt)
        assert list(chain(*(self.memory[block] for block in found)))[:cached] == prompt[:cached]
        assert len(found) == -(-cached // SIZE)

    @rule(sequence=sequences)
    def gives_back(self, sequence: Sequence) -> None:
        if sequence.table.borrowed:
            self.manager.give_back(sequence.table)
            del sequence.written[sequence.table.cached :]
            assert len(sequence.table.blocks) * SIZE == sequence.table.cached

    @invariant()
    def every_block_is_used_or_free_once(self) -> None:
        used = [block for sequence in self.open for block in sequence.table.blocks]
        assert all(len(set(s.table.blocks)) == len(s.table.blocks) for s in self.open)
        assert self.manager.free == self.manager.count - len(set(used))
        assert self.manager.shared == len({block for block in used if used.count(block) > 1})

    @invariant()
    def every_sequence_reads_what_it_wrote(self) -> None:
        for sequence in self.open:
            read = list(chain(*(self.memory[block] for block in sequence.table.blocks)))
            assert read[: len(sequence.written)] == sequence.written

    def teardown(self) -> None:
        for sequence in self.open:
            self.manager.close(sequence.table)
        assert self.manager.free == self.manager.count
        whole = self.manager.open([5])
        assert self.manager.grow(whole, 0, self.manager.count * SIZE) == []
        assert sorted(whole.blocks) == list(range(self.manager.count))

    def write(self, copies: list[Copy], table: BlockTable, first: int, tokens: list[int]) -> None:
        for source, target in copies:
            self.memory[target] = list(self.memory[source])
        for position, token in enumerate(tokens, first):
            block = table.blocks[position // SIZE]
            users = sum(block in sequence.table.blocks for sequence in self.open)
            assert users == 1, "somebody else reads it"
            self.memory[block][position % SIZE] = token


Blocks.TestCase.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
TestBlocks = Blocks.TestCase


def filled(manager: BlockManager, prompt: list[int]) -> BlockTable:
    """A table with the whole prompt computed."""
    table = manager.open(prompt)
    assert manager.grow(table, table.cached, len(prompt)) == []
    manager.register(table, prompt, len(prompt))
    return table


def test_a_prompt_is_found_again_as_far_as_it_is_the_same() -> None:
    manager = BlockManager(8, SIZE)
    prompt = list(range(40))
    first = filled(manager, prompt)
    second = manager.open(prompt)
    assert second.cached == 39 and second.blocks == first.blocks and manager.shared == 3  # a token is left to compute
    assert manager.grow(second, 39, 40) == [Copy(first.blocks[2], second.blocks[2])]
    for other, cached in (
        (prompt[:32], 31),
        ([7, *prompt[1:]], 0),
        ([*prompt[:16], 99, *prompt[17:]], 16),
        ([*prompt[:19], 99, *prompt[20:]], 16),  # too little for a copy
        ([*prompt[:20], 99, *prompt[21:]], 20),
        ([*prompt[:37], 99], 37),
    ):
        assert manager.open(other).cached == cached


def test_the_longest_unused_prompt_makes_room_and_its_end_before_its_beginning() -> None:
    manager = BlockManager(4, SIZE)
    prompts = [[n] * 33 for n in (1, 2)]
    for prompt in prompts:
        table = manager.open(prompt)
        assert manager.grow(table, 0, 32) == []
        manager.register(table, prompt, 32)
        manager.close(table)
    assert [len(manager.lookup(prompt)[0]) for prompt in prompts] == [2, 2] and manager.free == 4
    new = manager.open([3])
    assert manager.grow(new, 0, 1) == []
    assert [len(manager.lookup(prompt)[0]) for prompt in prompts] == [1, 2]
    manager.close(new)
    manager.open(prompts[0])
    both = manager.open([4])
    assert manager.grow(both, 0, 33) == []  # the blank one, then the older prompt's end: its beginning is used
    assert [len(manager.lookup(prompt)[0]) for prompt in prompts] == [1, 0]


def test_who_writes_first_into_a_shared_block_gets_a_copy() -> None:
    manager = BlockManager(3, SIZE)
    table = filled(manager, [1] * 20)
    other = manager.fork(table)
    assert manager.missing(other, 20, 21) == 1
    assert manager.grow(other, 20, 21) == [Copy(table.blocks[1], other.blocks[1])]
    assert manager.grow(table, 20, 21) == []  # alone again
    third = manager.fork(table)
    assert manager.free == 0 and manager.grow(third, 20, 21) is None and third.blocks == table.blocks


def test_tokens_of_any_size_are_told_apart() -> None:
    manager = BlockManager(8, SIZE)
    filled(manager, [2**40 + 1] * 17)
    assert manager.open([1] * 17).cached == 0
    assert manager.open([2**40 + 1] * 17).cached == 16


@pytest.mark.parametrize(("count", "size"), [(0, 16), (-1, 16), (4, 15), (4, 0), (1.5, 16)])
def test_sizes_that_cannot_be_are_refused(count: int, size: int) -> None:
    with pytest.raises((InvalidSpecError, TypeError), match=r"(count|size)="):
        BlockManager(count, size)
