"""What tile kernels can read where it lies, and copies of what they cannot: they want rows of whole 16 bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pygpukit._core import native
from pygpukit.ops import raw

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

ALIGNMENT = 16  # bytes


class Stack(NamedTuple):
    """A stack of matrices as the kernels read it.

    transposed: its rows are the operand's columns. lead, step: elements between neighbouring rows, and matrices.
    """

    array: GPUArray
    transposed: bool
    lead: int
    step: int


def readable(matrices: GPUArray, summed: str, along_k: bool = False) -> Stack:
    """The operand itself where the kernels can read it, else a copy of it: rows along k, filled up with zeros.

    summed: what the sum runs along: the "rows" of a, the "columns" of b. along_k: only rows along k can be read.
    """
    found = as_it_is(matrices)
    if found is not None and not (along_k and found.transposed != (summed == "columns")):
        return found
    from pygpukit.ops import copying

    along = matrices if summed == "rows" else _transposed(matrices)
    k = along.shape[-1]
    filled = whole(k, along.itemsize)
    copy = native.empty((*along.shape[:-1], filled), along.dtype)
    if filled != k:
        native.fill(copy, bytes(copy.itemsize))
    copying.copy_to(along, native.view(copy, along.shape, copy.strides, copy.offset))
    return Stack(copy, summed == "columns", filled, along.shape[-2] * filled)


def as_it_is(matrices: GPUArray, alignment: int = ALIGNMENT) -> Stack | None:
    """How the operand can be read where it lies; None where it cannot: rows of whole `alignment` bytes are asked."""
    *batch, rows, columns = matrices.shape
    itemsize = matrices.itemsize
    row = alignment // itemsize
    if raw.address(matrices) % alignment or any(stride % itemsize for stride in matrices.strides):
        return None
    *steps, down, right = (stride // itemsize for stride in matrices.strides)
    step = _one_step(tuple(batch), tuple(steps))
    transposed = right != 1 or (columns == 1 and down == 1 and rows > 1)
    lead, unit, length, lines = (right, down, rows, columns) if transposed else (down, right, columns, rows)
    if lines == 1:
        lead = max(length, row)  # nothing follows the one row
    if step is None or unit != 1 or lead < length or lead % row or step % row or length % row:
        return None
    return Stack(matrices, transposed, lead, step)


def whole(length: int, itemsize: int) -> int:
    """The length of a row, filled up to whole 16 bytes."""
    row = ALIGNMENT // itemsize
    return -(-length // row) * row


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
