"""Arrays with elements put in or taken out, and put together in more than one way, as NumPy's functions of these names.

Each writes a new array. Where positions are given they are counted on the host: a list or an integer copies nothing
back, an array of positions on the device is waited for and copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pygpukit.array import factory, layout
from pygpukit.core.errors import ShapeError, out_of_range
from pygpukit.ops import copying, elementwise, shape
from pygpukit.ops.operands import check_array, check_devices, check_operand, is_array
from pygpukit.ops.shape import building, joining

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray
    from pygpukit.ops.operands import Operand

    Positions = np.ndarray[Any, Any]

__all__ = [
    "append",
    "atleast_3d",
    "block",
    "column_stack",
    "delete",
    "diagflat",
    "dsplit",
    "hsplit",
    "insert",
    "resize",
    "vsplit",
]


def append(arr: GPUArray, values: Operand, axis: int | None = None) -> GPUArray:
    """values after arr along an axis, both flattened where it is None; types promote. Errors as concatenate()."""
    return joining.concatenate([check_array(arr, "append"), _array(values, "append")], axis)


def delete(arr: GPUArray, obj: Any, axis: int | None = None) -> GPUArray:
    """A copy without the slices at these positions of an axis; of the flattened array where it is None.

    obj: an integer, a slice, integers or a mask. Raises IndexError for a position out of range, AxisError, DTypeError.
    """
    import numpy as np

    arr, axis = _along(arr, axis, "delete")
    extent = arr.shape[axis]
    keep = np.ones(extent, bool)
    positions = _positions(obj, extent, axis)
    if positions.dtype == bool and positions.shape != (extent,):
        raise ShapeError(f"delete: a mask of shape {positions.shape} does not fit axis {axis} with {extent} positions")
    keep[positions] = False
    return arr.take(np.flatnonzero(keep), axis)


def insert(arr: GPUArray, obj: Any, values: Operand, axis: int | None = None) -> GPUArray:
    """A copy with values before these positions of an axis; of the flattened array where it is None.

    obj: an integer, a slice, integers or a mask; positions are those in arr. values: a number, or an array that
    broadcasts to what is put in, converted to arr's type. Errors as delete(), and ShapeError.
    """
    import numpy as np

    arr, axis = _along(arr, axis, "insert")
    extent = arr.shape[axis]
    places = _positions(obj, extent, axis, end=1)
    places = np.flatnonzero(places) if places.dtype == bool else places
    new = elementwise.as_type(_array(values, "insert"), arr.dtype)
    check_devices("insert", arr, new)
    if places.size == 1:  # as in NumPy: any number of slices at one position
        new = shape.reshape(new, (1,) * (arr.ndim - new.ndim) + new.shape)
        new = shape.moveaxis(new, 0, axis) if places.ndim == 0 else new
        places = np.repeat(places.reshape(-1), new.shape[axis])
    places = np.where(places < 0, places + extent, places).reshape(-1)
    room = (*arr.shape[:axis], places.size, *arr.shape[axis + 1 :])
    order = np.argsort(places, kind="stable")
    target = places[order] + np.arange(places.size)  # where each new slice goes
    source = np.zeros(extent + places.size, np.int64)
    is_old = np.ones(source.shape, bool)
    is_old[target] = False
    source[is_old] = np.arange(extent)
    source[target] = extent + order
    return joining.concatenate([arr, shape.broadcast_to(new, room)], axis).take(source, axis)


def resize(a: GPUArray, new_shape: int | Sequence[int]) -> GPUArray:
    """A new array of another shape: a's elements in C order, over and over. Zeros where a has none."""
    import numpy as np

    a = shape.ravel(check_array(a, "resize"))
    extents = layout.integers(new_shape, "resize: an extent")
    if any(extent < 0 for extent in extents):
        raise ShapeError(f"resize: shape {extents} has a negative extent")
    size = int(np.prod(extents, dtype=object))
    if not a.size or not size:
        return factory.zeros(extents, a.dtype)
    rows = shape.broadcast_to(a, (-(-size // a.size), a.size))
    return copying.contiguous(shape.reshape(shape.ravel(rows)[:size], extents))


def block(arrays: Any) -> GPUArray:
    """Arrays put together as nested lists say: the innermost along the last axis, those around along the one before.

    Errors as concatenate(), and ValueError for lists that are nested to different depths or empty.
    """
    depth = _depth(arrays)
    leaves: list[GPUArray] = []

    def gather(part: Any) -> None:
        if isinstance(part, list):
            for each in part:
                gather(each)
        else:
            leaves.append(_array(part, "block"))

    gather(arrays)
    ndim = max(depth, *(leaf.ndim for leaf in leaves))

    def joined(part: Any, level: int) -> GPUArray:
        if level == 0:
            array = _array(part, "block")
            return shape.reshape(array, (1,) * (ndim - array.ndim) + array.shape)
        return joining.concatenate([joined(each, level - 1) for each in part], axis=-level)

    return copying.clone(joined(arrays, 0)) if depth == 0 else joined(arrays, depth)


def column_stack(tup: Sequence[GPUArray]) -> GPUArray:
    """1-D arrays as the columns of a matrix, beside matrices that are given. Errors as concatenate()."""
    columns = [check_array(part, "column_stack") for part in tup]
    return joining.concatenate([shape.reshape(c, (-1, 1)) if c.ndim < 2 else c for c in columns], axis=1)


def atleast_3d(*arys: GPUArray) -> Any:
    """Views with three axes at least, as NumPy's: (1, n, 1) of one axis, (m, n, 1) of two. A tuple of several."""
    results = []
    for array in arys:
        extents = check_array(array, "atleast_3d").shape
        raised = {0: (1, 1, 1), 1: (1, *extents, 1), 2: (*extents, 1)}.get(array.ndim)
        results.append(array if raised is None else shape.reshape(array, raised))
    return results[0] if len(results) == 1 else tuple(results)


def diagflat(v: GPUArray, k: int = 0) -> GPUArray:
    """A matrix of zeros with the flattened elements on its k-th diagonal. Errors as diag()."""
    return building.diag(shape.ravel(check_array(v, "diagflat")), k)


def hsplit(ary: GPUArray, indices_or_sections: int | Sequence[int]) -> list[GPUArray]:
    """split() along the second axis, along the first of a 1-D array."""
    return joining.split(ary, indices_or_sections, 0 if _has_axes(ary, 1, "hsplit").ndim == 1 else 1)


def vsplit(ary: GPUArray, indices_or_sections: int | Sequence[int]) -> list[GPUArray]:
    """split() along the first axis of an array with two axes at least."""
    return joining.split(_has_axes(ary, 2, "vsplit"), indices_or_sections, 0)


def dsplit(ary: GPUArray, indices_or_sections: int | Sequence[int]) -> list[GPUArray]:
    """split() along the third axis."""
    return joining.split(_has_axes(ary, 3, "dsplit"), indices_or_sections, 2)


def _has_axes(array: GPUArray, count: int, what: str) -> GPUArray:
    if check_array(array, what).ndim < count:
        raise ShapeError(f"{what}: the array has shape {array.shape}; at least {count} axes are needed")
    return array


def _array(value: Any, what: str) -> GPUArray:
    value = check_operand(value, what)
    return value if is_array(value) else factory.asarray(value)


def _along(arr: Any, axis: int | None, what: str) -> tuple[GPUArray, int]:
    arr = check_array(arr, what)
    return (shape.ravel(arr), 0) if axis is None else (arr, layout.normalize_axis(axis, arr.ndim, what))


def _positions(obj: Any, extent: int, axis: int, end: int = 0) -> Positions:
    """On the host: integers from -extent to extent - 1, or to extent with end=1, or a mask. Raises IndexError."""
    import numpy as np

    if isinstance(obj, slice):
        return np.arange(extent)[obj]
    positions = obj.to_numpy() if is_array(obj) else np.asarray(obj)
    positions = positions.astype(np.int64) if not positions.size else positions
    if positions.dtype.kind not in "biu" or positions.ndim > 1:
        raise IndexError(f"positions are an integer, a slice, integers or a mask in one axis, not {obj!r}")
    if positions.dtype == bool:
        return positions
    positions = positions.astype(np.int64)
    for place in positions[(positions < -extent) | (positions >= extent + end)].reshape(-1)[:1].tolist():
        raise out_of_range(place, axis, extent)
    return positions


def _depth(arrays: Any) -> int:
    """The depth to which lists are nested, one everywhere."""
    if not isinstance(arrays, list):
        return 0
    depths = {_depth(each) for each in arrays}
    if len(depths) != 1:
        raise ValueError("block: the lists must be nested to one depth everywhere, and none may be empty")
    return 1 + depths.pop()
