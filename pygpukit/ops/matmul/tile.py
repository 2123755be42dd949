"""Matrix products on tensor cores: what the tile kernels can read, what is copied first, and their launch."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache
from itertools import product as product_of
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from pygpukit._core import native
from pygpukit.kernels import KernelSpec, builder, launch
from pygpukit.ops.matmul.tiles import Tile, fastest, tiles
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

MATMUL = KernelSpec(__file__, "tile.cu", front_end="tile", ahead=("sm_90a",))
_ELEMENTS = {"bfloat16": "__nv_bfloat16", "float16": "__half"}
_ROW = 8  # elements that lead, step and the length of a row are multiples of
_ALIGNMENT = 16  # bytes
_ONE = (1, 1, 1)


class Stack(NamedTuple):
    """A stack of matrices as the kernels read it.

    transposed: its rows are the operand's columns. lead, step: elements between neighbouring rows, and matrices.
    """

    array: GPUArray
    transposed: bool
    lead: int
    step: int


def product(a: GPUArray, b: GPUArray, out: GPUArray) -> None:
    """out = a @ b, all of one type and with the same batch axes."""
    from pygpukit.ops import copying

    if not out.is_contiguous():
        dense = native.empty(out.shape, out.dtype)
        product(a, b, dense)
        copying.copy_to(dense, out)
        return
    m, n, k = out.shape[-2], out.shape[-1], a.shape[-1]
    left, right = _readable(a, "rows"), _readable(b, "columns")
    aligned = n % _ROW == 0 and out.device_ptr % _ALIGNMENT == 0
    batches = prod(out.shape[:-2])
    one = fastest(m, n, k, batches, out.itemsize, multiprocessors(), left.transposed or not aligned)
    numbers = (batches, m, n, k, left.lead, right.lead, n, left.step, right.step, m * n)
    launch(
        MATMUL.of(_expression(out.dtype.name, one, left.transposed, right.transposed, aligned)),
        (-(-m // one.rows) * -(-n // one.columns), batches, 1),
        _ONE,
        span(left.array)[0],
        span(right.array)[0],
        out,
        *(struct.pack("<i", number) for number in numbers),
    )


def _readable(matrices: GPUArray, summed: str) -> Stack:
    """The operand itself where the kernels can read it, else a copy of it: rows along k, filled up with zeros.

    summed: what the sum runs along: the "rows" of a, the "columns" of b.
    """
    found = as_it_is(matrices)
    if found is not None:
        return found
    from pygpukit.ops import copying

    along = matrices if summed == "rows" else _transposed(matrices)
    k = along.shape[-1]
    filled = -(-k // _ROW) * _ROW
    copy = native.empty((*along.shape[:-1], filled), along.dtype)
    if filled != k:
        copying.fill(copy, 0)
    copying.copy_to(along, native.view(copy, along.shape, copy.strides, copy.offset))
    return Stack(copy, summed == "columns", filled, along.shape[-2] * filled)


def as_it_is(matrices: GPUArray) -> Stack | None:
    """How the kernels can read the operand where it lies; None where they cannot: rows of whole 16 bytes are asked."""
    *batch, rows, columns = matrices.shape
    itemsize = matrices.itemsize
    if matrices.device_ptr % _ALIGNMENT or any(stride % itemsize for stride in matrices.strides):
        return None
    *steps, down, right = (stride // itemsize for stride in matrices.strides)
    step = _one_step(tuple(batch), tuple(steps))
    transposed = right != 1 or (columns == 1 and down == 1 and rows > 1)
    lead, unit, length, lines = (right, down, rows, columns) if transposed else (down, right, columns, rows)
    if lines == 1:
        lead = max(length, _ROW)  # nothing follows the one row
    if step is None or unit != 1 or lead < length or lead % _ROW or step % _ROW or length % _ROW:
        return None
    return Stack(matrices, transposed, lead, step)


def _one_step(batch: tuple[int, ...], steps: tuple[int, ...]) -> int | None:
    """Elements between neighbours of a stack whose batch axes are one after the other, None where they are not."""
    step, expected = 0, 0
    for extent, each in zip(reversed(batch), reversed(steps), strict=True):
        if extent == 1:
            continue
        if expected and each != expected:
            return None
        step = step or each
        expected = each * extent
        if each <= 0:
            return None  # one matrix for several, or backwards
    return step


def _transposed(matrices: GPUArray) -> GPUArray:
    *batch, rows, columns = matrices.shape
    *steps, down, right = matrices.strides
    return native.view(matrices, (*batch, columns, rows), (*steps, right, down), matrices.offset)


def _expression(dtype: str, tile: Tile, a_transposed: bool, b_transposed: bool, c_aligned: bool) -> str:
    flags = ", ".join("true" if flag else "false" for flag in (a_transposed, b_transposed, c_aligned))
    return f"pk::matmul<{_ELEMENTS[dtype]}, {tile.rows}, {tile.columns}, {tile.depth}, {tile.warps}, {flags}>"


@MATMUL.lists
def _listing() -> Iterator[tuple[str, ...]]:
    for dtype, tile, b_transposed in product_of(_ELEMENTS, tiles(), (False, True)):
        yield (_expression(dtype, tile, False, b_transposed, True),)
        if tile.general:
            for a_transposed, c_aligned in ((False, False), (True, False), (True, True)):
                yield (_expression(dtype, tile, a_transposed, b_transposed, c_aligned),)


@cache
def multiprocessors() -> int:
    """Of the current device."""
    return int(native.device_info(native.current_device())["multiprocessor_count"])


def chosen(a: GPUArray, b: GPUArray) -> Tile:
    """The tile that product() takes for these operands. Copies and launches nothing."""
    left = as_it_is(a)
    m, n, k = a.shape[-2], b.shape[-1], a.shape[-1]
    general = (left is not None and left.transposed) or n % _ROW != 0
    return fastest(m, n, k, prod(a.shape[:-2]), a.itemsize, multiprocessors(), general)


@cache
def missing() -> str:
    """Why there are no tile kernels here, "" where there are."""
    return builder.missing(MATMUL.of(next(iter(_listing()))[0]))
