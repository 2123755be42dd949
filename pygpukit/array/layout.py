"""Shapes and strides: pure integer arithmetic on tuples, no memory touched. Strides are in bytes throughout."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from pygpukit.core.errors import ShapeError

if TYPE_CHECKING:
    from pygpukit.core.dtypes import DataType

Shape = tuple[int, ...]
Strided = tuple[Shape, Shape]  # an array's shape and strides


def contiguous_strides(shape: Shape, itemsize: int) -> Shape:
    """Strides of a dense array in C order."""
    strides: list[int] = []
    step = itemsize
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def broadcast_shapes(a: Shape, b: Shape, what: str) -> Shape:
    """The common shape of two operands under NumPy's rule. Raises ShapeError naming the operation and both shapes."""
    if a == b:
        return a
    ndim = max(len(a), len(b))
    pairs = zip((1,) * (ndim - len(a)) + a, (1,) * (ndim - len(b)) + b, strict=True)
    result = []
    for x, y in pairs:
        if x != y and 1 not in (x, y):
            raise ShapeError(
                f"{what}: shapes {a} and {b} do not broadcast ({x} against {y}); "
                "trailing dimensions must be equal or 1, reshape one operand"
            )
        result.append(y if x == 1 else x)
    return tuple(result)


def broadcast_strides(shape: Shape, strides: Shape, target: Shape) -> Shape:
    """Strides that read an array of `shape` as the `target` shape it broadcasts to (0 along repeated axes)."""
    missing = len(target) - len(shape)
    own = tuple(
        0 if extent == 1 and target_extent != 1 else step
        for extent, step, target_extent in zip(shape, strides, target[missing:], strict=True)
    )
    return (0,) * missing + own


def matrix_stacks(a: Strided, b: Strided, what: str) -> tuple[Strided, Strided, Shape]:
    """Operands of a matrix product, each by shape and strides, as stacks of matrices with common batch axes, and the
    shape of the result: numpy.matmul's rules, by which a vector is a row on the left and a column on the right. Raises
    ShapeError naming both shapes."""
    (a_shape, a_strides), (b_shape, b_strides) = a, b
    if not a_shape or not b_shape:
        raise ShapeError(
            f"{what}: shapes {a_shape} and {b_shape}: a 0-d operand has no matrix dimension; use * instead"
        )
    inner_a, inner_b = a_shape[-1], b_shape[-2] if len(b_shape) > 1 else b_shape[0]
    if inner_a != inner_b:
        raise ShapeError(
            f"{what}: shapes {a_shape} and {b_shape} do not fit: the inner dimensions are {inner_a} and {inner_b} and "
            "must be equal; transpose or reshape one operand"
        )
    batch = broadcast_shapes(a_shape[:-2], b_shape[:-2], f"{what} (batch dimensions)")
    result = batch + a_shape[-2:-1] + (b_shape[-1:] if len(b_shape) > 1 else ())
    if len(a_shape) == 1:
        a_shape, a_strides = (1, *a_shape), (0, *a_strides)
    if len(b_shape) == 1:
        b_shape, b_strides = (*b_shape, 1), (*b_strides, 0)
    left, right = batch + a_shape[-2:], batch + b_shape[-2:]
    return (
        (left, broadcast_strides(a_shape, a_strides, left)),
        (right, broadcast_strides(b_shape, b_strides, right)),
        result,
    )


def normalize_axis(axis: Any, ndim: int, what: str) -> int:
    """axis, any integer, counted from 0. Raises AxisError when it is out of range, TypeError for no integer."""
    index = integer(axis, f"{what}: axis")
    if not -ndim <= index < ndim:
        from pygpukit.array.axis_error import AxisError

        raise AxisError(f"{what}: axis {index} is out of range for an array with {ndim} dimensions", index, ndim)
    return index % ndim


def integer(value: Any, what: str) -> int:
    """A Python int of any integer: Python's, NumPy's, a 0-d integer array. Raises TypeError for anything else, bool
    among it."""
    if type(value) is int:
        return value
    if not isinstance(value, bool) and type(value).__name__ != "bool_":
        try:
            return operator.index(value)
        except TypeError:
            pass
    raise TypeError(f"{what} is {value!r}; it must be an integer")


