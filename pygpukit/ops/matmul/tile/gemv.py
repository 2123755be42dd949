"""Products of few rows in half precision on tensor cores: which block makes them, and the launch of their tile kernels.

Their bits are those of half.cu, so that plans may take either. They do where the table says so.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product as product_of
from typing import TYPE_CHECKING

from pygpukit.core.choices import by_device
from pygpukit.kernels import KernelSpec, launch
from pygpukit.ops.matmul import times
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.matmul.layout.operand import Stack

SKINNY = KernelSpec(__file__, "gemv.cu", front_end="tile", ahead=("sm_90a",), instead=True)
_ELEMENTS = {"bfloat16": "__nv_bfloat16", "float16": "__half"}
_ROWS = (16, 64)  # what the rows are filled up to


@dataclass(frozen=True)
class Block:
    """What one block makes.

    up_to_rows: the most rows of a product that plans make so, 0 for none. columns: of the result. depth: of a step of
    the sum. warps, and blocks on a multiprocessor: as the compiler is told.
    """

    up_to_rows: int
    columns: int
    depth: int
    warps: int
    blocks: int

    def __str__(self) -> str:
        return f"few rows x{self.columns}x{self.depth}"


@by_device
def block() -> Block:
    """As the table has it."""
    return Block(**times.table()["skinny"])


def takes(m: int, transposed: bool) -> bool:
    """Whether plans make products of m rows by these kernels. transposed: how the left operand lies."""
    return m <= min(block().up_to_rows, _ROWS[-1]) and not transposed


def product(left: Stack, right: Stack, out: GPUArray, sizes: tuple[int, int, int, int]) -> None:
    """out = left @ right of at most 64 rows; left is not transposed. sizes: batches, m, n, k. out: dense."""
    batches, m, n, k = sizes
    one = block()
    numbers = (batches, m, n, k, left.lead, right.lead, left.step, right.step)
    repeats = (left.matrices, left.repeat, right.matrices, right.repeat)
    launch(
        SKINNY.of(_expression(out.dtype.name, m, one, right.transposed)),
        (-(-n // one.columns), batches, 1),
        (1, 1, 1),
        span(left.array)[0],
        span(right.array)[0],
        out,
        *(struct.pack("<i", number) for number in (*numbers, *repeats)),
    )


def _expression(dtype: str, m: int, one: Block, transposed: bool) -> str:
    rows = next(rows for rows in _ROWS if m <= rows)
    numbers = f"{rows}, {one.columns}, {one.depth}, {one.warps}, {one.blocks}"
    return f"pk::skinny<{_ELEMENTS[dtype]}, {numbers}, {'true' if transposed else 'false'}>"


@SKINNY.lists
def _listing() -> Iterator[tuple[str, ...]]:
    for dtype, rows, transposed in product_of(_ELEMENTS, _ROWS, (False, True)):
        yield (_expression(dtype, rows, block(), transposed),)
