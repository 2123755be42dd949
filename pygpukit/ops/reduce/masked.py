"""The keywords initial= and where= of reductions, and moments of complex numbers: made of plain reductions."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

from pygpukit.array import factory, layout, promotion
from pygpukit.core.dtypes import bool_
from pygpukit.core.errors import DTypeError, ShapeError
from pygpukit.ops import copying, elementwise, shape
from pygpukit.ops.elementwise.math import sqrt
from pygpukit.ops.operands import check_array, check_out

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

Reduction = partial[Any]


def folded(name: str, reduction: Reduction, a: Any, where: Any, initial: Any, identity: Any, out: Any) -> GPUArray:
    """reduction(a) of the elements where `where` is true, begun with `initial`.

    identity: the number that changes nothing, None where there is none; then elements left out count as initial.
    Raises ShapeError where there is neither, DTypeError for a mask that is not bool.
    """
    a = check_array(a, name)
    if where is not None:
        if identity is None and initial is None:
            raise ShapeError(f"{name}: of elements left out by where= it needs initial=, which has no default")
        a = elementwise.where(mask_of(where, a, name), a, initial if identity is None else identity)
    result: Any = reduction(a) if initial is None or a.size or identity is not None else None
    if initial is not None:
        result = _with_initial(name, reduction, a, result, initial)
    return elementwise.deliver(result, None if out is None else check_out(out, result.shape, result.dtype, name))


def _with_initial(name: str, reduction: Reduction, a: GPUArray, result: GPUArray | None, initial: Any) -> GPUArray:
    if result is None:  # of no elements the initial number, in the shape that any reduction gives
        return factory.full(a.any(**reduction.keywords).shape, initial, a.dtype)
    join = {
        "sum": elementwise.add,
        "prod": elementwise.mul,
        "max": elementwise.maximum,
        "min": elementwise.minimum,
    }[name]
    return join(result, initial)


def mask_of(where: Any, a: GPUArray, name: str) -> GPUArray:
    """where= as a bool array that broadcasts to a."""
    mask = check_array(factory.asarray(where) if isinstance(where, (bool, list, tuple)) else where, f"{name}: where")
    if mask.dtype != bool_:
        raise DTypeError(f"{name}: where is {mask.dtype}; it must be bool")
    if layout.broadcast_shapes(mask.shape, a.shape, f"{name}: where") != a.shape:
        raise ShapeError(f"{name}: where has shape {mask.shape}, which does not broadcast to {a.shape}")
    return mask


def moment(name: str, a: GPUArray, axis: Any, dtype: Any, ddof: float, keepdims: bool, where: Any) -> GPUArray:
    """mean, var or std of the elements where `where` is true (None: of all), of real or complex numbers."""
    mask = None if where is None else shape.broadcast_to(mask_of(where, a, name), a.shape)
    own = promotion.true_divide(a.dtype) if dtype is None else dtype
    a = elementwise.as_type(a, own)
    count: Any
    if mask is None:
        axes = range(a.ndim) if axis is None else layout.integers(axis, f"{name}: axis")
        count = prod(a.shape[layout.normalize_axis(each, a.ndim, name)] for each in axes)
    else:
        count = mask.sum(axis, keepdims=True)
        a = elementwise.where(mask, a, 0)
    center = elementwise.div(a.sum(axis, keepdims=True), _as(count, a))
    if name == "mean":
        return center if keepdims else center.sum(axis)
    distance = elementwise.sub(a, center)
    if a.dtype in promotion.COMPLEX:
        squares = elementwise.add(elementwise.square(distance.real), elementwise.square(distance.imag))
    else:
        squares = elementwise.square(distance)
    if mask is not None:
        squares = elementwise.where(mask, squares, 0)
    total = squares.sum(axis, keepdims=True)
    free = elementwise.maximum(elementwise.sub(count, ddof), 0) if mask is not None else max(count - ddof, 0)
    result = elementwise.div(total, _as(free, total))
    if name == "std":
        result = sqrt(result)
    return result if keepdims else result.sum(axis)


def _as(count: Any, a: GPUArray) -> Any:
    if isinstance(count, (int, float)):
        return float(count)
    part = {"complex64": "float32", "complex128": "float64"}.get(a.dtype.name, a.dtype.name)
    return copying.astype(count, a.dtype.from_string(part))
