"""quantile, percentile, median and their forms without NaN: of sorted rows, by any of NumPy's methods.

Rows are sorted on the device (stable, the same bits on every run), median() selects (middle.py); nothing waits but
quantiles that are on the device themselves, and weights, of which one truth value is read. Of no element the result is
NaN. overwrite_input is taken for NumPy's sake: the input is never changed. float16, bfloat16 and float32 keep their
type with a Python number as q; a list of floats is float64 and so is the result, as NumPy 2.4 has it; integers give
float64, methods that pick a sample keep the type. All raise ShapeError, DTypeError (bool, complex), ValueError
(quantiles out of range, unknown methods).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.array import layout, promotion
from pygpukit.core.dtypes import DataType, bfloat16, bool_, float16, float32, float64, int64
from pygpukit.core.errors import DTypeError, ShapeError
from pygpukit.ops import copying, elementwise, indexing, reduce, scan, shape, sorting
from pygpukit.ops.elementwise import logic, math
from pygpukit.ops.operands import check_array, check_out, is_array
from pygpukit.ops.prepared import prepared
from pygpukit.ops.statistics import methods, middle
from pygpukit.ops.statistics.rows import Rows, check_real, rows_of

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray
    from pygpukit.ops.statistics.rows import Axis

    HostArray = np.ndarray[Any, Any]

__all__ = ["median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"]

_COUNTED = {"float16": 2**11, "float32": 2**24}  # up to here the type holds every position


class _Functions:
    """The functions that methods.place() asks for, of arrays on the device."""

    clip, where, floor, ceil, round = elementwise.clip, elementwise.where, math.floor, math.ceil, math.round
    logical_and = logic.logical_and


@prepared
def quantile(
    a: GPUArray,
    q: Any,
    axis: Axis = None,
    out: GPUArray | None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: GPUArray | None = None,
) -> GPUArray:
    """The q-th quantiles, q from 0 to 1, along axis (one, several, None for all); the axes of q come first.

    q: a number, a list or an array. method: any of NumPy's. weights: of a's shape or along the one axis, for
    "inverted_cdf" only. A row with NaN gives NaN.
    """
    return _quantiles("quantile", a, q, 1, axis, out, method, keepdims, weights, skip=False)


@prepared
def percentile(
    a: GPUArray,
    q: Any,
    axis: Axis = None,
    out: GPUArray | None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: GPUArray | None = None,
) -> GPUArray:
    """quantile() with q from 0 to 100."""
    return _quantiles("percentile", a, q, 100, axis, out, method, keepdims, weights, skip=False)


@prepared
def nanquantile(
    a: GPUArray,
    q: Any,
    axis: Axis = None,
    out: GPUArray | None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: GPUArray | None = None,
) -> GPUArray:
    """quantile() of the elements that are not NaN; of none NaN."""
    return _quantiles("nanquantile", a, q, 1, axis, out, method, keepdims, weights, skip=True)


@prepared
def nanpercentile(
    a: GPUArray,
    q: Any,
    axis: Axis = None,
    out: GPUArray | None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: GPUArray | None = None,
) -> GPUArray:
    """nanquantile() with q from 0 to 100."""
    return _quantiles("nanpercentile", a, q, 100, axis, out, method, keepdims, weights, skip=True)


@prepared
def median(
    a: GPUArray,
    axis: Axis = None,
    out: GPUArray | None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> GPUArray:
    """The middle of the sorted elements along axis, or the mean of the two in the middle; NaN where there is one."""
    rows, target = _begun("median", a, axis, out, keepdims)
    length = rows.array.shape[-1]
    if not length:
        result = _undefined(rows.shape, promotion.true_divide(rows.array.dtype))
    elif middle.suits(rows.array):
        result = middle.find(rows.array)
    else:
        ordered = sorting.sort(rows.array)
        low, high = ordered[..., (length - 1) // 2], ordered[..., length // 2]
        result = _checked_for_nan(_middle(low, high, None if length % 2 == 0 else True), ordered)
    return _delivered(result, rows.kept if keepdims else rows.shape, target)


@prepared
def nanmedian(
    a: GPUArray,
    axis: Axis = None,
    out: GPUArray | None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> GPUArray:
    """median() of the elements that are not NaN; of none NaN."""
    rows, target = _begun("nanmedian", a, axis, out, keepdims)
    if not rows.array.shape[-1] or not promotion.is_inexact(rows.array.dtype):
        return median(a, axis, out, overwrite_input, keepdims)
    ordered = sorting.sort(rows.array)
    count = _valid(ordered)
    low, high = (
        elementwise.maximum(place, 0)
        for place in ((count - 1) // 2, elementwise.minimum(count // 2, ordered.shape[-1] - 1))
    )
    first, second = (indexing.take_along_axis(ordered, place, -1) for place in (low, high))
    result = _middle(first, second, logic.equal(low, high))[..., 0]
    return _delivered(result, rows.kept if keepdims else rows.shape, target)


# ---- common parts ----


def _quantiles(
    what: str,
    a: Any,
    q: Any,
    whole: int,
    axis: Axis,
    out: GPUArray | None,
    method: str,
    keepdims: bool,
    weights: GPUArray | None,
    skip: bool,
) -> GPUArray:
    a = check_real(a, what)
    if method not in methods.METHODS:
        raise ValueError(f"{what}: method {method!r} is unknown; use one of {', '.join(methods.METHODS)}")
    if a.dtype == bool_ and not methods.is_discrete(method):
        raise DTypeError(f"{what}: bool has nothing between its values; convert to an integer or use method='nearest'")
    if weights is not None and method != "inverted_cdf":
        raise ValueError(f"{what}: weights need method='inverted_cdf', not {method!r}")
    rows = rows_of(a, axis, what)
    shares, dtype = _shares(q, whole, a.dtype, what)
    if shares.dtype.kind != "f":  # 0 and 1 as integers: an end of the row, which is a sample
        method = "lower" if method == "linear" else method
        shares = shares.astype("float64")
    if methods.is_discrete(method):
        dtype = a.dtype
    extents = (*shares.shape, *(rows.kept if keepdims else rows.shape))
    target = None if out is None else check_out(out, extents, dtype, what)
    if not rows.array.shape[-1]:
        if not promotion.is_inexact(dtype):
            raise ShapeError(
                f"{what}: shape {a.shape} has no elements along axis {axis}, and {method!r} picks one of them; "
                "use another axis"
            )
        return _delivered(_undefined(extents, dtype), extents, target)
    if weights is not None:
        finder: Any = _Weighted(rows, a, weights, axis, what, skip)
    else:
        finder = _Skipping(rows, method) if skip and promotion.is_inexact(a.dtype) else _Sorted(rows, method)
    results = [finder.find(share, dtype) for share in shares.reshape(-1)]
    together = results[0] if shares.ndim == 0 else _stacked(results, dtype, rows.shape)
    return _delivered(together, extents, target)


def _shares(q: Any, whole: int, dtype: DataType, what: str) -> tuple[HostArray, DataType]:
    """The quantiles from 0 to 1 on the host, and the result's type of methods that interpolate."""
    import numpy as np

    is_weak = type(q) in (int, float)
    host_shares = q.to_numpy() if is_array(q) else np.asarray(q)
    if not host_shares.size:
        host_shares = host_shares.astype(np.float64)
    if host_shares.dtype.kind not in "biuf" or host_shares.ndim > 2:
        raise DTypeError(f"{what}: q must be a real number or an array of them with up to 2 axes, not {q!r}")
    if host_shares.size and not (host_shares.min() >= 0 and host_shares.max() <= whole):
        raise ValueError(f"{what}: q is {q!r}; quantiles must be from 0 to {whole}")
    shares = np.true_divide(host_shares, whole) if whole > 1 else host_shares
    own = promotion.true_divide(dtype)
    if is_weak or shares.dtype.kind != "f":
        return shares, own
    return shares, promotion.promote(dtype, DataType.from_numpy_dtype(shares.dtype))