def integers(value: Any, what: str) -> Shape:
    """The ints of one integer, or of a sequence of them. Raises TypeError for anything else."""
    if type(value) is int:
        return (value,)
    if isinstance(value, (tuple, list, range)) or getattr(value, "ndim", False):
        return tuple(integer(each, what) for each in (value.tolist() if hasattr(value, "tolist") else value))
    return (integer(value, what),)


def resolve_shape(shape: Sequence[int], size: int, what: str) -> Shape:
    """`shape` with at most one -1 replaced, checked to hold `size` elements. Raises ShapeError with both figures."""
    extents = [integer(extent, f"{what}: an extent") for extent in shape]
    if extents.count(-1) > 1 or any(extent < -1 for extent in extents):
        raise ShapeError(f"{what}: shape {tuple(extents)} may have one -1 and no other negative extent")
    if -1 in extents:
        known = prod(extent for extent in extents if extent != -1)
        if known == 0 or size % known:
            raise ShapeError(f"{what}: {size} elements do not fill shape {tuple(extents)}")
        extents[extents.index(-1)] = size // known
    if prod(extents) != size:
        raise ShapeError(f"{what}: shape {tuple(extents)} holds {prod(extents)} elements, the array has {size}")
    return tuple(extents)


def retyped(shape: Shape, strides: Shape, dtype: DataType, target: DataType) -> tuple[Shape, Shape]:
    """Shape and strides of the same bytes seen as elements of another type. Raises ShapeError."""
    old, new = dtype.itemsize, target.itemsize
    if old == new:
        return shape, strides
    refusal = f"view: {dtype} has {old} bytes, {target} has {new}"
    if not shape:
        raise ShapeError(f"{refusal}; a 0-d array has no axis to divide; use .astype()")
    if shape[-1] > 1 and strides[-1] != old:
        raise ShapeError(f"{refusal}; the last axis is not dense; use .contiguous() first, or .astype()")
    if shape[-1] * old % new:
        raise ShapeError(f"{refusal}; {shape[-1]} elements along the last axis are not a multiple; use .astype()")
    return (*shape[:-1], shape[-1] * old // new), (*strides[:-1], new)


def reshape_strides(shape: Shape, strides: Shape, target: Shape, itemsize: int) -> Shape | None:
    """Strides that make `target` a view of the same elements in the same order, or None when that needs a copy."""
    if prod(shape) == 0:
        return contiguous_strides(target, itemsize)
    old = [(extent, step) for extent, step in zip(shape, strides, strict=True) if extent != 1]
    result = [itemsize] * len(target)
    i = j = 0
    while i < len(old):
        # Grow a group of old axes and one of new axes until both hold as many elements.
        first, count = i, old[i][0]
        i += 1
        while j < len(target) and target[j] == 1:
            j += 1
        start, remaining = j, target[j]
        j += 1
        while count != remaining:
            if count < remaining:
                if old[i - 1][1] != old[i][0] * old[i][1]:
                    return None
                count *= old[i][0]
                i += 1
            else:
                remaining *= target[j]
                j += 1
        # A group of old axes that is dense inside splits into the new axes freely.
        if any(old[k][1] != old[k + 1][0] * old[k + 1][1] for k in range(first, i - 1)):
            return None
        step = old[i - 1][1]
        for k in range(j - 1, start - 1, -1):
            result[k] = step
            step *= target[k]
    return tuple(result)


def collapse(shape: Shape, strides: Sequence[Shape]) -> tuple[Shape, list[Shape]]:
    """The same walk over several operands with as few axes as possible: no extents of 1, dense neighbours merged."""
    extents: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    for axis, extent in enumerate(shape):
        if extent == 1:
            continue
        own = [operand[axis] for operand in strides]
        if extents and all(step[-1] == extent * mine for step, mine in zip(steps, own, strict=True)):
            extents[-1] *= extent
            for step, mine in zip(steps, own, strict=True):
                step[-1] = mine
        else:
            extents.append(extent)
            for step, mine in zip(steps, own, strict=True):
                step.append(mine)
    return tuple(extents), [tuple(step) for step in steps]


def byte_span(shape: Shape, strides: Shape, offset: int, itemsize: int) -> tuple[int, int]:
    """First byte and one past the last byte that a non-empty view touches, counted from its storage's start."""
    low = offset + sum(min(0, (extent - 1) * step) for extent, step in zip(shape, strides, strict=True))
    high = offset + sum(max(0, (extent - 1) * step) for extent, step in zip(shape, strides, strict=True)) + itemsize
    return low, high
