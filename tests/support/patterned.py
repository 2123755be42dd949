"""Blocks whose words follow from their place and a mark: a kernel checks them where they lie and marks them anew."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pygpukit as gp
from pygpukit import _core

# No two words of any blocks are the same, as long as marks are not and a block has less than 2^32 words.
VISIT = """
__device__ unsigned long long word(unsigned long long place, unsigned long long mark) {
    return (place ^ (mark << 32)) * 0x9E3779B97F4A7C15ull;
}
extern "C" __global__ void visit(unsigned long long *x, unsigned was, unsigned next, unsigned long long *wrong,
                                 unsigned words) {
    unsigned long long bad = 0;
    for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < words;
         i += (unsigned long long)gridDim.x * blockDim.x) {
        if (was != 0 && x[i] != word(i, was)) ++bad;
        x[i] = word(i, next);
    }
    if (bad) atomicAdd(wrong, bad);
}
"""


class Patterned:
    """An array of words with a mark from 1 on. `wrong`, a word on the device, counts what its visits find amiss."""

    def __init__(self, words: int, mark: int, wrong: gp.GPUArray) -> None:
        self.array, self.wrong, self.mark = gp.empty(words, dtype="uint64"), wrong, 0
        self.address = self.array.device_ptr
        self.kernel = gp.jit(VISIT, func="visit", name="visit.cu")
        self.visit(mark)

    def visit(self, mark: int) -> None:
        """Check every word, after bringing them back to the device if they are not there, and leave another mark."""
        blocks = min(-(-self.array.size // 256), 1024)
        self.kernel[blocks, 256](self.array, self.mark, mark, self.wrong, self.array.size)
        self.mark = mark


def wrong_after(words: Sequence[int], weights: Sequence[int], cycles: int, seed: int) -> int:
    """Makes blocks of so many words, evicts `cycles` times one of them, by weight, and brings it back to its address.

    It comes back when another one has gone, into the memory that this one left if they are of a size: what its kernel
    finds there has come from the host. Returns how many words were wrong, all in all.
    """
    rng, wrong, away = random.Random(seed), gp.zeros(1, dtype="uint64"), None
    blocks = [Patterned(count, mark, wrong) for mark, count in enumerate(words, 1)]
    before = _core.pool_stats(0)
    for mark in range(len(words) + 1, len(words) + 1 + cycles):
        block = away
        while block is away:
            (block,) = rng.choices(blocks, weights)
        assert block is not None
        _core.pool_evict(0, block.array.block)
        assert not block.array.resident
        if away is not None:
            away.visit(mark)
            assert away.array.resident and away.array.device_ptr == away.address
        away = block
    for block in blocks:
        block.visit(len(words) + 1 + cycles)
    after = _core.pool_stats(0)
    assert after.eviction_count - before.eviction_count >= cycles
    assert after.restore_count - before.restore_count >= cycles
    return int(wrong.to_numpy()[0])
