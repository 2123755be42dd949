"""Advanced indexing: lists, index arrays and masks in array[key], take, put and their kin, with NumPy's rules.

Indices of the host (lists, NumPy arrays) are checked before anything is launched. Index arrays on the device are
checked there: IndexError is raised at once on the simulated device, and by the next to_numpy(), item() or synchronize()
on a CUDA one (core/deferred.py), where elements out of range are zero until then and writes out of range do nothing.
Reading by a mask on the device waits once, for the number of its elements; writing one number by a mask waits for
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd, prod
from typing import TYPE_CHECKING, Any

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.array import layout
from pygpukit.array.indexing import Pick, Selection, parse
from pygpukit.array.promotion import is_integer
from pygpukit.core.dtypes import DTYPES, int32, int64
from pygpukit.core.errors import DTypeError, ShapeError, out_of_range
from pygpukit.ops import copying, host, raw
from pygpukit.ops.elementwise import pointwise
from pygpukit.ops.indexing import masks, places
from pygpukit.ops.indexing.places import MODES, Places, Target
from pygpukit.ops.operands import (
    check_array,
    check_devices,
    check_operand,
    check_out,
    check_writable,
    is_array,
    may_share_memory,
    span,
)
from pygpukit.ops.prepared import prepared

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["compress", "put", "put_along_axis", "take", "take_along_axis"]

_BLOCK = 256


@prepared
def get(array: GPUArray, key: Any) -> GPUArray:
    """array[key] for a key with index arrays or masks: a new array. Raises IndexError, DeviceMismatchError."""
    selection = _parse(array, key)
    pick = selection.picks[0]
    if pick.is_mask and is_array(pick.index) and pick.shape == array.shape and selection.before == selection.after:
        return masks.compacted(pick.index, array)
    selected = _places(array, selection)
    out = native.empty(selected.shape, array.dtype)
    places.gather(selected, out)
    return out


@prepared
def put_at(array: GPUArray, key: Any, value: Any) -> None:
    """array[key] = value for a key with index arrays or masks. The last of several values for one element stays.

    Raises IndexError, ShapeError (the value does not broadcast), DTypeError, DeviceMismatchError.
    """
    check_writable(array, "setting elements")
    selection = _parse(array, key)
    value = check_operand(value, "setting elements")
    if not is_array(value):
        value = pointwise.scalar_array(value, array.dtype)
    check_devices("setting elements", value)
    pick = selection.picks[0]
    if len(selection.picks) == 1 and pick.is_mask and is_array(pick.index) and value.size == 1 and value.ndim < 2:
        _store_where(array, selection, _converted(value, array))
        return
    _write(_places(array, selection), value, "setting elements")


@prepared
def take(
    array: GPUArray, indices: Any, axis: int | None = None, out: GPUArray | None = None, mode: str = "raise"
) -> GPUArray:
    """The elements (rows) at `indices` along an axis; of the flattened array when axis is None.

    indices: an integer, a list, a NumPy array or a GPUArray of integers; their axes replace the axis. mode: "raise", or
    "wrap" and "clip" for indices out of range. out: written and returned. Errors as indexing, and ShapeError.
    """
    array = check_array(array, "take")
    check_devices("take", array)
    flat = axis is None
    if axis is not None and not array.ndim:
        array = native.view(array, (1,), (array.itemsize,), array.offset)  # as in NumPy: one element along axis 0
    axis = 0 if axis is None else layout.normalize_axis(axis, array.ndim, "take")
    index = as_index(indices)
    if not is_integer(index.dtype if is_array(index) else native_dtype(index)):
        raise DTypeError("take: indices must be integers; use compress() or array[mask] for a mask")
    before = ((), ()) if flat else (array.shape[:axis], array.strides[:axis])
    after = ((), ()) if flat else (array.shape[axis + 1 :], array.strides[axis + 1 :])
    own = (array.shape, array.strides) if flat else (array.shape[axis : axis + 1], array.strides[axis : axis + 1])
    pick = Pick(index, False, axis, *own)
    selected = _places(array, Selection(before, after, array.offset, (pick,)), _mode(mode, "take"))
    return _gathered(selected, out, "take")


@prepared
def put(array: GPUArray, indices: Any, values: Any, mode: str = "raise") -> None:
    """array.flat[indices] = values, in place; fewer values than indices repeat. indices, mode, errors as take()."""
    array = check_array(array, "put")
    check_writable(array, "put")
    pick = Pick(as_index(indices), False, 0, array.shape, array.strides)
    selected = _places(array, Selection(((), ()), ((), ()), array.offset, (pick,)), _mode(mode, "put"))
    value = check_operand(values, "put") if not isinstance(values, (list, tuple)) else _uploaded(values)
    if not is_array(value):
        value = pointwise.scalar_array(value, array.dtype)
    count = prod(selected.shape)
    if not count:
        return
    if not value.size:
        return  # as in NumPy: nothing to put
    if value.size > 1:
        value = value.reshape(-1)
        if value.size < count:
            whole = native.empty((-(-count // value.size), value.size), value.dtype)
            copying.copy_to(value, whole)
            value = whole.reshape(-1)
        value = value[:count].reshape(selected.shape)
    _write(selected, value, "put")


@prepared
def take_along_axis(array: GPUArray, indices: GPUArray, axis: int | None = -1) -> GPUArray:
    """array[..., indices[..., i, ...], ...] along an axis: one index for each element of the result.

    indices: integers with the array's number of axes; the other axes broadcast. axis None: of the flattened array,
    with 1-D indices. Errors as take().
    """
    return _gathered(_along(array, indices, axis, "take_along_axis"), None, "take_along_axis")


@prepared
def put_along_axis(array: GPUArray, indices: GPUArray, values: Any, axis: int | None = -1) -> None:
    """array[..., indices[..., i, ...], ...] = values along an axis, in place. Arguments as take_along_axis()."""
    selected = _along(array, indices, axis, "put_along_axis")
    check_writable(array, "put_along_axis")
    value = check_operand(values, "put_along_axis")
    if not is_array(value):
        value = pointwise.scalar_array(value, array.dtype)
    _write(selected, value, "put_along_axis")


def compress(condition: Any, array: GPUArray, axis: int | None = None) -> GPUArray:
    """The elements (slices along the axis) where a 1-D condition holds; it may be shorter than the axis.

    condition: a list, a NumPy array or a GPUArray of bools. Of the flattened array when axis is None. Errors as take().
    """
    array = check_array(array, "compress")
    mask = as_index(condition)
    if mask.ndim == 1 and mask.dtype != "bool":
        mask = mask != 0
    if mask.ndim != 1 or mask.dtype != "bool":
        raise DTypeError(f"compress: the condition must be a 1-D mask, not {mask.dtype} of shape {mask.shape}")
    if axis is None:
        array, axis = array.reshape(-1), 0
    axis = layout.normalize_axis(axis, array.ndim, "compress")
    if mask.shape[0] > array.shape[axis]:
        raise out_of_range(mask.shape[0] - 1, axis, array.shape[axis])
    lead = (slice(None),) * axis
    part = array[lead + (slice(mask.shape[0]),)]
    return part[lead + (mask,)]


def as_index(item: Any) -> Any:
    """A list or array of a key as what it indexes with: a GPUArray, a NumPy array, or a bool. Raises IndexError."""
    if is_array(item):
        if item.dtype == "bool":
            return item if item.ndim else bool(item)
        if not is_integer(item.dtype):
            raise IndexError(f"index arrays must be integers or bools, not {item.dtype}; convert with .astype('int64')")
        return item
    import numpy as np

    try:
        values = np.asarray(item)
    except ValueError as error:
        raise IndexError(f"a list used as an index must be regular: {error}") from None
    if not values.size and not isinstance(item, np.ndarray):
        values = values.astype(np.int64)
    if values.dtype == bool:
        return values if values.ndim else bool(values)
    if values.dtype.kind not in "iu":
        raise IndexError(f"index arrays must be integers or bools, not {values.dtype}")
    return values


def native_dtype(index: Any) -> Any:
    """The package's type of a NumPy index array."""
    return next(dtype for dtype in DTYPES if dtype.name == index.dtype.name)


