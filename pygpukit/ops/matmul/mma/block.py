"""Blocks of products by mma.sync: what a kernel is compiled for, and how long it takes; and what copies cost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pygpukit.ops.matmul.layout.operand import ALIGNMENT

if TYPE_CHECKING:
    from pygpukit.ops.matmul.problem import Problem

_PADDED_ROWS = 32  # rows that every product may be filled up to
# Of copies of operands, on an H100: a launch, and a MiB that is read, written and read again.
_LAUNCH_US, _COPY_US_PER_MB = 6.0, 0.9


@dataclass(frozen=True)
class Block:
    """The tile of one block, and its measured times.

    rows, columns: of the result. depth: of a step of the sum. down, across: its warps. stages: steps that shared memory
    holds. blocks: of a multiprocessor, at least. fixed_us: of a launch; alone_us: of one step where a multiprocessor
    has one block; step_us: of one step of each further block there. ramp: steps that it takes as long to begin and end.
    """

    rows: int
    columns: int
    depth: int
    down: int
    across: int
    stages: int
    blocks: int
    fixed_us: float = 0.0
    alone_us: float = 0.0
    step_us: float = 0.0
    ramp: float = 0.0

    def tiles(self, m: int, n: int) -> int:
        """Of a result."""
        return -(-m // self.rows) * -(-n // self.columns)

    def time_us(self, m: int, n: int, k: int, batches: int, multiprocessors: int) -> float:
        """The time of a product by the measured times."""
        each = -(-batches * self.tiles(m, n) // multiprocessors)
        steps = -(-k // self.depth) + self.ramp
        return self.fixed_us + steps * (self.alone_us + (each - 1) * self.step_us)

    def threads(self) -> int:
        """Of a block."""
        return 32 * self.down * self.across

    def numbers(self) -> str:
        """The arguments of a kernel's template."""
        return f"{self.rows}, {self.columns}, {self.depth}, {self.down}, {self.across}, {self.stages}, {self.blocks}"

    def __str__(self) -> str:
        return f"{self.rows}x{self.columns}x{self.depth}"


def fastest(blocks: Iterable[Block], m: int, n: int, k: int, batches: int, multiprocessors: int) -> tuple[float, Block]:
    """The block whose measured times are shortest, and these. blocks: the smallest one last."""
    every = tuple(blocks)
    fitting = [block for block in every if block.rows <= max(m, _PADDED_ROWS)] or [every[-1]]
    times = [block.time_us(m, n, k, batches, multiprocessors) for block in fitting]
    return min(times), fitting[times.index(min(times))]


def copies_us(p: Problem, alignment: int = ALIGNMENT, along_k: bool = False) -> float:
    """The time of copies of operands that are not read where they lie by whole `alignment` bytes, 0 for none. along_k:
    nothing is read across k."""
    launches = elements = 0
    for side, along_rows in ((p.folded.a, True), (p.folded.b, False)):
        in_place = side.in_place(alignment)
        if in_place is None or (along_k and in_place[0] == along_rows):
            by_elements = side.in_place(p.dtype.itemsize)
            launches += 1 if by_elements is not None and by_elements[0] != along_rows else 2
            matrices = 1 if by_elements is None else by_elements[3]
            elements += matrices * side.shape[-2] * side.shape[-1]
    return launches * _LAUNCH_US + elements * p.dtype.itemsize / 2**20 * _COPY_US_PER_MB
