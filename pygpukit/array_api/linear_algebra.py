"""The standard's linear algebra that differs from ours a little."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygpukit.core.errors import ShapeError
from pygpukit.ops.linalg import products

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray


def vecdot(x1: GPUArray, x2: GPUArray, /, *, axis: int = -1) -> GPUArray:
    """gp.linalg.vecdot() over an axis counted from the end. Raises ShapeError for others."""
    for x in (x1, x2):
        if not -x.ndim <= axis < 0:
            raise ShapeError(f"vecdot: axis {axis} is not among the last {x.ndim} axes of shape {x.shape}")
    return products.vecdot(x1, x2, axis=axis)
