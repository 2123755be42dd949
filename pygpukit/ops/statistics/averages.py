"""average, ptp, cov and corrcoef, as NumPy's functions. Asynchronous, but where weights are checked: that reads one
truth value, and waits."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.array import layout, promotion
from pygpukit.core.dtypes import as_dtype, bool_, float64
from pygpukit.core.errors import DTypeError, ShapeError
from pygpukit.ops import copying, elementwise, reduce, shape
from pygpukit.ops.elementwise import logic, math
from pygpukit.ops.matmul.gemm import matmul
from pygpukit.ops.operands import check_array, check_devices
from pygpukit.ops.shape import joining

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DTypeLike
    from pygpukit.ops.reduce import Axis

__all__ = ["average", "corrcoef", "cov", "ptp"]


def ptp(a: GPUArray, axis: Axis = None, out: GPUArray | None = None, keepdims: bool = False) -> GPUArray:
    """The largest element less the smallest, in a's type (integers wrap). Errors as max(), and DTypeError for bool."""
    a = check_array(a, "ptp")
    if a.dtype == bool_:
        raise DTypeError("ptp: bool has no differences; convert to an integer first")
    return elementwise.sub(reduce.max(a, axis, keepdims=keepdims), reduce.min(a, axis, keepdims=keepdims), out=out)


def average(
    a: GPUArray, axis: Axis = None, weights: GPUArray | None = None, returned: bool = False, *, keepdims: bool = False
) -> Any:
    """The mean, or the sum of weights * a over the sum of weights, along axis; with returned also the sum of weights.

    weights: of a's shape, or of its extents along axis. Integers give float64. Raises ZeroDivisionError where weights
    sum to 0, which waits; ShapeError, TypeError where weights need an axis, DTypeError, DeviceMismatchError.
    """
    a = check_array(a, "average")
    if weights is None:
        result = reduce.mean(a, axis, keepdims=keepdims)
        total = native.empty(result.shape, result.dtype)
        if returned and total.size:
            copying.fill(total, a.size / result.size)
        return (result, total) if returned else result
    weights = _weights(check_array(weights, "average: weights"), a, axis)
    check_devices("average", a, weights)
    dtype = promotion.promote(a.dtype, weights.dtype)
    dtype = dtype if promotion.is_inexact(a.dtype) else promotion.promote(dtype, float64)
    a, weights = elementwise.as_type(a, dtype), elementwise.as_type(weights, dtype)
    total = reduce.sum(shape.broadcast_to(weights, a.shape), axis, keepdims=keepdims)
    if not reduce.all(total).item():
        raise ZeroDivisionError("average: weights sum to zero; give weights with another sum")
    result = elementwise.div(reduce.sum(elementwise.mul(a, weights), axis, keepdims=keepdims), total)
    return (result, total) if returned else result


def _weights(weights: GPUArray, a: GPUArray, axis: Axis) -> GPUArray:
    """weights as a view that broadcasts to a."""
    if weights.shape == a.shape:
        return weights
    if axis is None:
        raise TypeError(f"average: weights of shape {weights.shape} for an array of shape {a.shape} need an axis")
    positions = layout.integers(axis, "average: axis")
    axes = [layout.normalize_axis(each, a.ndim, "average") for each in positions]
    if weights.shape != tuple(a.shape[k] for k in axes):
        raise ShapeError(
            f"average: weights of shape {weights.shape} must be of shape {a.shape}, or of its extents along axis {axis}"
        )
    order = sorted(range(len(axes)), key=lambda k: axes[k])
    own = shape.transpose(weights, order)
    return own.reshape(tuple(extent if k in axes else 1 for k, extent in enumerate(a.shape)))


