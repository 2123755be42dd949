"""Operands of matrix products as stacks of matrices, by NumPy's rules for shapes."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.array import layout
from pygpukit.core.errors import ShapeError

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.matmul.layout.operand import Operand


def stacked(a: GPUArray, b: GPUArray, what: str = "matmul") -> tuple[GPUArray, GPUArray, layout.Shape]:
    """Both operands with at least two axes and common batch axes, and the shape of the result."""
    if a.ndim == 0 or b.ndim == 0:
        raise ShapeError(
            f"{what}: shapes {a.shape} and {b.shape}: a 0-d operand has no matrix dimension; use * instead"
        )
    inner_a, inner_b = a.shape[-1], b.shape[-2] if b.ndim > 1 else b.shape[0]
    if inner_a != inner_b:
        raise ShapeError(
            f"{what}: shapes {a.shape} and {b.shape} do not fit: the inner dimensions are {inner_a} and {inner_b} and "
            "must be equal; transpose or reshape one operand"
        )
    batch = layout.broadcast_shapes(a.shape[:-2], b.shape[:-2], f"{what} (batch dimensions)")
    rows = a.shape[-2:-1]
    columns = b.shape[-1:] if b.ndim > 1 else ()
    return (as_stack(a, batch, row=True), as_stack(b, batch, row=False), batch + rows + columns)


def as_stack(array: GPUArray, batch: layout.Shape, row: bool) -> GPUArray:
    """The operand as a view of shape batch + (rows, columns); a vector becomes a row or a column."""
    if array.ndim == 2 and not batch:
        return array
    shape, strides = array.shape, array.strides
    if array.ndim == 1:
        shape, strides = ((1, *shape), (0, *strides)) if row else ((*shape, 1), (*strides, 0))
    strides = layout.broadcast_strides(shape, strides, batch + shape[-2:])
    return native.view(array, batch + shape[-2:], strides, array.offset)


def with_matrix_axes(out: GPUArray, no_rows: bool, no_columns: bool) -> GPUArray:
    """The output as a view with the row and column axes that a 1-D operand dropped."""
    if not no_rows and not no_columns:
        return out
    shape, strides = list(out.shape), list(out.strides)
    if no_columns:
        shape.append(1)
        strides.append(0)
    if no_rows:
        shape.insert(len(shape) - 1, 1)
        strides.insert(len(strides) - 1, 0)
    return native.view(out, shape, strides, out.offset)


def is_one_product(b: GPUArray | Operand, *stacks: GPUArray | Operand) -> bool:
    """True if stacks with the matrix b for each of theirs are one product of all their rows."""
    if prod(b.shape[:-2]) == 1:
        return True
    repeated = not any(step for extent, step in zip(b.shape[:-2], b.strides[:-2], strict=True) if extent > 1)
    return repeated and all(stack.is_contiguous() for stack in stacks)


def rows_of(stack: GPUArray) -> GPUArray:
    """All rows of a stack that is_one_product() takes, as one matrix."""
    if not stack.is_contiguous():
        return matrix_of(stack)
    n, itemsize = stack.shape[-1], stack.itemsize
    return native.view(stack, (prod(stack.shape[:-1]), n), (n * itemsize, itemsize), stack.offset)


def matrix_of(stack: GPUArray) -> GPUArray:
    """The one matrix of a stack, or the one that it repeats."""
    return native.view(stack, stack.shape[-2:], stack.strides[-2:], stack.offset)