@places.SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of the kernels, beside those of places and masks, that the functions above can ask for."""
    yield tuple(f"pk::store_where<{item}>" for item in raw.RAW.values())


# ---- from keys to places ----


def _parse(array: GPUArray, key: Any) -> Selection:
    selection = parse(key, array.shape, array.strides, array.offset, as_index)
    check_devices("indexing", array, *(pick.index for pick in selection.picks if is_array(pick.index)))
    return selection


def _places(array: GPUArray, selection: Selection, mode: int = MODES["raise"]) -> Places:
    """Where a selection's elements lie. Checks indices of the host; turns masks into indices, which may wait."""
    index, target = _combined(selection.picks, mode)
    (before, before_steps), (after, after_steps) = selection.before, selection.after
    shape = before + index.shape + after
    strides = before_steps + (0,) * index.ndim + after_steps
    # As many axes as the result.
    own = (1,) * len(before) + index.shape + (1,) * len(after)
    steps = (0,) * len(before) + index.strides + (0,) * len(after)
    return Places(array, selection.offset, shape, strides, native.view(index, own, steps, index.offset), target)


def _combined(picks: tuple[Pick, ...], mode: int) -> tuple[GPUArray, Target]:
    """One index array for all picks, broadcast against each other, and what it means."""
    import numpy as np

    indices: list[tuple[Any, Target]] = []
    for pick in picks:
        index, target = pick.index, Target.of(pick.shape, pick.strides, pick.axis, mode)
        if isinstance(index, bool):
            index, target = np.zeros(int(index), np.int64), Target()
        elif pick.is_mask:
            index = masks.flatnonzero(index) if is_array(index) else np.flatnonzero(index)
        indices.append((index, target))
    try:
        shape = np.broadcast_shapes(*(index.shape for index, _ in indices))
    except ValueError:
        shapes = ", ".join(str(index.shape) for index, _ in indices)
        raise IndexError(f"index arrays of shapes {shapes} do not broadcast together") from None
    if 0 in shape:  # nothing is picked; checked are, as in NumPy, the 0-d indices
        for index, target in indices:
            if index.ndim == 0:
                _check_one(index, target)
        return native.empty(shape, int64), Target()
    grain = gcd(*(target.grain for _, target in indices))
    parts: list[tuple[GPUArray, Target]] = []
    total = None  # offsets by the index arrays of the host
    for index, target in indices:
        if target.mode != places.OFFSETS and not target.size:
            raise out_of_range(0 if is_array(index) else int(index.flat[0]), target.axis, 0)
        if is_array(index):
            parts.append((index if index.dtype in (int32, int64) else copying.astype(index, int64), target))
            continue
        values = index.astype(np.int64)
        share = values if target.mode == places.OFFSETS else places.offsets_of(values, target)
        total = share if total is None else total + share
    if total is not None:
        parts.append((places.upload(total), Target(grain=grain)))
    if len(parts) == 1:
        return parts[0]
    padded = [(_with_ndim(index, len(shape)), target) for index, target in parts]
    return places.resolved(shape, (0,) * len(shape), padded), Target(grain=grain)


