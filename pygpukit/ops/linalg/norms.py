"""Norms of vectors and matrices, and condition numbers. Norms are asynchronous but those of singular values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

from pygpukit.array import layout
from pygpukit.core.errors import InvalidSpecError, ShapeError
from pygpukit.ops import elementwise, reduce
from pygpukit.ops.elementwise.logic import isnan, logical_not
from pygpukit.ops.linalg import failures
from pygpukit.ops.linalg.factors import svdvals
from pygpukit.ops.linalg.matrices import square, stack
from pygpukit.ops.linalg.solving import inv
from pygpukit.ops.operands import check_array
from pygpukit.ops.shape import moveaxis, reshape

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

    Axis: TypeAlias = "int | tuple[int, ...] | None"
    Order: TypeAlias = "float | str | None"


def norm(x: GPUArray, ord: Order = None, axis: Axis = None, keepdims: bool = False) -> GPUArray:
    """The norm of vectors (axis: an int) or matrices (axis: two ints); None: of the whole array, of one or two axes
    where ord is given.

    ord of vectors: a number p, for sums of |x|^p and their p-th root, by default 2; 0: how many are not zero; inf and
    -inf: the largest and the smallest magnitude. Of matrices: "fro", the default, "nuc", 2 and -2 (singular values), 1
    and -1 (sums of columns), inf and -inf (of rows). Real; integers: float64. InvalidSpecError for others.
    """
    x = check_array(x, "norm")
    if axis is None:
        whole = ord is None or (ord in ("fro", "f") and x.ndim == 2) or (ord == 2 and x.ndim == 1)
        if whole:
            return reduce.norm(x, keepdims=keepdims)
        axis = tuple(range(x.ndim))
    axes = layout.integers(axis, "norm: axis")
    axes = tuple(layout.normalize_axis(one, x.ndim, "norm") for one in axes)
    if len(axes) == 1:
        return _of_vectors(x, 2 if ord is None else ord, axes, keepdims)
    if len(axes) != 2 or axes[0] == axes[1]:
        raise ShapeError(f"norm: axis {axis} of shape {x.shape}; vectors have one axis, matrices two, give those")
    return _of_matrices(x, "fro" if ord is None else ord, axes, keepdims)


def vector_norm(x: GPUArray, /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2) -> GPUArray:
    """norm() of vectors that may lie along several axes; None: along all."""
    x = check_array(x, "vector_norm")
    axes = range(x.ndim) if axis is None else layout.integers(axis, "vector_norm: axis")
    return _of_vectors(x, ord, tuple(layout.normalize_axis(one, x.ndim, "vector_norm") for one in axes), keepdims)


def matrix_norm(x: GPUArray, /, *, keepdims: bool = False, ord: Order = "fro") -> GPUArray:
    """norm() of the matrices in the last two axes."""
    x = check_array(x, "matrix_norm")
    if x.ndim < 2:
        raise ShapeError(f"matrix_norm: an array of shape {x.shape} is no matrix; use vector_norm()")
    return _of_matrices(x, "fro" if ord is None else ord, (x.ndim - 2, x.ndim - 1), keepdims)


def cond(x: GPUArray, p: Order = None) -> GPUArray:
    """The condition number of each matrix: norm(x, p) * norm(inv(x), p), inf of singular ones.

    p: as norm() takes it for matrices; None and 2: the largest singular value over the smallest, -2: the reverse, of
    matrices of any shape. NaN where x has NaN. Raises ShapeError for empty matrices, InvalidSpecError. Does not wait.
    """
    if not stack(x, "cond").size:
        from pygpukit.ops.linalg.errors import MatrixShapeError

        raise MatrixShapeError(
            f"cond: matrices of shape {x.shape[-2:]} have no condition number; they have no elements"
        )
    if p in (None, 2, -2):
        with failures.unchecked():
            s = svdvals(x)
        largest, smallest = s[..., 0], s[..., -1]
        ratio = elementwise.div(smallest, largest) if p == -2 else elementwise.div(largest, smallest)
    else:
        x = square(x, "cond")
        with failures.unchecked():
            inverse = inv(x)
        ratio = elementwise.mul(matrix_norm(x, ord=p), matrix_norm(inverse, ord=p))
    known = elementwise.where(isnan(ratio), math.inf, ratio)
    return elementwise.where(logical_not(reduce.any(isnan(x), axis=(-2, -1))), known, ratio)


def _of_vectors(x: GPUArray, ord: Any, axes: tuple[int, ...], keepdims: bool) -> GPUArray:
    if not isinstance(ord, (int, float)):
        raise InvalidSpecError(f"norm: ord is {ord!r}; of vectors it is a number or inf", "ord")
    if ord == 2:
        return reduce.norm(x, axis=axes, keepdims=keepdims)
    sizes = _magnitudes(x)
    if math.isinf(ord):
        if ord > 0:
            return reduce.max(sizes, axis=axes, keepdims=keepdims, initial=0)
        return reduce.min(sizes, axis=axes, keepdims=keepdims)
    if ord == 0:
        return reduce.count_nonzero(sizes, axis=axes, keepdims=keepdims).astype(sizes.dtype)
    if ord == 1:
        return reduce.sum(sizes, axis=axes, keepdims=keepdims)
    return elementwise.pow(reduce.sum(elementwise.pow(sizes, float(ord)), axis=axes, keepdims=keepdims), 1 / ord)


def _of_matrices(x: GPUArray, ord: Any, axes: tuple[int, ...], keepdims: bool) -> GPUArray:
    if ord in ("fro", "f"):
        return reduce.norm(x, axis=axes, keepdims=keepdims)
    row, column = axes
    if ord in (2, -2, "nuc"):
        s = svdvals(moveaxis(x, axes, (-2, -1)))
        norms = (reduce.sum if ord == "nuc" else reduce.max if ord == 2 else reduce.min)(s, axis=-1)
    elif ord in (1, -1, math.inf, -math.inf):
        summed, other = (row, column) if ord in (1, -1) else (column, row)
        sums = reduce.sum(_magnitudes(x), axis=summed)
        norms = (reduce.max if ord > 0 else reduce.min)(sums, axis=other - (other > summed))
    else:
        raise InvalidSpecError(
            f'norm: ord is {ord!r}; of matrices it is "fro", "nuc", 1, 2, inf or their negatives', "ord"
        )
    if not keepdims:
        return norms
    return reshape(norms, tuple(1 if axis in axes else extent for axis, extent in enumerate(x.shape)))


def _magnitudes(x: GPUArray) -> GPUArray:
    from pygpukit.array.promotion import is_inexact

    return elementwise.abs(x if is_inexact(x.dtype) else x.astype("float64"))
