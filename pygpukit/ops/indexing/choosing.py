"""Elements chosen among several arrays, places of a shape as one number, and writing where a mask is true, as NumPy's.

unravel_index() and ravel_multi_index() wait for the extremes of the indices, since their errors depend on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import prod
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.array import layout, promotion
from pygpukit.core.dtypes import int64
from pygpukit.core.errors import DTypeError, ShapeError
from pygpukit.ops import elementwise, indexing, shape
from pygpukit.ops.operands import check_array, check_devices, check_operand, check_writable, is_array
from pygpukit.ops.reduce import max as largest
from pygpukit.ops.reduce import min as smallest
from pygpukit.ops.shape import editing, joining

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.operands import Operand

__all__ = [
    "choose",
    "copyto",
    "extract",
    "fill_diagonal",
    "putmask",
    "ravel_multi_index",
    "select",
    "unravel_index",
]


def select(condlist: Sequence[GPUArray], choicelist: Sequence[Operand], default: Operand = 0) -> GPUArray:
    """Elements of the first choice whose condition is true, else of default; all broadcast and promote.

    Raises ValueError for lists of different lengths or none, DTypeError for conditions that are not bool.
    """
    if len(condlist) != len(choicelist) or len(condlist) == 0:
        raise ValueError(f"select: {len(condlist)} conditions and {len(choicelist)} choices; give a choice for each")
    for condition in condlist:
        if check_array(condition, "select").dtype.name != "bool":
            raise DTypeError(f"select: a condition is {condition.dtype}; compare, or convert with .astype('bool')")
    result = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        result = elementwise.where(condition, choice, result)
    assert is_array(result)
    return result


def choose(a: GPUArray, choices: Sequence[GPUArray] | GPUArray, mode: str = "raise") -> GPUArray:
    """Of each place the element of the choice that a names: choices[a[i]][i]; all broadcast and promote.

    mode: "raise", or "wrap" and "clip" for numbers out of range. Errors as take_along_axis() and stack().
    """
    rows = [choices[position] for position in range(len(choices))] if is_array(choices) else list(choices)
    a = check_array(a, "choose")
    if not promotion.is_integer(a.dtype) and a.dtype.name != "bool":
        raise DTypeError(f"choose: the numbers of choices must be integers, not {a.dtype}")
    if mode == "clip":
        a = elementwise.clip(a, 0, len(rows) - 1)
    elif mode == "wrap":
        a = elementwise.remainder(elementwise.as_type(a, int64), len(rows))
    elif mode != "raise":
        raise ValueError(f"choose: mode {mode!r} is unknown; use 'raise', 'wrap' or 'clip'")
    index, *rows = shape.broadcast_arrays(elementwise.as_type(a, int64), *(check_array(row, "choose") for row in rows))
    return indexing.take_along_axis(joining.stack(rows), index[None], 0)[0]


def extract(condition: Any, arr: GPUArray) -> GPUArray:
    """The elements, 1-D, where a condition of the same size is true (not zero). Waits for their number."""
    flat = condition.reshape(-1) if hasattr(condition, "reshape") else condition
    return indexing.compress(flat, check_array(arr, "extract"))


def copyto(dst: GPUArray, src: Operand, casting: str = promotion.SAME_KIND, where: Any = True) -> None:
    """dst[...] = src where `where` is true, in place, converted under a rule of NumPy's. Errors as assignment."""
    promotion.check_casting(casting, "copyto")
    check_writable(check_array(dst, "copyto"), "copyto")
    src = check_operand(src, "copyto")
    if is_array(src) and not promotion.can_cast(src.dtype, dst.dtype, casting):
        raise DTypeError(f"copyto: {src.dtype} does not convert to {dst.dtype} with casting={casting!r}")
    if where is True:
        dst[...] = src
        return
    values = elementwise.as_type(src, dst.dtype) if is_array(src) else src
    dst[...] = elementwise.where(where, values, dst)


def putmask(a: GPUArray, mask: GPUArray, values: GPUArray) -> None:
    """a.flat[n] = values[n] where the mask of a's shape is true, in place; fewer values repeat. Errors as copyto()."""
    check_writable(check_array(a, "putmask"), "putmask")
    if check_array(mask, "putmask").size != a.size:
        raise ShapeError(f"putmask: a mask of shape {mask.shape} does not fit an array of shape {a.shape}")
    values = check_operand(values, "putmask")  # type: ignore[assignment]
    if is_array(values):
        if not values.size:
            return
        values = elementwise.as_type(editing.resize(values, a.shape), a.dtype)
    a[...] = elementwise.where(shape.reshape(mask, a.shape), values, a)


