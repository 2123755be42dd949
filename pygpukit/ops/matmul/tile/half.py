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
from pygpukit.ops.matmul.layout.batch import is_one_product, matrix_of, rows_of
from pygpukit.ops.matmul.layout.operand import ALIGNMENT, aligned_length, as_it_is, readable
from pygpukit.ops.matmul.mma import unaligned
from pygpukit.ops.matmul.tile import gemv as tile_gemv
from pygpukit.ops.matmul.tile.tiling import Tile, fastest, tiles
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

MATMUL = KernelSpec(__file__, "half.cu", front_end="tile", ahead=("sm_90a",), instead=True)
ELEMENTS = {"bfloat16": "__nv_bfloat16", "float16": "__half"}
_ROW = 8  # elements: 16 bytes
_ONE = (1, 1, 1)
_ODD_SM = 90  # where the bits of unaligned.cu were compared
# Of copies of operands, on an H100: a launch, and a MiB that is read, written and read again.
_LAUNCH_US, _COPY_US_PER_MB = 6.0, 0.9
UNALIGNED = 2.0  # how much longer tiles take than their times tell where the result's rows are no whole 16 bytes


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
    if (block := odd_block(a, b)) is not None:
        unaligned.product(a, b, out, block)
        return
    left, right = readable(a, "rows"), readable(b, "columns")
    aligned = n % _ROW == 0 and raw.address(out) % ALIGNMENT == 0
    batches = prod(out.shape[:-2])
    if tile_gemv.takes(m, left.transposed):
        tile_gemv.product(left, right, out, (batches, m, n, k))
        return
    general, deep = left.transposed or not aligned, _deep(left.lead, right.lead)
    one = fastest("half", m, n, k, batches, out.itemsize, device.current().sm_count, general, deep)
    numbers = (batches, m, n, k, left.lead, right.lead, n, left.step, right.step, m * n)
    repeats = (left.matrices, left.repeat, right.matrices, right.repeat)
    launch(
        MATMUL.of(_expression(out.dtype.name, one, left.transposed, right.transposed, aligned)),
        (-(-m // one.rows) * -(-n // one.columns), batches, 1),
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


def chosen(a: GPUArray, b: GPUArray) -> Tile | tile_gemv.Block | unaligned.Block:
    """What product() makes in one block, for these operands. Copies and launches nothing."""
    if a.ndim > 2 and is_one_product(b, a):
        a, b = rows_of(a), matrix_of(b)
    if (block := odd_block(a, b)) is not None:
        return block
    left, right = as_it_is(a), as_it_is(b)
    m, n, k = a.shape[-2], b.shape[-1], a.shape[-1]
    transposed = left is not None and left.transposed
    if tile_gemv.takes(m, transposed):
        return tile_gemv.block()
    general = transposed or n % _ROW != 0
    deep = _deep(*(aligned_length(k, a.itemsize) if side is None else side.lead for side in (left, right)))
    return fastest("half", m, n, k, prod(a.shape[:-2]), a.itemsize, device.current().sm_count, general, deep)


def _deep(*leads: int) -> bool:
    """Whether rows begin in the middle of 32 bytes: see fastest()."""
    return any(lead % (2 * _ROW) for lead in leads)


def odd_block(a: GPUArray, b: GPUArray) -> unaligned.Block | None:
    """What unaligned.cu makes in one block, where it takes less time than tiles and copies of what they cannot read."""
    if a.ndim > 2 and is_one_product(b, a):
        a, b = rows_of(a), matrix_of(b)
    size = a.itemsize
    anyhow = as_it_is(a, size), as_it_is(b, size)
    if device.current().capability != _ODD_SM or anyhow[0] is None or anyhow[1] is None or unaligned.refusal():
        return None
    *batch, m, k = a.shape
    n, launches, elements = b.shape[-1], 0, 0
    for matrices, found, along_k in ((a, anyhow[0], not anyhow[0].transposed), (b, anyhow[1], anyhow[1].transposed)):
        if as_it_is(matrices) is None:
            launches += 1 if along_k else 2
            elements += found.matrices * matrices.shape[-2] * matrices.shape[-1]
    if not launches and n % _ROW == 0:
        return None
    return _faster((prod(batch), m, n, k), size, launches, elements)


@by_device
def _faster(shape: tuple[int, int, int, int], size: int, launches: int, elements: int) -> unaligned.Block | None:
    """The block of unaligned.cu, None where tiles are faster after so many launches that copy so many elements."""
    batches, m, n, k = shape
    sms, general = device.current().sm_count, n % _ROW != 0
    copies = launches * _LAUNCH_US + elements * size / 2**20 * _COPY_US_PER_MB
    tiles_us = fastest("half", m, n, k, batches, size, sms, general).time_us(m, n, k, batches, size, sms)
    time_us, block = unaligned.fastest(m, n, k, batches, sms)
    return block if time_us < tiles_us * (UNALIGNED if general else 1.0) + copies else None


@by_device
def missing() -> str:
    """Why there are no tile kernels here, "" where there are."""
    return builder.missing(MATMUL.of(next(iter(_listing()))[0]))
