"""The standard's linear algebra that is built from matmul()."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
