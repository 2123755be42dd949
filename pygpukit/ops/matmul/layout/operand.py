"""Operands that tile kernels read in place, and copies of others: they need rows of whole 16 bytes."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from pygpukit._core import native
from pygpukit.ops import raw

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

ALIGNMENT = 16  # bytes


class Operand(NamedTuple):
    """Layout of an operand, a stack of matrices. strides: bytes. address: of the first element, modulo ALIGNMENT."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int
    address: int = 0

    @classmethod
    def of(cls, array: GPUArray) -> Operand:
        """Of an array."""
        return cls(tuple(array.shape), tuple(array.strides), array.itemsize, raw.address(array) % ALIGNMENT)

    @classmethod
    def dense(cls, shape: tuple[int, ...], itemsize: int) -> Operand:
        """Of a new array."""
        return cls(shape, tuple(itemsize * prod(shape[axis + 1 :]) for axis in range(len(shape))), itemsize)

    def is_contiguous(self) -> bool:
        """It lies as a new array of its shape does."""
        dense = self.dense(self.shape, self.itemsize).strides
        return all(
            extent == 1 or step == dense_step
            for extent, step, dense_step in zip(self.shape, self.strides, dense, strict=True)
        )

    def matrix(self) -> Operand:
        """Its one matrix, or the one that it repeats."""
        return self._replace(shape=self.shape[-2:], strides=self.strides[-2:])

    def transposed(self) -> Operand:
        """Its matrices transposed."""
        (*batch, rows, columns), (*steps, down, right) = self.shape, self.strides
        return self._replace(shape=(*batch, columns, rows), strides=(*steps, right, down))

    def rows(self) -> Operand:
        """All rows as one matrix: batch.rows_of()."""
        if not self.is_contiguous():
            return self.matrix()
        shape = prod(self.shape[:-1]), self.shape[-1]
        return self._replace(shape=shape, strides=(shape[1] * self.itemsize, self.itemsize))

    def in_place(self, alignment: int = ALIGNMENT) -> tuple[bool, int, int, int, int] | None:
        """The fields of Stack beside the array, None where it cannot be read so: as_it_is()."""
        return None if self.address % alignment else in_place(self.shape, self.strides, self.itemsize, alignment)


class Stack(NamedTuple):
    """A stack of matrices as the kernels read it.

    transposed: its rows are the operand's columns. lead, step: elements between neighbouring rows, and matrices.
    matrices: that there are; product i of a batch has matrix i // repeat % matrices.
    """

    array: GPUArray
    transposed: bool
    lead: int
    step: int
    matrices: int = 1
    repeat: int = 1


def readable(matrices: GPUArray, summed: str, along_k: bool = False) -> Stack:
    """The operand itself where the kernels can read it, else a copy of it: rows along k, filled up with zeros.

    summed: what the sum runs along: the "rows" of a, the "columns" of b. along_k: only rows along k can be read.
    """
    readings = as_it_is(matrices)
    if readings is not None and not (along_k and readings.transposed != (summed == "columns")):
        return readings
    each = _distinct(matrices)
    along = each if summed == "rows" else _transposed(each)
    copy = _filled_up(along)
    filled = copy.shape[-1]
    batch = prod(along.shape[:-2])
    return Stack(copy, summed == "columns", filled, along.shape[-2] * filled if batch > 1 else 0, batch)


def _filled_up(lines: GPUArray) -> GPUArray:
    """A dense copy, its rows filled up with zeros to whole 16 bytes."""
    from pygpukit.ops import copying
    from pygpukit.ops.indexing import padding

    length = lines.shape[-1]
    filled = aligned_length(length, lines.itemsize)
    if filled != length and lines.strides[-1] == lines.itemsize:  # by one launch
        return padding.pad(lines, [(0, 0)] * (lines.ndim - 1) + [(0, filled - length)])
    copy = native.empty((*lines.shape[:-1], filled), lines.dtype)
    if filled != length:
        native.fill(copy, bytes(copy.itemsize))
    copying.copy_to(lines, native.view(copy, lines.shape, copy.strides, copy.offset))
    return copy


def as_it_is(matrices: GPUArray, alignment: int = ALIGNMENT) -> Stack | None:
    """The operand as it is read in place; None where it cannot: rows of whole `alignment` bytes are asked."""
    if raw.address(matrices) % alignment:
        return None
    readable_form = in_place(matrices.shape, matrices.strides, matrices.itemsize, alignment)
    return None if readable_form is None else Stack(matrices, *readable_form)


@lru_cache(maxsize=4096)
def in_place(
    shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int, alignment: int
) -> tuple[bool, int, int, int, int] | None:
    """The fields of Stack beside the array, of one that begins at a whole number of `alignment` bytes, or None."""
    *batch, rows, columns = shape
    row = alignment // itemsize
    if any(stride % itemsize for stride in strides):
        return None
    *steps, down, right = (stride // itemsize for stride in strides)
    order = _order(tuple(batch), tuple(steps))
    transposed = right != 1 or (columns == 1 and down == 1 and rows > 1)
    lead, unit, length, lines = (right, down, rows, columns) if transposed else (down, right, columns, rows)
    if lines == 1:
        lead = max(length, row)  # nothing follows the one row
    if order is None or unit != 1 or lead < length or lead % row or order[0] % row or length % row:
        return None
    return transposed, lead, *order


def aligned_length(length: int, itemsize: int) -> int:
    """The length of a row, filled up to whole 16 bytes."""
    row = ALIGNMENT // itemsize
    return -(-length // row) * row


def _order(batch: tuple[int, ...], steps: tuple[int, ...]) -> tuple[int, int, int] | None:
    """(step, matrices, repeat) of a stack, as Stack has them; None where they do not follow each other."""
    axes = [(extent, step) for extent, step in zip(batch, steps, strict=True) if extent != 1]
    matrices = repeat = 1
    while axes and axes[-1][1] == 0:
        repeat *= axes.pop()[0]
    step = axes[-1][1] if axes else 0
    while axes and axes[-1][1] == step * matrices:
        matrices *= axes.pop()[0]
    return None if step < 0 or any(each for _, each in axes) else (step, matrices, repeat)


def _distinct(matrices: GPUArray) -> GPUArray:
    """A stack that is one matrix throughout, as this one; others as they are."""
    *batch, rows, columns = matrices.shape
    if any(step for extent, step in zip(batch, matrices.strides[:-2], strict=True) if extent > 1):
        return matrices
    return native.view(matrices, (rows, columns), matrices.strides[-2:], matrices.offset)


def _transposed(matrices: GPUArray) -> GPUArray:
    *batch, rows, columns = matrices.shape
    *steps, down, right = matrices.strides
    return native.view(matrices, (*batch, columns, rows), (*steps, right, down), matrices.offset)
