"""The standard's functions that differ from ours a little, and those made of others."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

from pygpukit.array import factory, layout
from pygpukit.array_api._lookup import operation
from pygpukit.array_api.datatypes import result_type
from pygpukit.core.dtypes import bool_
from pygpukit.core.errors import DTypeError, ShapeError
from pygpukit.ops.operands import check_array

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

    Axes = int | tuple[int, ...] | None


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that arrays of these shapes broadcast to. Raises ShapeError when there is none."""
    return reduce(lambda a, b: layout.broadcast_shapes(tuple(a), tuple(b), "broadcast_shapes"), shapes, ())


def unstack(x: GPUArray, /, *, axis: int = 0) -> tuple[GPUArray, ...]:
    """Views of x at each index of an axis."""
    return tuple(operation("moveaxis")(check_array(x, "unstack"), axis, 0))


def diff(
    x: GPUArray,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: GPUArray | None = None,
    append: GPUArray | None = None,
) -> GPUArray:
    """The n-th differences of neighbours along an axis, of x with prepend before it and append after it.

    Raises ValueError for a negative n, ShapeError for an axis that is not there or parts that do not fit.
    """
    if n < 0:
        raise ValueError(f"diff: n is {n} and must not be negative")
    axis = layout.normalize_axis(axis, check_array(x, "diff").ndim, "diff")
    if prepend is not None or append is not None:
        x = operation("concatenate")([part for part in (prepend, x, append) if part is not None], axis=axis)
    rows = operation("moveaxis")(x, axis, 0)
    for _ in range(n):
        rows = rows[1:] - rows[:-1]
    return operation("moveaxis")(rows, 0, axis)


def var(x: GPUArray, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False) -> GPUArray:
    """The variances: gp.var() with another name for the number taken off the divisor."""
    return operation("var")(x, axis=axis, ddof=correction, keepdims=keepdims)


def std(x: GPUArray, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False) -> GPUArray:
    """The standard deviations: square roots of var()."""
    return operation("std")(x, axis=axis, ddof=correction, keepdims=keepdims)


def where(condition: GPUArray, x1: Any, x2: Any, /) -> GPUArray:
    """gp.where() with a condition that must be bool. Raises DTypeError for others."""
    if check_array(condition, "where").dtype != bool_:
        raise DTypeError(f"where: the condition is {condition.dtype}; make it bool, for example with != 0")
    return operation("where")(condition, x1, x2)


def nonzero(x: GPUArray, /) -> tuple[GPUArray, ...]:
    """gp.nonzero(), not of 0-d arrays: those raise ShapeError."""
    if not check_array(x, "nonzero").ndim:
        raise ShapeError("nonzero: a 0-d array has no positions; reshape it to (1,) first")
    return tuple(operation("nonzero")(x))


def take(x: GPUArray, indices: GPUArray, /, *, axis: int | None = None) -> GPUArray:
    """gp.take() with an axis, which only a 1-D array need not name. Raises ShapeError for others."""
    if axis is None and check_array(x, "take").ndim != 1:
        raise ShapeError(f"take: shape {x.shape} has {x.ndim} axes; name one with axis=")
    return operation("take")(x, indices, axis=0 if axis is None else axis)


def searchsorted(
    x1: GPUArray, x2: GPUArray | float, /, *, side: str = "left", sorter: GPUArray | None = None
) -> GPUArray:
    """gp.searchsorted(), also where the types differ: both are converted to their common one."""
    dtype = result_type(check_array(x1, "searchsorted"), x2)
    return operation("searchsorted")(factory.asarray(x1, dtype), factory.asarray(x2, dtype), side=side, sorter=sorter)


def isin(x1: GPUArray | int, x2: GPUArray | int, /, *, invert: bool = False) -> GPUArray:
    """gp.isin() of arrays, or of one and a number."""
    dtype = result_type(x1, x2)
    return operation("isin")(factory.asarray(x1, dtype), factory.asarray(x2, dtype), invert=invert)
