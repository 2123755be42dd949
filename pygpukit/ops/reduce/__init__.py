"""Reductions over any axes: sums, products, extremes and their places, truth, moments, norms.

Common to all: axis is None (all axes), an int or a tuple of ints; keepdims keeps the reduced axes with extent 1; out is
written and returned instead of a new array; where: a bool array, elements where it is false are left out; initial: the
number that sums, products and extremes begin with. Types are NumPy's: small integers add up in 64 bits, means of
integers are float64. float16 and bfloat16 are accumulated in float32 and rounded once, to their own type. Elements are
added in a tree fixed by shape, strides and type: the same bits on every run, and errors that grow with the logarithm of
the size, as in pairwise summation. Strided inputs are read in place. All raise ShapeError (axes, out), DTypeError and
DeviceMismatchError before anything is launched, and are asynchronous on the current stream.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from pygpukit._core import native
from pygpukit.array import layout, promotion
from pygpukit.array.layout import Shape
from pygpukit.core.dtypes import DataType, as_dtype, bool_, complex64, float32, float64, int64, uint64
from pygpukit.core.errors import DTypeError, ShapeError
from pygpukit.ops import copying, elementwise
from pygpukit.ops.elementwise import pointwise
from pygpukit.ops.operands import check_array, check_devices, check_out, may_share_memory
from pygpukit.ops.prepared import prepared
from pygpukit.ops.reduce import masked, reducer

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DTypeLike

    Axis: TypeAlias = int | tuple[int, ...] | None

__all__ = [
    "all", "amax", "amin", "any", "argmax", "argmin", "count_nonzero", "logsumexp", "max", "mean", "min", "norm",
    "prod", "std", "sum", "sum_axis", "var",
]  # fmt: skip


@prepared
def sum(
    a: GPUArray,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: GPUArray | None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> GPUArray:
    """Sum of elements; of none: 0. dtype: of the result and of the addition, by default a's, 64 bits for integers."""
    if initial is not None or where is not None:
        plain = partial(sum, axis=axis, dtype=dtype, keepdims=keepdims)
        return masked.folded("sum", plain, a, where, initial, 0, out)
    a, axes = _checked("sum", a, axis)
    result_dtype = _accumulated(a.dtype) if dtype is None else as_dtype(dtype)
    a = _ready(a, result_dtype, "sum")
    natural = _accumulated(a.dtype)

    def on_host(values: Any) -> Any:
        return values.sum(axis=-1, dtype=_host_type(natural, values))

    return _reduced(reducer.SUM, "sum", a, axes, keepdims, natural, result_dtype, out, on_host, empty=0)


def sum_axis(a: GPUArray, axis: int) -> GPUArray:
    """sum(a, axis) over one axis."""
    return sum(a, axis)


