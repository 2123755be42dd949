"""Putting arrays together along an axis, and taking one apart, as NumPy's functions of these names.

Joining writes each array once into its part of the result; parts of an array are views. Errors: ShapeError naming the
function and the shapes, DTypeError, DeviceMismatchError.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.array import layout, promotion
from pygpukit.array.layout import normalize_axis
from pygpukit.core.dtypes import as_dtype
from pygpukit.core.errors import DTypeError, ShapeError
from pygpukit.ops import copying, shape
from pygpukit.ops.operands import check_array, check_devices, check_out, may_share_memory
from pygpukit.ops.prepared import prepared
from pygpukit.ops.shape import side_by_side

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DTypeLike

__all__ = ["array_split", "concat", "concatenate", "dstack", "hstack", "split", "stack", "unstack", "vstack"]


@prepared
def concatenate(
    arrays: Sequence[GPUArray],
    axis: int | None = 0,
    out: GPUArray | None = None,
    *,
    dtype: DTypeLike | None = None,
    casting: str = promotion.SAME_KIND,
) -> GPUArray:
    """Arrays one after the other along an axis; flattened first when axis is None.

    The other extents must be equal. Types promote as in arithmetic, or are converted to dtype under a rule of NumPy's.
    out: written and returned; not with dtype.
    """
    parts = _converted(_checked(arrays, "concatenate"), dtype, casting, out, "concatenate")
    if axis is None:
        parts, axis = [shape.ravel(part) for part in parts], 0
    first = parts[0]
    if any(part.ndim == 0 for part in parts):
        raise ShapeError("concatenate: 0-d arrays have no axis to join along; use stack()")
    axis = normalize_axis(axis, first.ndim, "concatenate")
    for position, part in enumerate(parts):
        if part.ndim != first.ndim or _without(part.shape, axis) != _without(first.shape, axis):
            raise ShapeError(
                f"concatenate: shapes {first.shape} and {part.shape} (array {position}) differ along another axis "
                f"than {axis}"
            )
    total = sum(part.shape[axis] for part in parts)
    extents = (*first.shape[:axis], total, *first.shape[axis + 1 :])
    common = reduce(lambda a, b: a if a == b else promotion.promote(a, b), (part.dtype for part in parts))
    target = native.empty(extents, common) if out is None else check_out(out, extents, common, "concatenate")
    if out is not None and any(may_share_memory(part, out) for part in parts):
        parts = [copying.clone(part) for part in parts]
    if side_by_side.write([part for part in parts if part.size], axis, target):
        return target
    start = 0
    for part in parts:
        piece = target[(slice(None),) * axis + (slice(start, start + part.shape[axis]),)]
        start += part.shape[axis]
        if part.size:
            copying.copy_to(part, piece)
    return target


concat = concatenate  # the array API standard's name


@prepared
def stack(
    arrays: Sequence[GPUArray],
    axis: int = 0,
    out: GPUArray | None = None,
    *,
    dtype: DTypeLike | None = None,
    casting: str = promotion.SAME_KIND,
) -> GPUArray:
    """Arrays of one shape along a new axis. out, dtype, casting: as of concatenate()."""
    parts = _checked(arrays, "stack")
    for position, part in enumerate(parts):
        if part.shape != parts[0].shape:
            raise ShapeError(f"stack: shapes {parts[0].shape} and {part.shape} (array {position}) are not equal")
    axis = normalize_axis(axis, parts[0].ndim + 1, "stack")
    return concatenate([shape.expand_dims(part, axis) for part in parts], axis, out, dtype=dtype, casting=casting)


@prepared
def vstack(
    arrays: Sequence[GPUArray], *, dtype: DTypeLike | None = None, casting: str = promotion.SAME_KIND
) -> GPUArray:
    """Arrays as rows one below the other: along the first axis, 1-D arrays as rows.

    dtype, casting: as of concatenate().
    """
    parts = [shape.atleast_2d(part) for part in _checked(arrays, "vstack")]
    return concatenate(parts, 0, dtype=dtype, casting=casting)


@prepared
def hstack(
    arrays: Sequence[GPUArray], *, dtype: DTypeLike | None = None, casting: str = promotion.SAME_KIND
) -> GPUArray:
    """Arrays side by side: along the second axis, 1-D arrays along their only one.

    dtype, casting: as of concatenate().
    """
    parts = [shape.atleast_1d(part) for part in _checked(arrays, "hstack")]
    return concatenate(parts, 0 if parts[0].ndim == 1 else 1, dtype=dtype, casting=casting)


@prepared
def dstack(arrays: Sequence[GPUArray]) -> GPUArray:
    """Arrays one behind the other: along the third axis, of which 1-D and 2-D arrays get one."""
    parts = [shape.atleast_2d(part) for part in _checked(arrays, "dstack")]
    return concatenate([shape.expand_dims(part, 2) if part.ndim == 2 else part for part in parts], 2)


def array_split(array: GPUArray, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[GPUArray]:
    """Views of consecutive parts along an axis: so many of nearly equal length, or cut before these positions."""
    return _split(array, indices_or_sections, axis, "array_split")


def split(array: GPUArray, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[GPUArray]:
    """array_split(), where a number of parts must divide the axis."""
    array = check_array(array, "split")
    axis = normalize_axis(axis, array.ndim, "split")
    sections: Any = indices_or_sections
    if not _is_sequence(sections):
        sections = layout.integer(sections, "split: the number of parts")
        if sections > 0 and array.shape[axis] % sections:
            raise ShapeError(
                f"split: axis {axis} of shape {array.shape} is not divided by {sections}; use array_split() for "
                "nearly equal parts"
            )
    return _split(array, sections, axis, "split")


def unstack(array: GPUArray, axis: int = 0) -> tuple[GPUArray, ...]:
    """Views of all positions of an axis, without it."""
    array = check_array(array, "unstack")
    axis = normalize_axis(axis, array.ndim, "unstack")
    return tuple(array[(slice(None),) * axis + (position,)] for position in range(array.shape[axis]))


def _split(array: GPUArray, cuts: int | Sequence[int], axis: int, what: str) -> list[GPUArray]:
    array = check_array(array, what)
    axis = normalize_axis(axis, array.ndim, what)
    if not _is_sequence(cuts):
        cuts = layout.integer(cuts, f"{what}: the number of parts")
        if cuts <= 0:
            raise ShapeError(f"{what}: the number of parts must be 1 or more, not {cuts}")
        length, longer = divmod(array.shape[axis], cuts)
        cuts = [part * length + min(part, longer) for part in range(1, cuts)]
    bounds: list[Any] = [0, *layout.integers(cuts, f"{what}: a position"), None]
    key = (slice(None),) * axis
    return [array[key + (slice(begin, end),)] for begin, end in pairwise(bounds)]


def _converted(parts: list[GPUArray], dtype: Any, casting: str, out: Any, what: str) -> list[GPUArray]:
    promotion.check_casting(casting, what)
    if dtype is None:
        return parts
    if out is not None:
        raise TypeError(f"{what}: out has a type of its own; give it or dtype, not both")
    target = as_dtype(dtype)
    for part in parts:
        if not promotion.can_cast(part.dtype, target, casting):
            raise DTypeError(f"{what}: {part.dtype} does not convert to {target} with casting={casting!r}")
    return [part if part.dtype == target else copying.astype(part, target) for part in parts]


def _is_sequence(cuts: Any) -> bool:
    return isinstance(cuts, (tuple, list, range)) or bool(getattr(cuts, "ndim", 0))


def _checked(arrays: Sequence[GPUArray], what: str) -> list[GPUArray]:
    parts = [check_array(part, what) for part in arrays]
    if not parts:
        raise ShapeError(f"{what}: there is no array to join")
    check_devices(what, *parts)
    return parts


def _without(extents: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return extents[:axis] + extents[axis + 1 :]