def _check_one(index: Any, target: Target) -> None:
    if is_array(index) and target.size:
        places.resolved((), (), [(copying.astype(index, int64), target)])
    elif is_array(index):
        raise out_of_range(0, target.axis, 0)
    else:
        places.offsets_of(index.astype("int64"), target)


def _with_ndim(array: GPUArray, ndim: int) -> GPUArray:
    """A view with axes of one element in front."""
    missing = ndim - array.ndim
    return native.view(array, (1,) * missing + array.shape, (0,) * missing + array.strides, array.offset)


def _along(array: GPUArray, indices: Any, axis: int | None, what: str) -> Places:
    array, indices = check_array(array, what), check_array(indices, f"{what}: indices")
    check_devices(what, array, indices)
    if not is_integer(indices.dtype):
        raise IndexError(f"{what}: indices must be integers, not {indices.dtype}")
    shape: layout.Shape
    strides: layout.Shape
    if axis is None:
        if indices.ndim != 1:
            raise ShapeError(f"{what}: without an axis indices must be 1-D, they have shape {indices.shape}")
        target = Target.of(array.shape, array.strides, 0)
        shape, strides = indices.shape, (0,)
    else:
        axis = layout.normalize_axis(axis, array.ndim, what)
        if indices.ndim != array.ndim:
            raise ShapeError(f"{what}: indices of shape {indices.shape} need the {array.ndim} axes of {array.shape}")
        others = (*array.shape[:axis], 1, *array.shape[axis + 1 :])
        shape = layout.broadcast_shapes(others, indices.shape, what)
        strides = layout.broadcast_strides(others, (*array.strides[:axis], 0, *array.strides[axis + 1 :]), shape)
        target = Target.of(array.shape[axis : axis + 1], array.strides[axis : axis + 1], axis)
    if not target.size and 0 not in shape:
        raise out_of_range(0, axis or 0, 0)
    index = indices if indices.dtype in (int32, int64) else copying.astype(indices, int64)
    return Places(array, array.offset, shape, strides, index, target)


