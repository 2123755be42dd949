"""Other views of the same elements, as NumPy's functions of these names. Nothing is copied unless a name says so.

Views keep the array's memory alive and show each other's writes. Views that repeat elements (broadcast_to) cannot be
written. All raise ShapeError, naming the function and the shapes, and DTypeError for what is no GPUArray.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.array import layout
from pygpukit.array.layout import Shape, normalize_axis
from pygpukit.array.order import columns
from pygpukit.core.errors import ShapeError
from pygpukit.ops import copying
from pygpukit.ops.operands import check_array

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

    Axes = int | Sequence[int]

__all__ = [
    "atleast_1d", "atleast_2d", "broadcast_arrays", "broadcast_to", "diagonal", "expand_dims", "flatten", "flip",
    "fliplr", "flipud", "matrix_transpose", "moveaxis", "permute", "permute_dims", "ravel", "reshape", "rot90",
    "squeeze", "swapaxes", "transpose",
]  # fmt: skip


def reshape(array: GPUArray, shape: Axes, order: str = "C", *, copy: bool | None = None) -> GPUArray:
    """The same elements in another shape; one extent may be -1.

    order: "C" reads and places rows first, "F" columns first, "A" columns where the array has them so. copy: None
    copies only when the strides ask for it, True always, False never (ShapeError instead).
    """
    array = check_array(array, "reshape")
    if order != "C" and columns(order, array):
        extents = layout.integers(shape, "reshape: shape")[::-1]
        return transpose(reshape(transpose(array), extents, copy=copy))
    target = layout.resolve_shape(layout.integers(shape, "reshape: shape"), array.size, "reshape")
    strides = None if copy else layout.reshape_strides(array.shape, array.strides, target, array.itemsize)
    if strides is not None:
        return native.view(array, target, strides, array.offset)
    if copy is False:
        raise ShapeError(
            f"reshape: shape {array.shape} with strides {array.strides} cannot be viewed as {target} without a copy; "
            "leave out copy=False"
        )
    dense = copying.clone(array)
    return native.view(dense, target, layout.contiguous_strides(target, array.itemsize), dense.offset)


def ravel(array: GPUArray, order: str = "C") -> GPUArray:
    """All elements, 1-D, in this order; copied only when the strides ask for it."""
    return reshape(check_array(array, "ravel"), -1 if array.size else 0, order)


def flatten(array: GPUArray, order: str = "C") -> GPUArray:
    """All elements, 1-D, in this order, always a copy."""
    return reshape(check_array(array, "flatten"), -1 if array.size else 0, order, copy=True)


def transpose(array: GPUArray, axes: Sequence[int] | None = None) -> GPUArray:
    """The axes in another order, reversed when none is given. A view; .contiguous() moves the elements."""
    array = check_array(array, "transpose")
    order = tuple(reversed(range(array.ndim))) if axes is None else _axes(axes, array.ndim, "transpose")
    if len(order) != array.ndim:
        raise ShapeError(
            f"transpose: axes {tuple(order)} are not a permutation of the {array.ndim} axes of shape {array.shape}"
        )
    return _permuted(array, order)


def permute(array: GPUArray, axes: Sequence[int]) -> GPUArray:
    """transpose() with all axes given."""
    return transpose(array, tuple(axes))


permute_dims = permute  # the array API standard's name


def matrix_transpose(array: GPUArray) -> GPUArray:
    """The last two axes exchanged."""
    array = check_array(array, "matrix_transpose")
    if array.ndim < 2:
        raise ShapeError(f"matrix_transpose: shape {array.shape} has fewer than 2 axes")
    return swapaxes(array, -1, -2)


def swapaxes(array: GPUArray, axis1: int, axis2: int) -> GPUArray:
    """Two axes exchanged."""
    array = check_array(array, "swapaxes")
    order = list(range(array.ndim))
    first, second = (normalize_axis(axis, array.ndim, "swapaxes") for axis in (axis1, axis2))
    order[first], order[second] = second, first
    return _permuted(array, tuple(order))


def moveaxis(array: GPUArray, source: Axes, destination: Axes) -> GPUArray:
    """Axes moved to other positions; the others keep their order."""
    array = check_array(array, "moveaxis")
    sources, targets = (_axes(axes, array.ndim, "moveaxis") for axes in (source, destination))
    if len(sources) != len(targets):
        raise ShapeError(f"moveaxis: {len(sources)} axes to move, {len(targets)} places to move them to")
    order = [axis for axis in range(array.ndim) if axis not in sources]
    for target, axis in sorted(zip(targets, sources, strict=True)):
        order.insert(target, axis)
    return _permuted(array, tuple(order))


def squeeze(array: GPUArray, axis: Axes | None = None) -> GPUArray:
    """Without the axes of one element, or without those given, which must have one."""
    array = check_array(array, "squeeze")
    if axis is None:
        dropped = tuple(k for k, extent in enumerate(array.shape) if extent == 1)
    else:
        named = layout.integers(axis, "squeeze: axis")
        if not array.ndim and all(k in (0, -1) for k in named):
            named = ()  # as in NumPy, a 0-d array has one element along axis 0
        dropped = _axes(named, array.ndim, "squeeze")
    for k in dropped:
        if array.shape[k] != 1:
            raise ShapeError(f"squeeze: axis {k} of shape {array.shape} has {array.shape[k]} elements, not 1")
    kept = [k for k in range(array.ndim) if k not in dropped]
    return _permuted(array, tuple(kept))


def expand_dims(array: GPUArray, axis: Axes) -> GPUArray:
    """With new axes of one element at these positions of the result."""
    array = check_array(array, "expand_dims")
    ndim = array.ndim + len(layout.integers(axis, "expand_dims: axis"))
    new = _axes(axis, ndim, "expand_dims")
    extents, steps = iter(array.shape), iter(array.strides)
    shape = tuple(1 if k in new else next(extents) for k in range(ndim))
    strides = tuple(0 if k in new else next(steps) for k in range(ndim))
    return native.view(array, shape, strides, array.offset)


def atleast_1d(*arrays: GPUArray) -> Any:
    """The array with at least one axis; several arrays give a tuple."""
    return _raised_to(1, "atleast_1d", arrays)


def atleast_2d(*arrays: GPUArray) -> Any:
    """The array with at least two axes, new ones in front; several arrays give a tuple."""
    return _raised_to(2, "atleast_2d", arrays)


def flip(array: GPUArray, axis: Axes | None = None) -> GPUArray:
    """Axes backwards, all when none is given. A view."""
    array = check_array(array, "flip")
    axes = range(array.ndim) if axis is None else _axes(axis, array.ndim, "flip")
    strides, offset = list(array.strides), array.offset
    for k in axes:
        offset += max(array.shape[k] - 1, 0) * strides[k] if array.size else 0
        strides[k] = -strides[k]
    return native.view(array, array.shape, strides, offset)


def fliplr(array: GPUArray) -> GPUArray:
    """The second axis backwards."""
    if check_array(array, "fliplr").ndim < 2:
        raise ShapeError(f"fliplr: shape {array.shape} has fewer than 2 axes")
    return flip(array, 1)


def flipud(array: GPUArray) -> GPUArray:
    """The first axis backwards."""
    if check_array(array, "flipud").ndim < 1:
        raise ShapeError("flipud: a 0-d array has no axis")
    return flip(array, 0)


def rot90(array: GPUArray, k: int = 1, axes: Sequence[int] = (0, 1)) -> GPUArray:
    """Turned by k quarters in the plane of two axes, from the first towards the second. A view."""
    array = check_array(array, "rot90")
    plane = _axes(tuple(axes), array.ndim, "rot90")
    if len(plane) != 2:
        raise ShapeError(f"rot90: two axes make a plane, {tuple(axes)} do not")
    first, second = plane
    k = layout.integer(k, "rot90: k") % 4
    if k == 0:
        return _permuted(array, tuple(range(array.ndim)))
    if k == 2:
        return flip(array, plane)
    rotated = flip(array, second) if k == 1 else array
    rotated = swapaxes(rotated, first, second)
    return rotated if k == 1 else flip(rotated, second)


def broadcast_to(array: GPUArray, shape: Axes) -> GPUArray:
    """The array repeated to a shape without a copy: a view that cannot be written."""
    array = check_array(array, "broadcast_to")
    target = layout.integers(shape, "broadcast_to: shape")
    if array.ndim > len(target) or layout.broadcast_shapes(array.shape, target, "broadcast_to") != target:
        raise ShapeError(f"broadcast_to: shape {array.shape} does not broadcast to {target}")
    return native.view(array, target, layout.broadcast_strides(array.shape, array.strides, target), array.offset)


def broadcast_arrays(*arrays: GPUArray) -> tuple[GPUArray, ...]:
    """All arrays broadcast against each other, as broadcast_to() does."""
    shape: Shape = ()
    for array in arrays:
        shape = layout.broadcast_shapes(shape, check_array(array, "broadcast_arrays").shape, "broadcast_arrays")
    return tuple(broadcast_to(array, shape) for array in arrays)


def diagonal(array: GPUArray, offset: int = 0, axis1: int = 0, axis2: int = 1) -> GPUArray:
    """The diagonal of two axes, `offset` above the main one, as the last axis of the result. A view."""
    array = check_array(array, "diagonal")
    if array.ndim < 2:
        raise ShapeError(f"diagonal: shape {array.shape} has fewer than 2 axes")
    first, second = _axes((axis1, axis2), array.ndim, "diagonal")
    rows, columns = array.shape[first], array.shape[second]
    count = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    start = array.offset
    if count and array.size:
        start += max(-offset, 0) * array.strides[first] + max(offset, 0) * array.strides[second]
    others = [k for k in range(array.ndim) if k not in (first, second)]
    shape = (*(array.shape[k] for k in others), count)
    strides = (*(array.strides[k] for k in others), array.strides[first] + array.strides[second])
    return native.view(array, shape, strides, start)


def _axes(axes: Axes, ndim: int, what: str) -> tuple[int, ...]:
    """Axes counted from 0. Raises ShapeError for one out of range or given twice."""
    normalized = tuple(normalize_axis(axis, ndim, what) for axis in layout.integers(axes, f"{what}: axis"))
    if len(set(normalized)) != len(normalized):
        raise ShapeError(f"{what}: axes {normalized} are not all different")
    return normalized


def _permuted(array: GPUArray, order: tuple[int, ...]) -> GPUArray:
    return native.view(array, [array.shape[k] for k in order], [array.strides[k] for k in order], array.offset)


def _raised_to(ndim: int, what: str, arrays: tuple[GPUArray, ...]) -> Any:
    results = tuple(
        array if check_array(array, what).ndim >= ndim else expand_dims(array, tuple(range(ndim - array.ndim)))
        for array in arrays
    )
    return results[0] if len(results) == 1 else results