class _Sorted:
    """Quantiles of sorted rows: positions are the same in all of them, and known on the host."""

    def __init__(self, rows: Rows, method: str) -> None:
        self.ordered, self.method = sorting.sort(rows.array), method

    def find(self, share: Any, dtype: DataType) -> GPUArray:
        import numpy as np

        length = self.ordered.shape[-1]
        if length > _COUNTED.get(share.dtype.name, 2**53):
            share = share.astype(np.float64)
        low, high, part = methods.place(np, self.method, length, share)
        first = self.ordered[..., int(low)]
        if part is None:
            return _checked_for_nan(copying.clone(first), self.ordered)
        second = self.ordered[..., int(high)]
        between = _between(first, second, float(part), dtype)
        return _checked_for_nan(between, self.ordered)


class _Skipping:
    """Quantiles of the elements that are not NaN: their number differs by row, and positions with it."""

    def __init__(self, rows: Rows, method: str) -> None:
        self.ordered, self.method = sorting.sort(rows.array), method
        self.count = _valid(self.ordered)

    def find(self, share: Any, dtype: DataType) -> GPUArray:
        length = self.ordered.shape[-1]
        exact = share.dtype.name in _COUNTED and length <= _COUNTED[share.dtype.name]
        count = copying.astype(self.count, DataType.from_numpy_dtype(share.dtype) if exact else float64)
        low, high, part = methods.place(_Functions, self.method, count, float(share))
        first, second = (self._taken(place) for place in (low, high))
        return first if part is None else _between(first, second, part[..., 0], dtype)

    def _taken(self, place: GPUArray) -> GPUArray:
        whole = elementwise.clip(copying.astype(place, int64), 0, self.ordered.shape[-1] - 1)
        return indexing.take_along_axis(self.ordered, whole, -1)[..., 0]