def fill_diagonal(a: GPUArray, val: Operand, wrap: bool = False) -> None:
    """Write a number, or the elements of an array in turn, to the main diagonal, in place.

    Of more than two axes, which must be equally long, the places of equal indices. wrap: of a tall matrix the diagonal
    goes on after each square. Raises ShapeError for one axis or different ones; errors as assignment.
    """
    import numpy as np

    check_writable(check_array(a, "fill_diagonal"), "fill_diagonal")
    if a.ndim < 2 or (a.ndim > 2 and len(set(a.shape)) > 1):
        raise ShapeError(f"fill_diagonal: shape {a.shape} has no diagonal; two axes, or several of one length, have")
    count = min(a.shape)
    values = check_operand(val, "fill_diagonal")
    if wrap and a.ndim == 2 and a.shape[0] > count:
        step = a.shape[1] + 1
        flat = np.arange(0, a.size, step)
        where = (flat // a.shape[1], flat % a.shape[1])
        if flat.size:
            a[where] = editing.resize(values, flat.size) if is_array(values) else values
        return
    line = native.view(a, (count,), (sum(a.strides),), a.offset)
    if count:
        line[...] = editing.resize(values, count) if is_array(values) else values


def unravel_index(indices: GPUArray, shape: int | Sequence[int], order: str = "C") -> tuple[GPUArray, ...]:
    """The index along each axis, int64, of places counted through a shape in C or F order.

    Raises ValueError for a place that the shape does not have, DTypeError unless they are integers.
    """
    check_array(indices, "unravel_index")
    extents = layout.integers(shape, "unravel_index: an extent")
    places = _integers(indices, "unravel_index")
    _check_range(places, prod(extents), f"unravel_index: shape {extents} has no place")
    index = []
    for extent in reversed(extents) if _is_c(order, "unravel_index") else extents:
        index.append(elementwise.remainder(places, extent))
        places = elementwise.floor_divide(places, extent)
    return tuple(reversed(index)) if order == "C" else tuple(index)


def ravel_multi_index(
    multi_index: Sequence[GPUArray] | GPUArray, dims: int | Sequence[int], mode: str = "raise", order: str = "C"
) -> GPUArray:
    """The places, int64, that indices along each axis have in a shape, counted in C or F order; they broadcast.

    mode: "raise", or "wrap" and "clip" for indices out of range. Raises ValueError for those and for another number of
    indices than axes, DTypeError unless they are integers.
    """
    for row in multi_index:
        check_array(row, "ravel_multi_index")
    extents = layout.integers(dims, "ravel_multi_index: an extent")
    if len(multi_index) != len(extents):
        raise ValueError(f"ravel_multi_index: {len(multi_index)} indices do not fit shape {extents}")
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"ravel_multi_index: mode {mode!r} is unknown; use 'raise', 'wrap' or 'clip'")
    rows = []
    for axis, extent in enumerate(extents):
        row = _integers(multi_index[axis], "ravel_multi_index")
        if mode == "raise":
            _check_range(row, extent, f"ravel_multi_index: axis {axis} of shape {extents} has no index")
        rows.append(elementwise.clip(row, 0, extent - 1) if mode == "clip" else elementwise.remainder(row, extent))
    check_devices("ravel_multi_index", *rows)
    is_c = _is_c(order, "ravel_multi_index")
    steps = [prod(extents[axis + 1 :] if is_c else extents[:axis]) for axis in range(len(extents))]
    return reduce(elementwise.add, (elementwise.mul(row, step) for row, step in zip(rows, steps, strict=True)))


def _is_c(order: str, what: str) -> bool:
    if order not in ("C", "F"):
        raise ValueError(f"{what}: order is {order!r}; it must be 'C' or 'F'")
    return order == "C"


def _integers(indices: Any, what: str) -> GPUArray:
    if not promotion.is_integer(check_array(indices, what).dtype):
        raise DTypeError(f"{what}: indices must be integers, not {indices.dtype}")
    return elementwise.as_type(indices, int64)


def _check_range(places: GPUArray, extent: int, what: str) -> None:
    """Waits for the extremes. Raises ValueError for one outside of 0 to extent - 1."""
    if places.size:
        for value in (smallest(places).item(), largest(places).item()):
            if not 0 <= value < extent:
                raise ValueError(f"{what} {value}")