def cov(
    m: GPUArray,
    y: GPUArray | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: GPUArray | None = None,
    aweights: GPUArray | None = None,
    *,
    dtype: DTypeLike | None = None,
) -> GPUArray:
    """Covariances of variables, the rows of m (columns without rowvar) and of y below them; of one variable 0-d.

    ddof: taken off the number of samples, by default 0 with bias, else 1. fweights, aweights: how often a sample counts
    and how much; checking them waits. dtype: float64 (complex128) when left out. With no degree of freedom a
    RuntimeWarning, and infinities. Raises ShapeError, ValueError (weights that are negative), TypeError.
    """
    m = check_array(m, "cov")
    parts = [m] if y is None else [m, check_array(y, "cov: y")]
    check_devices("cov", *parts)
    if any(part.ndim > 2 for part in parts):
        raise ShapeError(f"cov: shapes {[part.shape for part in parts]} must be 1-D or 2-D")
    if ddof is not None and ddof != int(ddof):
        raise ValueError(f"cov: ddof is {ddof!r}; it must be an integer")
    result_dtype = float64 if dtype is None else as_dtype(dtype)
    if not promotion.is_inexact(result_dtype):
        raise DTypeError(f"cov: dtype={result_dtype.name!r} cannot hold means; use a float or complex type")
    if dtype is None:
        for part in parts:
            result_dtype = promotion.promote(result_dtype, part.dtype)
    rows = [_variables(part, rowvar, result_dtype) for part in parts]
    if not rows[0].shape[0]:
        return native.empty((0, 0), float64)
    x = rows[0] if len(rows) == 1 else joining.concatenate(rows)
    lost = ddof if ddof is not None else 0 if bias else 1
    weights = _sample_weights(x, fweights, aweights)
    if weights is None:
        free: Any = x.shape[1] - lost
        if free <= 0:
            warnings.warn("cov: no degree of freedom is left; give more samples", RuntimeWarning, stacklevel=2)
            free = 0
        mean = reduce.mean(x, 1, keepdims=True)
    else:
        mean, total = average(x, 1, shape.broadcast_to(weights, x.shape), returned=True, keepdims=True)
        free = reduce.max(elementwise.as_type(total[0, 0].real, float64))
        if lost and aweights is None:
            free = elementwise.sub(free, float(lost))
        elif lost:
            again = elementwise.mul(weights, elementwise.as_type(aweights, float64))  # type: ignore[arg-type]
            free = elementwise.sub(free, elementwise.div(elementwise.mul(reduce.sum(again), float(lost)), free))
        free = elementwise.maximum(free, 0.0)
    x = elementwise.sub(x, mean)
    right = x if weights is None else elementwise.mul(x, elementwise.as_type(weights, x.dtype))
    products = matmul(x, elementwise.conj(right).T)
    scale = elementwise.div(1.0, free) if not isinstance(free, int) else 1 / free if free else float("inf")
    scale = scale if isinstance(scale, float) else elementwise.as_type(scale, products.dtype)
    return shape.squeeze(elementwise.mul(products, scale))


def _variables(part: GPUArray, rowvar: bool, dtype: Any) -> GPUArray:
    rows = shape.atleast_2d(part)
    return elementwise.as_type(rows.T if not rowvar and part.ndim == 2 else rows, dtype)


def _sample_weights(x: GPUArray, fweights: Any, aweights: Any) -> GPUArray | None:
    product: GPUArray | None = None
    for name, weights in (("fweights", fweights), ("aweights", aweights)):
        if weights is None:
            continue
        weights = check_array(weights, f"cov: {name}")
        if weights.shape != x.shape[1:]:
            raise ShapeError(f"cov: {name} has shape {weights.shape}; it must be {x.shape[1:]}, one for each sample")
        own = elementwise.as_type(weights, float64)
        if weights.size and reduce.any(logic.less(own, 0)).item():
            raise ValueError(f"cov: {name} has negative numbers; use weights of 0 or more")
        counts = name == "fweights" and promotion.is_inexact(weights.dtype) and weights.size
        if counts and reduce.any(logic.not_equal(own, math.round(own))).item():
            raise TypeError("cov: fweights counts samples; give integers")
        product = own if product is None else elementwise.mul(product, own)
    return product


def corrcoef(
    x: GPUArray, y: GPUArray | None = None, rowvar: bool = True, *, dtype: DTypeLike | None = None
) -> GPUArray:
    """Pearson's correlations of variables, from -1 to 1: their covariances over their deviations. As cov()."""
    covariance = cov(x, y, rowvar, dtype=dtype)
    if not covariance.ndim:
        return elementwise.div(covariance, covariance)
    deviation = math.sqrt(shape.diagonal(covariance).real)
    covariance = elementwise.div(elementwise.div(covariance, deviation[:, None]), deviation[None, :])
    for part in (covariance.real, covariance.imag) if covariance.dtype in promotion.COMPLEX else (covariance,):
        elementwise.clip(part, -1.0, 1.0, out=part)
    return covariance