class _Weighted:
    """Quantiles of the weighted inverse of the distribution function."""

    def __init__(self, rows: Rows, a: GPUArray, weights: Any, axis: Axis, what: str, skip: bool) -> None:
        weights = check_array(weights, f"{what}: weights")
        if weights.shape != a.shape:
            axes = () if axis is None else layout.integers(axis, f"{what}: axis")
            if len(axes) != 1 or weights.shape != (a.shape[axes[0]],):
                raise ShapeError(
                    f"{what}: weights of shape {weights.shape} must be of shape {a.shape}, or 1-D along the one axis"
                )
            along = [1] * a.ndim
            along[axes[0]] = a.shape[axes[0]]
            weights = shape.broadcast_to(weights.reshape(tuple(along)), a.shape)
        own = elementwise.as_type(rows_of(weights, axis, what).array, float64)
        if skip and promotion.is_inexact(a.dtype):
            own = elementwise.where(logic.isnan(rows.array), 0.0, own)
        order = sorting.argsort(rows.array)
        self.ordered = indexing.take_along_axis(rows.array, order, -1)
        sums = scan.cumsum(indexing.take_along_axis(own, order, -1), -1)
        total = sums[..., -1:]
        usable = logic.logical_and(logic.isfinite(total), reduce.min(own, -1, keepdims=True) >= 0)
        usable = logic.logical_and(usable, total > 0)
        if not skip and own.size and not reduce.all(usable).item():
            raise ValueError(f"{what}: weights must be finite, not negative, and not all 0")
        self.reached = elementwise.div(sums, total)
        self.reached = elementwise.where(logic.equal(self.reached, 0), -1.0, self.reached)
        self.skip = skip

    def find(self, share: Any, dtype: DataType) -> GPUArray:
        before = reduce.count_nonzero(logic.less(self.reached, float(share)), -1, keepdims=True)
        place = elementwise.minimum(before, self.ordered.shape[-1] - 1)
        values = indexing.take_along_axis(self.ordered, place, -1)[..., 0]
        return values if self.skip else _checked_for_nan(values, self.ordered)


def _begun(what: str, a: Any, axis: Axis, out: GPUArray | None, keepdims: bool) -> tuple[Rows, GPUArray | None]:
    rows = rows_of(a, axis, what)
    dtype = promotion.true_divide(rows.array.dtype)
    return rows, None if out is None else check_out(out, rows.kept if keepdims else rows.shape, dtype, what)


def _valid(ordered: GPUArray) -> GPUArray:
    """The number of elements of each row that are not NaN, int64, along an axis of one element."""
    return reduce.count_nonzero(logic.equal(ordered, ordered), -1, keepdims=True)


def _middle(low: GPUArray, high: GPUArray, single: Any) -> GPUArray:
    """The mean of two samples, or where they are a single one that sample, as a float."""
    dtype = promotion.true_divide(low.dtype)
    if single is True:
        return copying.astype(low, dtype)
    wide = float32 if dtype in (float16, bfloat16) else dtype  # their sum may exceed the narrow type
    low, high = elementwise.as_type(low, wide), elementwise.as_type(high, wide)
    mean = elementwise.div(elementwise.add(low, high), 2.0)
    if single is not None:
        mean = elementwise.where(single, low, mean)
    return elementwise.as_type(mean, dtype)


def _between(low: GPUArray, high: GPUArray, part: Any, dtype: DataType) -> GPUArray:
    """low + part (high - low), from the nearer end, so that the result is monotonic in part."""
    if not promotion.is_inexact(low.dtype):  # differences of narrow integers would wrap
        low, high = elementwise.as_type(low, float64), elementwise.as_type(high, float64)
    step = elementwise.as_type(elementwise.sub(high, low), dtype)
    if not is_array(part):
        if part >= 0.5:
            return elementwise.as_type(elementwise.sub(high, elementwise.mul(step, 1 - part)), dtype)
        return elementwise.as_type(elementwise.add(low, elementwise.mul(step, part)), dtype)
    part = elementwise.as_type(part, dtype)
    up = elementwise.add(low, elementwise.mul(step, part))
    down = elementwise.sub(high, elementwise.mul(step, elementwise.sub(1, part)))
    return elementwise.where(logic.greater_equal(part, 0.5), down, up)


def _checked_for_nan(values: GPUArray, ordered: GPUArray) -> GPUArray:
    """NaN where the sorted row ends with one."""
    if not promotion.is_inexact(ordered.dtype):
        return values
    return elementwise.where(logic.isnan(ordered[..., -1]), float("nan"), values)


def _undefined(extents: tuple[int, ...], dtype: DataType) -> GPUArray:
    nans = native.empty(extents, dtype)
    if nans.size:
        copying.fill(nans, float("nan"))
    return nans


def _stacked(results: list[GPUArray], dtype: DataType, extents: tuple[int, ...]) -> GPUArray:
    together = native.empty((len(results), *extents), dtype)
    for position, part in enumerate(results):
        if part.size:
            copying.copy_to(part, together[position])
    return together


def _delivered(result: GPUArray, extents: tuple[int, ...], out: GPUArray | None) -> GPUArray:
    return elementwise.deliver(shape.reshape(result, extents), out)
