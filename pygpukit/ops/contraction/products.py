"""Products over several axes, from matmul and multiplication: tensordot, kron, trace, cross, by NumPy's rules.

Types promote as in matmul. Asynchronous on the current stream, the same bits on every run. Raise ShapeError naming the
shapes, DTypeError and DeviceMismatchError.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from pygpukit.array import layout
from pygpukit.core.errors import ShapeError
from pygpukit.ops import elementwise, reduce, shape
from pygpukit.ops.matmul.gemm import matmul
from pygpukit.ops.operands import check_array, check_devices, check_operand, is_array
from pygpukit.ops.shape import joining

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DTypeLike

    Axes = int | Sequence[int]

__all__ = ["cross", "kron", "tensordot", "trace"]


def tensordot(a: GPUArray, b: GPUArray, axes: int | tuple[Axes, Axes] = 2) -> GPUArray:
    """Sums over the last `axes` axes of a and the first of b, or over the pairs of named axes ((of a), (of b)).

    The result has the other axes of a, then those of b. axes=0 is the outer product.
    """
    a, b = check_array(a, "tensordot"), check_array(b, "tensordot")
    if not isinstance(axes, (tuple, list)):
        axes = layout.integer(axes, "tensordot: axes")
        if not 0 <= axes <= min(a.ndim, b.ndim):
            raise ShapeError(f"tensordot: {axes} axes of shapes {a.shape} and {b.shape} cannot be contracted")
        axes = tuple(range(a.ndim - axes, a.ndim)), tuple(range(axes))
    left, right = (
        [layout.normalize_axis(axis, array.ndim, "tensordot") for axis in layout.integers(own, "tensordot: axes")]
        for array, own in zip((a, b), axes, strict=True)
    )
    summed = tuple(a.shape[axis] for axis in left)
    if len(set(left)) != len(left) or len(set(right)) != len(right):
        raise ShapeError(f"tensordot: axes {axes} name an axis twice")
    if summed != tuple(b.shape[axis] for axis in right):
        raise ShapeError(
            f"tensordot: axes {axes} of shapes {a.shape} and {b.shape} differ; number and extents must be equal"
        )
    rows = [axis for axis in range(a.ndim) if axis not in left]
    columns = [axis for axis in range(b.ndim) if axis not in right]
    outer = tuple(a.shape[axis] for axis in rows), tuple(b.shape[axis] for axis in columns)
    first = shape.reshape(shape.transpose(a, (*rows, *left)), (prod(outer[0]), prod(summed)))
    second = shape.reshape(shape.transpose(b, (*right, *columns)), (prod(summed), prod(outer[1])))
    return shape.reshape(matmul(first, second), (*outer[0], *outer[1]))


def kron(a: Any, b: Any) -> GPUArray:
    """The Kronecker product: a copy of b, multiplied, for every element of a; the one of fewer axes gets some in front.

    With a number or a 0-d array the product.
    """
    a, b = check_operand(a, "kron"), check_operand(b, "kron")
    if not (is_array(a) and is_array(b)) or not a.ndim or not b.ndim:
        return elementwise.mul(a, b)
    check_devices("kron", a, b)
    ndim = max(a.ndim, b.ndim)
    first, second = ((1,) * (ndim - x.ndim) + x.shape for x in (a, b))
    wide = [shape.reshape(a, sum(((extent, 1) for extent in first), ()))]
    wide.append(shape.reshape(b, sum(((1, extent) for extent in second), ())))
    return shape.reshape(elementwise.mul(*wide), tuple(x * y for x, y in zip(first, second, strict=True)))


def trace(
    a: GPUArray,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike | None = None,
    out: GPUArray | None = None,
) -> GPUArray:
    """The sum of the diagonal of two axes, `offset` above the main one; dtype as sum()'s: 64 bits for integers."""
    a = check_array(a, "trace")
    if a.ndim < 2:
        raise ShapeError(f"trace: shape {a.shape} has fewer than 2 axes")
    return reduce.sum(shape.diagonal(a, offset, axis1, axis2), -1, dtype, out)


def cross(
    a: GPUArray, b: GPUArray, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> GPUArray:
    """Vector products: of vectors of 3 elements along axisa of a and axisb of b, which lie along axisc of the result.

    axis: all three. The other axes broadcast. A vector of 2 elements has 0 as its third; of two such the result is the
    third element alone (deprecated, as in NumPy, with its DeprecationWarning). Raises ShapeError for other lengths.
    """
    a, b = check_array(a, "cross"), check_array(b, "cross")
    check_devices("cross", a, b)
    if not a.ndim or not b.ndim:
        raise ShapeError(f"cross: shapes {a.shape} and {b.shape}: a 0-d array has no vectors")
    axisa, axisb, axisc = (axisa, axisb, axisc) if axis is None else (axis,) * 3
    a, b = shape.moveaxis(a, axisa, -1), shape.moveaxis(b, axisb, -1)
    lengths = a.shape[-1], b.shape[-1]
    if not {2, 3}.issuperset(lengths):
        raise ShapeError(f"cross: vectors of shapes {a.shape} and {b.shape} must be of 3 elements, not {lengths}")
    layout.broadcast_shapes(a.shape[:-1], b.shape[:-1], "cross")
    if 2 in lengths:
        message = "cross: vectors of 2 elements are deprecated; give all vectors 3 elements"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
    x, y = ([vectors[..., k] if k < vectors.shape[-1] else None for k in range(3)] for vectors in (a, b))
    third = _difference(x[0], y[1], x[1], y[0])
    if lengths == (2, 2):
        return third
    parts = [_difference(x[1], y[2], x[2], y[1]), _difference(x[2], y[0], x[0], y[2]), third]
    return joining.stack(parts, layout.normalize_axis(axisc, parts[0].ndim + 1, "cross"))


def _difference(a: GPUArray | None, b: GPUArray | None, c: GPUArray | None, d: GPUArray | None) -> GPUArray:
    """a b - c d, where None is 0."""
    if a is None or b is None:
        assert c is not None and d is not None
        return elementwise.neg(elementwise.mul(c, d))
    product = elementwise.mul(a, b)
    return product if c is None or d is None else elementwise.sub(product, elementwise.mul(c, d))
