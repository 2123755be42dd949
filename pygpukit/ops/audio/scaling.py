"""Scaling along an axis to a norm of one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pygpukit.core.dtypes import float64
from pygpukit.ops import elementwise, reduce
from pygpukit.ops.elementwise import logic

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

TINY = {"float32": 2.0**-126, "float64": 2.0**-1022}


def normalized(S: GPUArray, norm: float | None, axis: int, what: str) -> GPUArray:
    """S over its norms() along an axis; as it is where they are below the smallest normal number, and for norm None."""
    if norm is None:
        return S
    length = norms(S, norm, axis, what)
    return elementwise.div(S, elementwise.where(logic.less(length, TINY[S.dtype.name]), 1.0, length))


def norms(S: GPUArray, norm: float, axis: int | None, what: str) -> GPUArray:
    """Norms along an axis (None: of all), which is kept: inf for the largest magnitude, -inf the least, 0 how many are
    not 0, p > 0. Raises ValueError for others."""
    size = elementwise.abs(S)
    if norm == math.inf:
        length = reduce.max(size, axis, keepdims=True)
    elif norm == -math.inf:
        length = reduce.min(size, axis, keepdims=True)
    elif norm == 0:
        length = elementwise.as_type(reduce.count_nonzero(size, axis, keepdims=True), S.dtype)
    elif norm == 1:
        length = reduce.sum(size, axis, keepdims=True)
    elif norm > 0:
        # float64, as powers of small numbers leave the range of float32.
        powers = elementwise.power(elementwise.as_type(size, float64), norm)
        length = elementwise.as_type(elementwise.power(reduce.sum(powers, axis, keepdims=True), 1 / norm), S.dtype)
    else:
        raise ValueError(f"{what}: norm is {norm!r}; use inf, -inf, 0, a positive number or None")
    return length
