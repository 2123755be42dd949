"""Reductions and scans that leave out NaN: nansum, nanmean, nanmin and their kin, as NumPy's functions.

Arguments, types, errors and order of additions are those of sum(), mean() and the others, which compute the result of
integers themselves. Of rows of NaN only: 0 (sum), 1 (prod), NaN (the others); nanargmin and nanargmax read one truth
value, which waits, and raise ValueError for such a row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pygpukit.array import promotion
from pygpukit.core.dtypes import as_dtype, bfloat16, float16, float32
from pygpukit.core.errors import DTypeError
from pygpukit.ops import elementwise, reduce, scan
from pygpukit.ops.elementwise import logic, math
from pygpukit.ops.operands import check_array, check_devices, check_out

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DTypeLike
    from pygpukit.ops.reduce import Axis

__all__ = [
    "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin", "nanprod", "nanstd", "nansum",
    "nanvar",
]  # fmt: skip


def nansum(
    a: GPUArray, axis: Axis = None, dtype: DTypeLike | None = None, out: GPUArray | None = None, keepdims: bool = False
) -> GPUArray:
    """sum() with 0 in place of NaN."""
    return reduce.sum(_replaced(a, 0, "nansum"), axis, dtype, out, keepdims)


def nanprod(
    a: GPUArray, axis: Axis = None, dtype: DTypeLike | None = None, out: GPUArray | None = None, keepdims: bool = False
) -> GPUArray:
    """prod() with 1 in place of NaN."""
    return reduce.prod(_replaced(a, 1, "nanprod"), axis, dtype, out, keepdims)


def nancumsum(
    a: GPUArray, axis: int | None = None, dtype: DTypeLike | None = None, out: GPUArray | None = None
) -> GPUArray:
    """cumsum() with 0 in place of NaN."""
    return scan.cumsum(_replaced(a, 0, "nancumsum"), axis, dtype, out=out)


def nancumprod(
    a: GPUArray, axis: int | None = None, dtype: DTypeLike | None = None, out: GPUArray | None = None
) -> GPUArray:
    """cumprod() with 1 in place of NaN."""
    return scan.cumprod(_replaced(a, 1, "nancumprod"), axis, dtype, out=out)


def nanmax(a: GPUArray, axis: Axis = None, out: GPUArray | None = None, keepdims: bool = False) -> GPUArray:
    """max() of the elements that are not NaN."""
    return _extreme(reduce.max, a, axis, out, keepdims, float("-inf"), "nanmax")


def nanmin(a: GPUArray, axis: Axis = None, out: GPUArray | None = None, keepdims: bool = False) -> GPUArray:
    """min() of the elements that are not NaN."""
    return _extreme(reduce.min, a, axis, out, keepdims, float("inf"), "nanmin")


def nanargmax(a: GPUArray, axis: int | None = None, out: GPUArray | None = None, keepdims: bool = False) -> GPUArray:
    """argmax() of the elements that are not NaN. Raises ValueError for a row of NaN; waits."""
    return _place(reduce.argmax, a, axis, out, keepdims, float("-inf"), "nanargmax")


def nanargmin(a: GPUArray, axis: int | None = None, out: GPUArray | None = None, keepdims: bool = False) -> GPUArray:
    """argmin() of the elements that are not NaN. Raises ValueError for a row of NaN; waits."""
    return _place(reduce.argmin, a, axis, out, keepdims, float("inf"), "nanargmin")


def nanmean(
    a: GPUArray, axis: Axis = None, dtype: DTypeLike | None = None, out: GPUArray | None = None, keepdims: bool = False
) -> GPUArray:
    """mean() of the elements that are not NaN."""
    a = _checked(a, "nanmean")
    if not promotion.is_inexact(a.dtype):
        return reduce.mean(a, axis, dtype, out, keepdims)
    result_dtype = _float("nanmean", a, dtype)
    means = elementwise.as_type(_mean(a, axis, result_dtype, keepdims)[0], result_dtype)
    return elementwise.deliver(means, _target(out, means, "nanmean"))


def nanvar(
    a: GPUArray,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: GPUArray | None = None,
    ddof: float = 0,
    keepdims: bool = False,
) -> GPUArray:
    """var() of the elements that are not NaN, from their distances to the mean; NaN where they are ddof or fewer."""
    return _moment(a, axis, dtype, out, ddof, keepdims, "nanvar")


def nanstd(
    a: GPUArray,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: GPUArray | None = None,
    ddof: float = 0,
    keepdims: bool = False,
) -> GPUArray:
    """The square root of nanvar()."""
    return _moment(a, axis, dtype, out, ddof, keepdims, "nanstd")


# ---- common parts ----


def _checked(a: Any, what: str) -> GPUArray:
    a = check_array(a, what)
    check_devices(what, a)
    return a


def _replaced(a: Any, number: float, what: str) -> GPUArray:
    """a with a number in place of NaN; the array itself where its type has none."""
    a = _checked(a, what)
    return elementwise.where(logic.isnan(a), number, a) if promotion.is_inexact(a.dtype) else a


def _float(what: str, a: GPUArray, dtype: DTypeLike | None) -> Any:
    result_dtype = a.dtype if dtype is None else as_dtype(dtype)
    if not promotion.is_inexact(result_dtype):
        raise DTypeError(f"{what}: dtype={result_dtype.name!r} cannot hold the result; use a float or complex type")
    return result_dtype


def _target(out: GPUArray | None, result: GPUArray, what: str) -> GPUArray | None:
    return None if out is None else check_out(out, result.shape, result.dtype, what)


def _mean(a: GPUArray, axis: Axis, dtype: Any, keepdims: bool) -> tuple[GPUArray, GPUArray]:
    """The mean and the number of elements that are not NaN, in float32 for narrower types."""
    wide = float32 if dtype in (float16, bfloat16) else dtype
    total = reduce.sum(_replaced(a, 0, "nanmean"), axis, wide, keepdims=keepdims)
    count = reduce.count_nonzero(logic.equal(a, a), axis, keepdims=keepdims)
    return elementwise.div(total, elementwise.as_type(count, wide)), count


def _moment(
    a: Any, axis: Axis, dtype: DTypeLike | None, out: GPUArray | None, ddof: float, keepdims: bool, what: str
) -> GPUArray:
    a = _checked(a, what)
    if not promotion.is_inexact(a.dtype):
        return (reduce.var if what == "nanvar" else reduce.std)(a, axis, dtype, out, ddof, keepdims)
    result_dtype = _float(what, a, dtype)
    if a.dtype in promotion.COMPLEX or result_dtype in promotion.COMPLEX:
        raise DTypeError(f"{what}: not defined for complex numbers; apply it to their parts or magnitudes")
    mean, count = _mean(a, axis, result_dtype, True)
    distance = elementwise.sub(elementwise.as_type(a, mean.dtype), mean)
    squares = elementwise.square(_replaced(distance, 0, what))
    # Infinite elements have no distance from their mean: NaN is right there, and zero in the place of NaN is not.
    squares = elementwise.where(logic.logical_and(logic.isnan(distance), logic.equal(a, a)), float("nan"), squares)
    total = reduce.sum(squares, axis, keepdims=keepdims)
    free = elementwise.sub(elementwise.as_type(count.reshape(total.shape), total.dtype), float(ddof))
    moment = elementwise.where(logic.greater(free, 0), elementwise.div(total, free), float("nan"))
    moment = elementwise.as_type(math.sqrt(moment) if what == "nanstd" else moment, result_dtype)
    return elementwise.deliver(moment, _target(out, moment, what))


def _extreme(
    function: Callable[..., GPUArray],
    a: Any,
    axis: Axis,
    out: GPUArray | None,
    keepdims: bool,
    worst: float,
    what: str,
) -> GPUArray:
    a = _checked(a, what)
    if a.dtype not in promotion.FLOATS or not a.size:
        return function(a, axis, out, keepdims)
    extreme = function(_replaced(a, worst, what), axis, keepdims=keepdims)
    target = _target(out, extreme, what)
    is_any = reduce.any(logic.equal(a, a), axis, keepdims=keepdims)
    return elementwise.deliver(elementwise.where(is_any, extreme, float("nan")), target)


def _place(
    function: Callable[..., GPUArray],
    a: Any,
    axis: int | None,
    out: GPUArray | None,
    keepdims: bool,
    worst: float,
    what: str,
) -> GPUArray:
    a = _checked(a, what)
    if a.dtype not in promotion.FLOATS or not a.size:
        return function(a, axis, out, keepdims)
    index = function(_replaced(a, worst, what), axis, out, keepdims)
    if not reduce.all(reduce.any(logic.equal(a, a), axis)).item():
        raise ValueError(f"{what}: a row along axis {axis} of shape {a.shape} is NaN only; replace NaN first")
    return index
