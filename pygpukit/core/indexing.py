"""Basic indexing: integers, slices, None and Ellipsis to the shape, strides and offset of a view. No memory touched."""

from __future__ import annotations

import operator
from typing import Any

from pygpukit.core.layout import Shape


def index_view(key: Any, shape: Shape, strides: Shape, offset: int) -> tuple[Shape, Shape, int]:
    """(shape, strides, offset) of array[key], in bytes.

    Raises IndexError for an index out of range or too many of them, and TypeError for advanced indexing (lists, arrays,
    masks), which views cannot express.
    """
    items = key if isinstance(key, tuple) else (key,)
    used = sum(1 for item in items if item is not None and item is not Ellipsis)
    dots = sum(1 for item in items if item is Ellipsis)
    if dots > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if used > len(shape):
        raise IndexError(f"too many indices: the array has {len(shape)} dimensions, {used} were indexed")
    new_shape: list[int] = []
    new_strides: list[int] = []
    axis = 0
    for item in items if dots else (*items, Ellipsis):
        if item is None:
            new_shape.append(1)
            new_strides.append(0)
        elif item is Ellipsis:
            rest = len(shape) - used
            new_shape.extend(shape[axis : axis + rest])
            new_strides.extend(strides[axis : axis + rest])
            axis += rest
        elif isinstance(item, slice):
            start, stop, step = item.indices(shape[axis])
            count = len(range(start, stop, step))
            offset += start * strides[axis] if count else 0
            new_shape.append(count)
            new_strides.append(step * strides[axis])
            axis += 1
        else:
            offset += _position(item, shape[axis], axis) * strides[axis]
            axis += 1
    return tuple(new_shape), tuple(new_strides), offset


def _position(item: Any, extent: int, axis: int) -> int:
    try:
        position = operator.index(item) if not isinstance(item, bool) else None
    except TypeError:
        position = None
    if position is None:
        raise TypeError(
            f"cannot index with {type(item).__name__}: integers, slices, None and '...' are supported; "
            "bring the array to the host with .to_numpy() for masks and index arrays"
        )
    if not -extent <= position < extent:
        raise IndexError(f"index {position} is out of range for axis {axis} with size {extent}")
    return position % extent