@prepared
def prod(
    a: GPUArray,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: GPUArray | None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> GPUArray:
    """Product of elements; of none: 1. dtype as for sum()."""
    if initial is not None or where is not None:
        plain = partial(prod, axis=axis, dtype=dtype, keepdims=keepdims)
        return masked.folded("prod", plain, a, where, initial, 1, out)
    a, axes = _checked("prod", a, axis)
    result_dtype = _accumulated(a.dtype) if dtype is None else as_dtype(dtype)
    a = _ready(a, result_dtype, "prod")
    natural = _accumulated(a.dtype)
    if natural in (int64, uint64) and a.dtype != int64:
        a = copying.astype(a, natural).view(int64)

    def on_host(values: Any) -> Any:
        return values.prod(axis=-1)

    return _reduced(reducer.PRODUCT, "prod", a, axes, keepdims, natural, result_dtype, out, on_host, empty=1)


@prepared
def mean(
    a: GPUArray,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: GPUArray | None = None,
    keepdims: bool = False,
    *,
    where: Any = None,
) -> GPUArray:
    """Arithmetic mean; of no element: nan. dtype: of the result, by default a's, float64 for integers and bool."""
    a, axes = _checked("mean", a, axis)
    if dtype is not None and not promotion.is_inexact(as_dtype(dtype)) and not promotion.is_inexact(a.dtype):
        total = elementwise.floor_divide(sum(a, axis, dtype, keepdims=keepdims), _count(a, axes))  # NumPy's // of a sum
        return elementwise.deliver(total, None if out is None else check_out(out, total.shape, total.dtype, "mean"))
    inexact = _inexact(a.dtype, dtype, "mean")
    if where is not None:
        total = masked.moment("mean", a, axis, inexact, 0, keepdims, where)
        return elementwise.deliver(total, None if out is None else check_out(out, total.shape, inexact, "mean"))
    count = _count(a, axes)
    if not promotion.is_inexact(a.dtype) and a.itemsize < 8 and inexact == float64 and count:
        # The sum is exact, so only the division rounds.
        if out is not None:
            check_out(out, _result_shape(a.shape, axes, keepdims), inexact, "mean")
        return elementwise.div(sum(a, axis, keepdims=keepdims), count, out=out)
    a = _as_type(a, inexact)

    def on_host(values: Any) -> Any:
        return values.sum(axis=-1) / values.dtype.type(count)

    return _reduced(
        reducer.SUM, "mean", a, axes, keepdims, inexact, inexact, out, on_host, empty=float("nan"), real=float(count)
    )


@prepared
def max(
    a: GPUArray,
    axis: Axis = None,
    out: GPUArray | None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> GPUArray:
    """The largest element; nan where there is one. No elements: ShapeError; complex types: DTypeError."""
    if initial is not None or where is not None:
        return masked.folded("max", partial(max, axis=axis, keepdims=keepdims), a, where, initial, None, out)
    return _extreme("max", a, axis, out, keepdims)


@prepared
def min(
    a: GPUArray,
    axis: Axis = None,
    out: GPUArray | None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> GPUArray:
    """The smallest element; nan where there is one. Errors as max()."""
    if initial is not None or where is not None:
        return masked.folded("min", partial(min, axis=axis, keepdims=keepdims), a, where, initial, None, out)
    return _extreme("min", a, axis, out, keepdims)


amax = max
amin = min


@prepared
def argmax(a: GPUArray, axis: int | None = None, out: GPUArray | None = None, keepdims: bool = False) -> GPUArray:
    """Index (int64) of the first largest element along axis, of the first nan where there is one.

    axis None: index into the elements in C order. Errors as max(); axis is one int or None.
    """
    return _arg_extreme("argmax", a, axis, out, keepdims)


@prepared
def argmin(a: GPUArray, axis: int | None = None, out: GPUArray | None = None, keepdims: bool = False) -> GPUArray:
    """Index (int64) of the first smallest element; otherwise as argmax()."""
    return _arg_extreme("argmin", a, axis, out, keepdims)


@prepared
def any(
    a: GPUArray, axis: Axis = None, out: GPUArray | None = None, keepdims: bool = False, *, where: Any = None
) -> GPUArray:
    """True where any element is true (not zero; nan is true). Of none: False. The result is bool."""
    if where is not None:
        return masked.folded("any", partial(any, axis=axis, keepdims=keepdims), a, where, None, False, out)
    return _truth("any", a, axis, out, keepdims)


@prepared
def all(
    a: GPUArray, axis: Axis = None, out: GPUArray | None = None, keepdims: bool = False, *, where: Any = None
) -> GPUArray:
    """True where all elements are true (not zero; nan is true). Of none: True. The result is bool."""
    if where is not None:
        return masked.folded("all", partial(all, axis=axis, keepdims=keepdims), a, where, None, True, out)
    return _truth("all", a, axis, out, keepdims)


@prepared
def count_nonzero(a: GPUArray, axis: Axis = None, *, keepdims: bool = False, out: GPUArray | None = None) -> GPUArray:
    """The number of elements that are not zero (nan is not), as int64."""
    a, axes = _checked("count_nonzero", a, axis)

    def on_host(values: Any) -> Any:
        return (values != 0).sum(axis=-1)

    bits = reducer.nonzero_bits(a.dtype)
    return _reduced(reducer.COUNT, "count_nonzero", a, axes, keepdims, int64, int64, out, on_host, empty=0, bits=bits)


@prepared
def var(
    a: GPUArray,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: GPUArray | None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
) -> GPUArray:
    """Variance: mean squared distance from the mean, divided by the number of elements - ddof.

    Of no element: nan. Computed in one pass from means and squared distances of groups (Chan, Golub, LeVeque), never as
    a difference of squares. Of complex numbers the squared magnitudes of distances, real. dtype as for mean().
    """
    return _moment("var", a, axis, dtype, out, ddof, keepdims, where)


@prepared
def std(
    a: GPUArray,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: GPUArray | None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
) -> GPUArray:
    """Standard deviation: the square root of var()."""
    return _moment("std", a, axis, dtype, out, ddof, keepdims, where)


@prepared
def norm(a: GPUArray, axis: Axis = None, keepdims: bool = False, *, out: GPUArray | None = None) -> GPUArray:
    """Euclidean length: the square root of the sum of squared magnitudes, real. Of no element: 0. Integers: float64."""
    a, axes = _checked("norm", a, axis)
    a = _as_type(a, _inexact(a.dtype, None, "norm"))
    result = float32 if a.dtype == complex64 else float64 if a.dtype in promotion.COMPLEX else a.dtype

    def on_host(values: Any) -> Any:
        import numpy as np

        return np.sqrt((np.square(values.real) + np.square(values.imag)).sum(axis=-1))

    return _reduced(reducer.NORM, "norm", a, axes, keepdims, result, result, out, on_host, empty=0)


@prepared
def logsumexp(a: GPUArray, axis: Axis = None, keepdims: bool = False, *, out: GPUArray | None = None) -> GPUArray:
    """log(sum(exp(a))) without overflow. Of no element: -inf. Real types; integers are computed in float64."""
    a, axes = _checked("logsumexp", a, axis)
    _real("logsumexp", a.dtype)
    a = _as_type(a, _inexact(a.dtype, None, "logsumexp"))

    def on_host(values: Any) -> Any:
        import numpy as np

        top = values.max(axis=-1, keepdims=True)
        top = np.where(np.isfinite(top), top, 0).astype(values.dtype)
        return np.log(np.exp(values - top).sum(axis=-1, keepdims=True)) + top

    return _reduced(
        reducer.LOG_SUM_EXP, "logsumexp", a, axes, keepdims, a.dtype, a.dtype, out, on_host, empty=float("-inf")
    )


# ---- common parts ----


def _extreme(name: str, a: GPUArray, axis: Axis, out: GPUArray | None, keepdims: bool) -> GPUArray:
    a, axes = _checked(name, a, axis)
    _real(name, a.dtype)

    def on_host(values: Any) -> Any:
        return getattr(values, name)(axis=-1)

    bits = _mirror(name == "min")
    return _reduced(reducer.EXTREME, name, a, axes, keepdims, a.dtype, a.dtype, out, on_host, bits=bits)


def _arg_extreme(name: str, a: GPUArray, axis: int | None, out: GPUArray | None, keepdims: bool) -> GPUArray:
    if isinstance(axis, tuple):
        raise ShapeError(f"{name}: axis is one int or None, not {axis}; reshape the axes into one first")
    a, axes = _checked(name, a, axis)
    _real(name, a.dtype)

    def on_host(values: Any) -> Any:
        return getattr(values, name)(axis=-1)

    bits = _mirror(name == "argmin")
    return _reduced(reducer.ARG_EXTREME, name, a, axes, keepdims, int64, int64, out, on_host, bits=bits)


def _truth(name: str, a: GPUArray, axis: Axis, out: GPUArray | None, keepdims: bool) -> GPUArray:
    a, axes = _checked(name, a, axis)
    enough = _count(a, axes) if name == "all" else 1

    def on_host(values: Any) -> Any:
        return getattr(values != 0, name)(axis=-1)

    bits = reducer.nonzero_bits(a.dtype)
    empty = name == "all"
    return _reduced(
        reducer.REACHES, name, a, axes, keepdims, bool_, bool_, out, on_host, empty=empty, bits=bits, real=float(enough)
    )


def _moment(
    name: str,
    a: GPUArray,
    axis: Axis,
    dtype: DTypeLike | None,
    out: GPUArray | None,
    ddof: float,
    keepdims: bool,
    where: Any,
) -> GPUArray:
    a, axes = _checked(name, a, axis)
    if where is not None or a.dtype in promotion.COMPLEX:
        result = masked.moment(name, a, axis, _inexact(a.dtype, dtype, name), ddof, keepdims, where)
        return elementwise.deliver(result, None if out is None else check_out(out, result.shape, result.dtype, name))
    inexact = _inexact(a.dtype, dtype, name)
    _real(name, inexact)
    a = _as_type(a, inexact)
    divisor = builtins.max(_count(a, axes) - ddof, 0.0)

    def on_host(values: Any) -> Any:
        import numpy as np

        distances = values - values.mean(axis=-1, keepdims=True)
        variance = np.square(distances).sum(axis=-1) / values.dtype.type(divisor)
        return np.sqrt(variance) if name == "std" else variance

    bits = int(name == "std")
    return _reduced(
        reducer.MOMENTS,
        name,
        a,
        axes,
        keepdims,
        inexact,
        inexact,
        out,
        on_host,
        empty=float("nan"),
        bits=bits,
        real=divisor,
    )


def _reduced(
    op: reducer.Reducer,
    name: str,
    a: GPUArray,
    axes: Shape,
    keepdims: bool,
    computed: DataType,
    result_dtype: DataType,
    out: GPUArray | None,
    on_host: Callable[[Any], Any],
    empty: Any = None,
    bits: int = 0,
    real: float = 1.0,
) -> GPUArray:
    """op over axes: computed in one type, delivered as another. empty: the result of no elements, None if undefined."""
    shape = _result_shape(a.shape, axes, keepdims)
    target = None if out is None else check_out(out, shape, result_dtype, name)
    if not a.size and empty is None and 0 not in shape:
        raise ShapeError(f"{name}: shape {a.shape} has no elements along axes {axes}, and {name} of none is undefined")
    if target is None or target.dtype != computed or not target.is_contiguous() or may_share_memory(target, a):
        target = native.empty(shape, computed)
    if not a.size:
        if target.size:
            copying.fill(target, empty)
    else:
        reducer.reduce(op, name, a, axes, target, on_host, bits, real)
    if out is not None:
        if target is not out:
            copying.copy_to(target, out)
        return out
    return target if target.dtype == result_dtype else copying.astype(target, result_dtype)


def _checked(name: str, a: Any, axis: Axis) -> tuple[GPUArray, Shape]:
    """The operand, and the axes to reduce, counted from 0 and in order."""
    a = check_array(a, name)
    check_devices(name, a)
    if a.dtype.name not in pointwise.CTYPES:
        raise DTypeError(
            f"{name}: {a.dtype} is a storage type without arithmetic; convert to a type that computes first"
        )
    if axis is None:
        return a, tuple(range(a.ndim))
    requested = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    axes = tuple(layout.normalize_axis(_integer(each, name), a.ndim, name) for each in requested)
    if len(set(axes)) != len(axes):
        raise ShapeError(f"{name}: axis {axis} names an axis of shape {a.shape} twice")
    return a, tuple(sorted(axes))


def _integer(axis: Any, name: str) -> int:
    if isinstance(axis, bool) or not hasattr(axis, "__index__"):
        raise TypeError(f"{name}: axis is None, an int or a tuple of ints, not {axis!r}")
    return int(axis.__index__())


def _result_shape(shape: Shape, axes: Shape, keepdims: bool) -> Shape:
    if keepdims:
        return tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))
    return tuple(extent for axis, extent in enumerate(shape) if axis not in axes)


def _count(a: GPUArray, axes: Shape) -> int:
    return math.prod([a.shape[axis] for axis in axes])


def _accumulated(dtype: DataType) -> DataType:
    """The type that sums and products of dtype have."""
    if promotion.is_inexact(dtype):
        return dtype
    return uint64 if dtype in promotion.UNSIGNED else int64


def _inexact(dtype: DataType, requested: DTypeLike | None, name: str) -> DataType:
    """The type of a mean of dtype. Raises DTypeError when an integer type is asked for."""
    result = promotion.true_divide(dtype) if requested is None else as_dtype(requested)
    if result.name not in pointwise.CTYPES or not promotion.is_inexact(result):
        raise DTypeError(f"{name}: dtype={result.name!r} cannot hold the result; use a float or complex type")
    if dtype in promotion.COMPLEX and result not in promotion.COMPLEX:
        raise DTypeError(f"{name}: {dtype} elements do not fit dtype={result.name!r}; use 'complex64' or 'complex128'")
    return result


def _ready(a: GPUArray, computing: DataType, name: str) -> GPUArray:
    """a in a type whose accumulation gives wanted's values: itself where both are integers, which wrap in the end."""
    if computing.name not in pointwise.CTYPES:
        raise DTypeError(f"{name}: dtype={computing.name!r} is a storage type without arithmetic")
    if promotion.is_inexact(computing) or promotion.is_inexact(a.dtype) or computing == bool_:
        return _as_type(a, computing)
    return a


def _as_type(a: GPUArray, dtype: DataType) -> GPUArray:
    return a if a.dtype == dtype else copying.astype(a, dtype)


def _real(name: str, dtype: DataType) -> None:
    if dtype in promotion.COMPLEX:
        raise DTypeError(f"{name}: not defined for complex numbers; apply it to their parts or magnitudes")


def _mirror(smallest: bool) -> int:
    """The setting of an extreme: all bits turn the order round."""
    return 2**64 - 1 if smallest else 0


def _host_type(natural: DataType, values: Any) -> Any:
    """The type that NumPy adds in: 64 bits for integers, the values' own type otherwise."""
    return natural.to_numpy_dtype() if natural in (int64, uint64) else values.dtype
