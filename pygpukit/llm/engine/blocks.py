"""Block manager: which blocks of the KV cache hold which positions of which sequence; no tensors, only numbers."""

from __future__ import annotations

from array import array
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple

from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.sizes import whole

MIN_SIZE = 16  # positions of a block
_SHARED = 4  # a block is copied for the beginning of it where that is a 4th or more


class Copy(NamedTuple):
    """A block whose contents go to another one before the next step writes there."""

    source: int
    target: int


@dataclass(eq=False)
class BlockTable:
    """The blocks of one sequence: position i lies in blocks[i // size]. cached: positions that were there already.

    digests: of the prompt's first blocks, as far as they are registered. borrowed: of the last block only the beginning
    is this sequence's, and grow() copies it. salt: what its keys depend on besides the tokens, such as an adapter.
    """

    blocks: list[int] = field(default_factory=list)
    cached: int = 0
    digests: list[bytes] = field(default_factory=list)
    borrowed: bool = False
    salt: bytes = b""


class BlockManager:
    """Hands out `count` blocks of `size` positions each.

    A block is used by one table or by several, or free. Free blocks that hold the beginning of a prompt stay findable
    by its tokens until their room is needed, the longest unused first and of a prompt its end before its beginning.
    Only what was computed as a prompt's is registered: keys of an answer's positions have the bits of a decode step,
    which would show. partial: whether the beginning of a block can be found, which a state is not. Not safe from
    several threads: its scheduler's alone. Raises InvalidSpecError for sizes that cannot be.
    """

    def __init__(self, count: int, size: int, partial: bool = True) -> None:
        for name, value, minimum in (("count", count, 1), ("size", size, MIN_SIZE)):
            expected = f"a whole number of {minimum} or more"
            if whole(value, name, expected) < minimum:
                raise InvalidSpecError(f"{name}={value!r}; give {expected}", name)
        self.count, self.size = count, size
        self._min_shared = max(size // _SHARED, 1) if partial else size + 1
        self._refcounts = [0] * count
        self._digests: list[bytes | None] = [None] * count
        self._unused = list(range(count - 1, -1, -1))  # free, with nothing that could be found
        self._lru: OrderedDict[int, None] = OrderedDict()  # free and findable, the longest unused first
        self._by_digest: dict[bytes, int] = {}
        # What came last after the beginning with a digest: a block, and the tokens of a prompt in it, a whole block or
        # less. _beginnings: by block, that digest.
        self._followers: dict[bytes, tuple[int, Sequence[int]]] = {}
        self._beginnings: dict[int, bytes] = {}

    @property
    def free(self) -> int:
        """Blocks that no table uses."""
        return len(self._unused) + len(self._lru)

    @property
    def cached(self) -> int:
        """Blocks that the beginning of a prompt can be found in, used or free."""
        return len(self._beginnings.keys() | set(self._by_digest.values()))

    @property
    def shared(self) -> int:
        """Blocks that several tables use."""
        return sum(users > 1 for users in self._refcounts)

    @property
    def reusable(self) -> int:
        """Free blocks that the beginning of a prompt can be found in."""
        return len(self._lru)

    def shared_of(self, table: BlockTable) -> int:
        """Blocks of a table that others use, too."""
        return sum(self._refcounts[block] > 1 for block in table.blocks)

    def needed(self, positions: int) -> int:
        """Blocks for so many positions of one sequence."""
        return -(-positions // self.size)

    def missing(self, table: BlockTable, first: int, end: int) -> int:
        """Free blocks that grow() takes for these positions."""
        places = range(first // self.size, min(self.needed(end), len(table.blocks)))
        shared = sum(self._is_shared(table, place) for place in places)
        return max(self.needed(end) - len(table.blocks), 0) + shared

    def freed(self, tables: Iterable[BlockTable]) -> int:
        """Blocks that closing all of these tables frees."""
        uses = Counter(block for table in tables for block in table.blocks)
        return sum(count == self._refcounts[block] for block, count in uses.items())

    def lookup(self, prompt: Sequence[int], salt: bytes = b"") -> tuple[list[int], int]:
        """The blocks that hold the beginning of a prompt, and how many tokens of it. The last of them may hold less of
        it than a block; the last token is always left to compute. salt: BlockTable's."""
        blocks: list[int] = []
        digest = salt
        for number in range((len(prompt) - 1) // self.size):
            following = self._digest(digest, prompt, number)
            if (block := self._by_digest.get(following)) is None:
                break
            digest = following
            blocks.append(block)
        cached = len(blocks) * self.size
        block, tokens = self._followers.get(digest, (-1, ()))
        shared = _common(tokens, prompt[cached : min(cached + self.size, len(prompt) - 1)])
        return (blocks, cached) if shared < self._min_shared else ([*blocks, block], cached + shared)

    def open(self, prompt: Sequence[int], salt: bytes = b"") -> BlockTable:
        """A table that uses the blocks of lookup(), and no others yet."""
        blocks, cached = self.lookup(prompt, salt)
        for block in blocks:
            self._retain(block)
        whole_blocks = blocks[: cached // self.size]
        digests = [digest for block in whole_blocks if (digest := self._digests[block]) is not None]
        return BlockTable(blocks, cached, digests, len(whole_blocks) < len(blocks), salt)

    def give_back(self, table: BlockTable) -> None:
        """Do without the borrowed block, if there is one: its part is computed."""
        if table.borrowed:
            self._release(table.blocks.pop())
            table.cached, table.borrowed = len(table.blocks) * self.size, False

    def grow(self, table: BlockTable, first: int, end: int) -> list[Copy] | None:
        """Room to write the positions first .. end - 1, in blocks that no other table uses; what must be copied before.

        None where there are too few free blocks: then nothing has changed. What is written to is not findable any more.
        """
        if self._is_own(table, first, end):
            return []
        if self.missing(table, first, end) > self.free:
            return None
        copies = []
        for place in range(first // self.size, min(self.needed(end), len(table.blocks))):
            block = table.blocks[place]
            if self._is_shared(table, place):
                table.blocks[place] = self._allocate()
                copies.append(Copy(block, table.blocks[place]))
                self._release(block)
            else:
                self._unregister(block, max(first - place * self.size, 0))
        table.borrowed = False
        del table.digests[first // self.size :]
        table.blocks += [self._allocate() for _ in range(self.needed(end) - len(table.blocks))]
        return copies

    def register(self, table: BlockTable, prompt: Sequence[int], computed: int) -> None:
        """Make whole blocks of a prompt findable, of which `computed` positions are in the cache or will be written
        before a later step reads them. One that is there already stays as it is."""
        for number in range(len(table.digests), min(computed, len(prompt)) // self.size):
            before = table.digests[-1] if table.digests else table.salt
            digest = self._digest(before, prompt, number)
            table.digests.append(digest)
            block = table.blocks[number]
            if digest not in self._by_digest:
                self._by_digest[digest], self._digests[block] = block, digest
                self._follow(before, block, prompt[number * self.size : (number + 1) * self.size])
        rest = len(prompt) % self.size
        if computed >= len(prompt) and rest >= self._min_shared:
            before = table.digests[-1] if table.digests else table.salt
            self._follow(before, table.blocks[len(prompt) // self.size], prompt[-rest:])

    def fork(self, table: BlockTable) -> BlockTable:
        """Another table of the same blocks; whoever writes into one of them first gets a copy of it."""
        for block in table.blocks:
            self._refcounts[block] += 1
        return BlockTable(list(table.blocks), table.cached, list(table.digests), table.borrowed, table.salt)

    def close(self, table: BlockTable) -> None:
        """Give all blocks back; the table gets new, empty lists: who holds the old ones still reads them."""
        for block in reversed(table.blocks):
            self._release(block)
        table.blocks, table.digests, table.cached, table.borrowed = [], [], 0, False

    def clear(self) -> None:
        """Nothing is findable any more."""
        self._unused += self._lru
        self._lru.clear()
        self._by_digest.clear()
        self._followers.clear()
        self._beginnings.clear()
        self._digests = [None] * self.count

    def _digest(self, before: bytes, prompt: Sequence[int], number: int) -> bytes:
        """Of a block's tokens and all before them: nobody finds another one with it, not even who tries."""
        return sha256(before + array("q", prompt[number * self.size : (number + 1) * self.size]).tobytes()).digest()

    def _is_own(self, table: BlockTable, first: int, end: int) -> bool:
        """True if these positions lie in a block that the table has for itself, and that nobody can find: so it is of
        nearly every token of an answer."""
        place = first // self.size
        if (end - 1) // self.size != place or place >= len(table.blocks) or len(table.digests) > place:
            return False
        block = table.blocks[place]
        is_findable = self._digests[block] is not None or block in self._beginnings
        return self._refcounts[block] == 1 and not table.borrowed and not is_findable

    def _is_shared(self, table: BlockTable, place: int) -> bool:
        """True if a block must be copied before the table's sequence writes into it."""
        return self._refcounts[table.blocks[place]] > 1 or (table.borrowed and place == len(table.blocks) - 1)

    def _follow(self, beginning: bytes, block: int, tokens: Sequence[int]) -> None:
        """The block holds these tokens of a prompt after that beginning."""
        if (other := self._followers.get(beginning)) is not None:
            self._beginnings.pop(other[0], None)
        if (former := self._beginnings.pop(block, None)) is not None:
            self._followers.pop(former, None)
        self._followers[beginning] = block, tuple(tokens)
        self._beginnings[block] = beginning

    def _retain(self, block: int) -> None:
        if not self._refcounts[block]:
            del self._lru[block]
        self._refcounts[block] += 1

    def _allocate(self) -> int:
        """A free block to write into: a blank one, or the one that was unused longest."""
        if self._unused:
            block = self._unused.pop()
        else:
            block, _ = self._lru.popitem(last=False)
            self._unregister(block)
        self._refcounts[block] = 1
        return block

    def _release(self, block: int) -> None:
        self._refcounts[block] -= 1
        if self._refcounts[block]:
            return
        if self._digests[block] is None and block not in self._beginnings:
            self._unused.append(block)
        else:
            self._lru[block] = None

    def _unregister(self, block: int, kept: int = 0) -> None:
        """It will be written to, from its position `kept` on."""
        digest, self._digests[block] = self._digests[block], None
        if digest is not None and self._by_digest.get(digest) == block:
            del self._by_digest[digest]
        beginning = self._beginnings.get(block)
        if beginning is not None and kept < len(self._followers[beginning][1]):
            del self._beginnings[block], self._followers[beginning]


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    """Length of the beginning that both have."""
    return next((count for count, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
