"""The standard's linear algebra that is built from matmul()."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from pygpukit.array import layout
from pygpukit.array_api._lookup import operation
from pygpukit.core.errors import ShapeError
from pygpukit.ops.matmul.gemm import matmul

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray


def vecdot(x1: GPUArray, x2: GPUArray, /, *, axis: int = -1) -> GPUArray:
    """The dot product over one axis, counted from the end; x1 is conjugated. The other axes broadcast."""
    for x in (x1, x2):
        if not -x.ndim <= axis < 0:
            raise ShapeError(f"vecdot: axis {axis} is not among the last {x.ndim} axes of shape {x.shape}")
    if x1.shape[axis] != x2.shape[axis]:
        raise ShapeError(f"vecdot: shapes {x1.shape} and {x2.shape} differ along axis {axis}")
    moveaxis = operation("moveaxis")
    a, b = operation("broadcast_arrays")(moveaxis(operation("conj")(x1), axis, -1), moveaxis(x2, axis, -1))
    return matmul(a[..., None, :], b[..., :, None])[..., 0, 0]


def tensordot(x1: GPUArray, x2: GPUArray, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> GPUArray:
    """Sums over the last `axes` axes of x1 and the first of x2, or over pairs of named axes."""
    if isinstance(axes, int):
        if not 0 <= axes <= min(x1.ndim, x2.ndim):
            raise ShapeError(f"tensordot: {axes} axes of shapes {x1.shape} and {x2.shape} cannot be contracted")
        axes = tuple(range(x1.ndim - axes, x1.ndim)), tuple(range(axes))
    left = [layout.normalize_axis(axis, x1.ndim, "tensordot") for axis in axes[0]]
    right = [layout.normalize_axis(axis, x2.ndim, "tensordot") for axis in axes[1]]
    summed = tuple(x1.shape[axis] for axis in left)
    if summed != tuple(x2.shape[axis] for axis in right):
        raise ShapeError(f"tensordot: axes {axes} of shapes {x1.shape} and {x2.shape} differ in extent")
    rows = [axis for axis in range(x1.ndim) if axis not in left]
    columns = [axis for axis in range(x2.ndim) if axis not in right]
    shape = tuple(x1.shape[axis] for axis in rows), tuple(x2.shape[axis] for axis in columns)
    a = x1.transpose((*rows, *left)).reshape(prod(shape[0]), prod(summed))
    b = x2.transpose((*right, *columns)).reshape(prod(summed), prod(shape[1]))
    return matmul(a, b).reshape(shape[0] + shape[1])
