"""Operands of matrix products as stacks of matrices, by NumPy's rules for shapes."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.array import layout

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.matmul.layout.operand import Operand


def stacked(a: GPUArray, b: GPUArray, what: str = "matmul") -> tuple[GPUArray, GPUArray, layout.Shape]:
    """Both operands as stacks of matrices with common batch axes, and the shape of the result. Raises ShapeError."""
    left, right, shape = layout.matrix_stacks((a.shape, a.strides), (b.shape, b.strides), what)
    a, b = (x if x.shape == own[0] else native.view(x, *own, x.offset) for x, own in ((a, left), (b, right)))
    return a, b, shape


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
