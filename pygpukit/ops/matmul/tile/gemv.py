"""Products of few rows in half precision on tensor cores: which block makes them, and the launch of their tile kernels.

Their bits are those of half.cu, so that plans may take either. They do where the table says so.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product as product_of
from math import prod
from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.core.choices import by_device
from pygpukit.kernels import KernelSpec, builder, launch
from pygpukit.ops import copying
from pygpukit.ops.matmul import times
from pygpukit.ops.matmul.epilogue.epilogue import in_another_launch
from pygpukit.ops.matmul.layout.batch import is_one_product, matrix_of, rows_of
from pygpukit.ops.matmul.layout.operand import readable
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.matmul.epilogue.epilogue import Epilogue
    from pygpukit.ops.matmul.layout.operand import Stack
    from pygpukit.ops.matmul.problem import Problem

SKINNY = KernelSpec(__file__, "gemv.cu", front_end="tile", ahead=("sm_90a",), instead=True)
_ELEMENTS = {"bfloat16": "__nv_bfloat16", "float16": "__half"}
_ROWS = (16, 64)  # what the rows are filled up to
BACKEND = "tile"
finishes = in_another_launch


@dataclass(frozen=True)
class Block:
    """The tile of one block.

    up_to_rows: the most rows of a product that plans make so, 0 for none. columns: of the result. depth: of a step of
    the sum. warps, and blocks on a multiprocessor: as the compiler is told.
    """

    up_to_rows: int
    columns: int
    depth: int
    warps: int
    blocks: int

    def __str__(self) -> str:
        return f"skinny x{self.columns}x{self.depth}"


@by_device
def block() -> Block:
    """As the table has it."""
    return Block(**times.table()["skinny"])


def takes(m: int, transposed: bool) -> bool:
    """True if plans make products of m rows by these kernels. transposed: how the left operand lies."""
    return m <= min(block().up_to_rows, _ROWS[-1]) and not transposed


def refusal(p: Problem) -> str:
    """Why these kernels do not make a product, "" where plans take them."""
    if p.family != "half" or not takes(p.folded.extents[1], p.a_transposed):
        return "they are for few rows of float16 and bfloat16"
    return builder.missing(SKINNY.of(next(iter(_listing()))[0]))


def time_us(p: Problem) -> float:
    """0: measured faster than all others for as many rows as they are taken for."""
    return 0.0


def tiling(p: Problem) -> Block:
    """The tile of one block."""
    return block()


def reason(p: Problem) -> str:
    """The computation, and how the block was chosen."""
    return f"{p.dtype} on tensor cores, summed in float32; the fastest tile by {times.source()}"


def run(p: Problem, a: GPUArray, b: GPUArray, out: GPUArray, epilogue: Epilogue | None = None) -> None:
    """out = a @ b."""
    dense = out if out.is_contiguous() else native.empty(out.shape, out.dtype)
    rows, right, result = a, b, dense
    if out.ndim > 2 and is_one_product(b, a, dense):
        rows, right, result = rows_of(a), matrix_of(b), rows_of(dense)
    sizes = prod(result.shape[:-2]), rows.shape[-2], right.shape[-1], rows.shape[-1]
    product(readable(rows, "rows"), readable(right, "columns"), result, sizes)
    if dense is not out:
        copying.copy_to(dense, out)


def product(left: Stack, right: Stack, out: GPUArray, sizes: tuple[int, int, int, int]) -> None:
    """out = left @ right of at most 64 rows; left is not transposed. sizes: batches, m, n, k. out: dense."""
    batches, m, n, k = sizes
    chosen = block()
    numbers = (batches, m, n, k, left.lead, right.lead, left.step, right.step)
    repeats = (left.matrices, left.repeat, right.matrices, right.repeat)
    launch(
        SKINNY.of(_expression(out.dtype.name, m, chosen, right.transposed)),
        (-(-n // chosen.columns), batches, 1),
        (1, 1, 1),
        span(left.array)[0],
        span(right.array)[0],
        out,
        *(struct.pack("<i", number) for number in (*numbers, *repeats)),
    )


def _expression(dtype: str, m: int, tiling: Block, transposed: bool) -> str:
    rows = next(rows for rows in _ROWS if m <= rows)
    numbers = f"{rows}, {tiling.columns}, {tiling.depth}, {tiling.warps}, {tiling.blocks}"
    return f"pk::skinny<{_ELEMENTS[dtype]}, {numbers}, {'true' if transposed else 'false'}>"


@SKINNY.lists
def _listing() -> Iterator[tuple[str, ...]]:
    for dtype, rows, transposed in product_of(_ELEMENTS, _ROWS, (False, True)):
        yield (_expression(dtype, rows, block(), transposed),)
