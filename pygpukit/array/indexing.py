"""Index keys: what array[key] means, as integer arithmetic on shapes and strides. No memory touched.

index_view() answers basic keys (integers, slices, None, "..."): they are views. parse() splits any other key into a
view and the index arrays and masks that pick from it, with NumPy's rule for where their axes go.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pygpukit._core import native
from pygpukit.array.layout import Shape
from pygpukit.core.errors import out_of_range


@dataclass(frozen=True)
class Pick:
    """An index array or mask of a key, and the axes that it indexes: number of the first, extents, strides (bytes)."""

    index: Any  # NumPy array, GPUArray, or bool for a mask without axes
    is_mask: bool
    axis: int
    shape: Shape
    strides: Shape


@dataclass(frozen=True)
class Selection:
    """A key with index arrays: the view of the axes that they leave, in two groups, and what they pick."""

    before: tuple[Shape, Shape]  # extents and strides of the axes before those of the index arrays, in the result
    after: tuple[Shape, Shape]
    offset: int  # bytes
    picks: tuple[Pick, ...]


def index_view(key: Any, shape: Shape, strides: Shape, offset: int) -> tuple[Shape, Shape, int] | None:
    """(shape, strides, offset) of the view array[key], in bytes; None when the key has index arrays or masks.

    Raises IndexError for an index out of range, too many of them, or one of another kind.
    """
    items = key if isinstance(key, tuple) else (key,)
    used = dots = 0
    for item in items:
        if item is None:
            continue
        if item is Ellipsis:
            dots += 1
        elif _is_advanced(item):
            return None
        else:
            used += 1
    _check_count(used, dots, len(shape))
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
            start, count, step = _slice(item, shape[axis])
            offset += start * strides[axis]
            new_shape.append(count)
            new_strides.append(step * strides[axis])
            axis += 1
        else:
            offset += _position(item, shape[axis], axis) * strides[axis]
            axis += 1
    return tuple(new_shape), tuple(new_strides), offset


def parse(key: Any, shape: Shape, strides: Shape, offset: int, as_index: Callable[[Any], Any]) -> Selection:
    """A key with index arrays or masks, split. as_index makes a NumPy array of a list and checks index types.

    NumPy's rule: the axes of the broadcast index arrays stand where the first of them stood, or in front of all when a
    slice, None or "..." lies between two of them; integers beside index arrays are index arrays. Raises IndexError.
    """
    items = [as_index(item) if _is_advanced(item) else item for item in (key if isinstance(key, tuple) else (key,))]
    used = sum(_axes_of(item) for item in items)
    _check_count(used, sum(1 for item in items if item is Ellipsis), len(shape))
    if not any(item is Ellipsis for item in items):
        items.append(Ellipsis)
    rest: list[tuple[int, int]] = []
    picks: list[Pick] = []
    axis = 0
    place = None  # of the first index array among the other axes
    ended = apart = False
    for item in items:
        if item is None or item is Ellipsis or isinstance(item, slice):
            ended = place is not None
            if item is None:
                rest.append((1, 0))
            elif item is Ellipsis:
                count = len(shape) - used
                rest.extend(zip(shape[axis : axis + count], strides[axis : axis + count], strict=True))
                axis += count
            else:
                start, count, step = _slice(item, shape[axis])
                offset += start * strides[axis]
                rest.append((count, step * strides[axis]))
                axis += 1
            continue
        apart = apart or ended
        place = len(rest) if place is None else place
        count = _axes_of(item)
        here, steps = shape[axis : axis + count], strides[axis : axis + count]
        if not _is_advanced(item):
            offset += _position(item, shape[axis], axis) * strides[axis]
        else:
            is_mask = isinstance(item, bool) or _is_bool(item)
            if is_mask and count and not _fits(item.shape, here, axis):
                item, is_mask = _nothing(), False
            picks.append(Pick(item, is_mask, axis, here, steps))
        axis += count
    split = 0 if apart or place is None else place
    return Selection(_unzipped(rest[:split]), _unzipped(rest[split:]), offset, tuple(picks))


def _unzipped(axes: list[tuple[int, int]]) -> tuple[Shape, Shape]:
    return tuple(extent for extent, _ in axes), tuple(step for _, step in axes)


def _is_advanced(item: Any) -> bool:
    if item is Ellipsis or isinstance(item, (int, slice)):
        return isinstance(item, bool)
    if isinstance(item, (list, tuple, native.ArrayBase)):
        return True
    return type(item).__module__ == "numpy" and type(item).__name__ in ("ndarray", "bool", "bool_")


def _is_bool(item: Any) -> bool:
    return bool(item.dtype == "bool")


def _axes_of(item: Any) -> int:
    """The number of axes of the array that an item takes."""
    if item is None or item is Ellipsis or isinstance(item, bool):
        return 0
    return item.ndim if _is_advanced(item) and _is_bool(item) else 1


def _check_count(used: int, dots: int, ndim: int) -> None:
    if dots > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if used > ndim:
        raise IndexError(f"too many indices: the array has {ndim} dimensions, {used} were indexed")


def _fits(mask: Shape, shape: Shape, axis: int) -> bool:
    """True where a mask has the shape of its axes. As in NumPy an axis of 0 elements goes with any extent, and selects
    nothing. Raises IndexError."""
    for position, (own, extent) in enumerate(zip(mask, shape, strict=True)):
        if own not in (0, extent):
            raise IndexError(
                f"a mask of shape {mask} does not fit: its axis {position} has {own} elements, axis {axis + position} "
                f"of the array has {extent}"
            )
    return mask == shape


def _nothing() -> Any:
    import numpy as np

    return np.empty(0, np.int64)


def _slice(item: slice, extent: int) -> tuple[int, int, int]:
    """Start (0 when nothing is selected), count and step."""
    start, stop, step = item.indices(extent)
    count = len(range(start, stop, step))
    return (start if count else 0), count, (step if count > 1 else 1)  # a step that is not taken may be any number


def _position(item: Any, extent: int, axis: int) -> int:
    try:
        position = operator.index(item)
    except TypeError:
        raise IndexError(
            f"cannot index with {type(item).__name__}: use integers, slices, None, '...', or lists and arrays of "
            "integers or bools"
        ) from None
    if not -extent <= position < extent:
        raise out_of_range(position, axis, extent)
    return position % extent