def _mode(mode: str, what: str) -> int:
    if mode not in MODES:
        raise ValueError(f"{what}: mode {mode!r} is unknown; use one of {', '.join(map(repr, MODES))}")
    return MODES[mode]


# ---- reading and writing ----


def _gathered(selected: Places, out: GPUArray | None, what: str) -> GPUArray:
    dtype = selected.array.dtype
    if out is not None:
        check_out(out, selected.shape, dtype, what)
    direct = out is not None and out.dtype is dtype and out.is_contiguous() and not _touch(out, selected)
    target = out if out is not None and direct else native.empty(selected.shape, dtype)
    places.gather(selected, target)
    if out is not None and not direct:
        copying.copy_to(target, out)
        return out
    return target


def _write(selected: Places, value: GPUArray, what: str) -> None:
    array = selected.array
    value = copying.without_leading_ones(value, len(selected.shape))
    if layout.broadcast_shapes(value.shape, selected.shape, what) != selected.shape:
        raise ShapeError(f"{what}: values of shape {value.shape} do not broadcast to the selected {selected.shape}")
    value = _converted(value, array)
    if may_share_memory(value, array):
        value = copying.clone(value)
    if may_share_memory(selected.index, array):
        index = copying.clone(selected.index)
        selected = Places(array, selected.offset, selected.shape, selected.strides, index, selected.target)
    places.scatter(selected, value)


def _store_where(array: GPUArray, selection: Selection, value: GPUArray) -> None:
    """array[mask] = number, without counting."""
    pick = selection.picks[0]
    (before, before_steps), (after, after_steps) = selection.before, selection.after
    shape = before + pick.shape + after
    view = native.view(array, shape, before_steps + pick.strides + after_steps, selection.offset)
    lead, trail = len(before), len(after)
    steps = (0,) * lead + pick.index.strides + (0,) * trail
    mask = native.view(pick.index, (1,) * lead + pick.shape + (1,) * trail, steps, pick.index.offset)
    if not view.size:
        return
    if may_share_memory(mask, array):
        mask = copying.clone(mask)
    if may_share_memory(value, array):
        value = copying.clone(value)
    if host.computes():

        def compute() -> None:
            import numpy as np

            target = host.memory(view)
            np.copyto(target, host.memory(value).reshape(()), where=host.memory(mask))

        native.host_launch("store_where", compute, [mask, value, view])
        return
    own = layout.broadcast_strides(mask.shape, mask.strides, shape)
    (dense_mask, mask_start), (dense, start) = span(mask), span(view)
    packed = places.layout_fields(
        shape, (mask_start, start), (own, tuple(step // view.itemsize for step in view.strides))
    )
    blocks = -(-view.size // _BLOCK)
    expression = f"pk::store_where<{raw.RAW[view.itemsize]}>"
    kernels.launch(places.SOURCE.of(expression), (blocks, 1, 1), (_BLOCK, 1, 1), dense_mask, value, dense, packed)


def _converted(value: GPUArray, array: GPUArray) -> GPUArray:
    return value if value.dtype is array.dtype else copying.astype(value, array.dtype)


def _uploaded(values: Any) -> GPUArray:
    from pygpukit.array.factory import asarray

    return asarray(values)


def _touch(out: GPUArray, selected: Places) -> bool:
    return may_share_memory(out, selected.array) or may_share_memory(out, selected.index)
