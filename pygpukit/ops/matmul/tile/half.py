"""Matrix products of half precision on tensor cores: the launch of their tile kernels."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import product as product_of
from math import prod
from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.core import device
from pygpukit.core.choices import by_device
from pygpukit.kernels import KernelSpec, builder, launch
from pygpukit.ops import raw
from pygpukit.ops.matmul import times
from pygpukit.ops.matmul.epilogue.epilogue import in_another_launch
from pygpukit.ops.matmul.layout.batch import is_one_product, matrix_of, rows_of
from pygpukit.ops.matmul.layout.operand import ALIGNMENT, aligned_length, readable
from pygpukit.ops.matmul.tile.tiling import Tile, fastest, tiles
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.matmul.epilogue.epilogue import Epilogue
    from pygpukit.ops.matmul.problem import Problem

MATMUL = KernelSpec(__file__, "half.cu", front_end="tile", ahead=("sm_90a",), instead=True)
ELEMENTS = {"bfloat16": "__nv_bfloat16", "float16": "__half"}
_ROW = 8  # elements: 16 bytes
_ONE = (1, 1, 1)
# How much longer tiles take than their times tell: where the result's rows are no whole 16 bytes; by 30 products on an
# H100, with right operands along n, and along k, and with lines of no whole 128 bytes.
UNALIGNED = 2.0
_ALONG_N, _ALONG_K, _UNEVEN = 0.9, 1.03, 1.15
_LINE = 128
BACKEND = "tile"
finishes = in_another_launch


def refusal(p: Problem) -> str:
    """Why the tile kernels do not make a product, "" where they do."""
    return "" if p.family == "half" and not missing() else missing() or "they multiply float16 and bfloat16"


def time_us(p: Problem) -> float:
    """The time of the fastest tile by the measured times."""
    products, m, n, k = p.folded.extents
    size, sms = p.dtype.itemsize, p.device.sm_count
    unaligned = n % _ROW != 0
    tile = fastest("half", m, n, k, products, size, sms, unaligned or p.a_transposed)
    longer = _ALONG_K if p.b_along_k else _ALONG_N
    longer *= UNALIGNED if unaligned else _UNEVEN if n * size % _LINE or k * size % _LINE else 1.0
    return tile.time_us(m, n, k, products, size, sms) * longer


def tiling(p: Problem) -> Tile:
    """The tile of one block."""
    products, m, n, k = p.folded.extents
    left, right = p.folded.a.in_place(), p.folded.b.in_place()
    general = (left is not None and left[0]) or n % _ROW != 0
    deep = _deep(*(aligned_length(k, p.dtype.itemsize) if side is None else side[1] for side in (left, right)))
    return fastest("half", m, n, k, products, p.dtype.itemsize, p.device.sm_count, general, deep)


def reason(p: Problem) -> str:
    """The computation, and how the tile was chosen."""
    return f"{p.dtype} on tensor cores, summed in float32; the fastest tile by {times.source()}"


def run(p: Problem, a: GPUArray, b: GPUArray, out: GPUArray, epilogue: Epilogue | None = None) -> None:
    """out = a @ b."""
    product(a, b, out)


def product(a: GPUArray, b: GPUArray, out: GPUArray) -> None:
    """out = a @ b, all of one type and with the same batch axes."""
    from pygpukit.ops import copying

    if not out.is_contiguous():
        dense = native.empty(out.shape, out.dtype)
        product(a, b, dense)
        copying.copy_to(dense, out)
        return
    if out.ndim > 2 and is_one_product(b, a, out):
        a, b, out = rows_of(a), matrix_of(b), rows_of(out)
    m, n, k = out.shape[-2], out.shape[-1], a.shape[-1]
    left, right = readable(a, "rows"), readable(b, "columns")
    aligned = n % _ROW == 0 and raw.address(out) % ALIGNMENT == 0
    batches = prod(out.shape[:-2])
    general, deep = left.transposed or not aligned, _deep(left.lead, right.lead)
    tile = fastest("half", m, n, k, batches, out.itemsize, device.current().sm_count, general, deep)
    numbers = (batches, m, n, k, left.lead, right.lead, n, left.step, right.step, m * n)
    repeats = (left.matrices, left.repeat, right.matrices, right.repeat)
    launch(
        MATMUL.of(_expression(out.dtype.name, tile, left.transposed, right.transposed, aligned)),
        (-(-m // tile.rows) * -(-n // tile.columns), batches, 1),
        _ONE,
        span(left.array)[0],
        span(right.array)[0],
        out,
        *(struct.pack("<i", number) for number in (*numbers, *repeats)),
    )


def _expression(dtype: str, tile: Tile, a_transposed: bool, b_transposed: bool, c_aligned: bool) -> str:
    flags = ", ".join("true" if flag else "false" for flag in (a_transposed, b_transposed, c_aligned))
    return f"pk::matmul<{ELEMENTS[dtype]}, {tile.rows}, {tile.columns}, {tile.depth}, {tile.warps}, {flags}>"


@MATMUL.lists
def _listing() -> Iterator[tuple[str, ...]]:
    for dtype, tile, b_transposed in product_of(ELEMENTS, tiles("half"), (False, True)):
        yield (_expression(dtype, tile, False, b_transposed, True),)
        if tile.general:
            for a_transposed, c_aligned in ((False, False), (True, False), (True, True)):
                yield (_expression(dtype, tile, a_transposed, b_transposed, c_aligned),)


def _deep(*leads: int) -> bool:
    """True if rows begin in the middle of 32 bytes: see fastest()."""
    return any(lead % (2 * _ROW) for lead in leads)


@by_device
def missing() -> str:
    """Why there are no tile kernels here, "" where there are."""
    return builder.missing(MATMUL.of(next(iter(_listing()))[0]))
