"""Products and powers of matrices, and what is read off them. Asynchronous on the current stream."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pygpukit.array import layout
from pygpukit.core.errors import InvalidSpecError, ShapeError
from pygpukit.ops import elementwise, reduce, shape
from pygpukit.ops.contraction import products as contraction
from pygpukit.ops.linalg.solving import inv
from pygpukit.ops.matmul import gemm, products
from pygpukit.ops.operands import check_array, check_devices
from pygpukit.ops.shape import building

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DTypeLike


def matrix_power(a: GPUArray, n: int) -> GPUArray:
    """Each matrix to the power of an int, by repeated squaring; 0: the identity, negative: of inv(a), whose errors it
    raises. Integers wrap."""
    a, n = _matrices(a, "matrix_power"), operator.index(n)
    if a.shape[-1] != a.shape[-2]:
        from pygpukit.ops.linalg.errors import MatrixShapeError

        raise MatrixShapeError(f"matrix_power: matrices of shape {a.shape[-2:]} are not square")
    if n == 0:
        return shape.broadcast_to(building.eye(a.shape[-1], dtype=a.dtype), a.shape).clone()
    if n < 0:
        a, n = inv(a), -n
    power: GPUArray | None = None
    while n:
        if n & 1:
            power = a if power is None else gemm.matmul(power, a)
        n >>= 1
        if n:
            a = gemm.matmul(a, a)
    assert power is not None
    return power


def multi_dot(arrays: Sequence[GPUArray], *, out: GPUArray | None = None) -> GPUArray:
    """The product of two or more matrices in the order of the fewest multiplications. The first may be a row vector,
    the last a column vector, each of one axis. Raises InvalidSpecError for fewer than two, ShapeError.
    """
    if len(arrays) < 2:
        raise InvalidSpecError(f"multi_dot: {len(arrays)} arrays are given; it takes at least two", "arrays")
    operands = [check_array(a, "multi_dot") for a in arrays]
    check_devices("multi_dot", *operands)
    last = len(operands) - 1
    for i, a in enumerate(operands):
        if a.ndim != 2 and not (a.ndim == 1 and i in (0, last)):
            raise ShapeError(f"multi_dot: array {i} has shape {a.shape}; it is no matrix, nor a vector at an end")
    rows = operands[0].shape[0] if operands[0].ndim == 2 else 1
    extents = [rows, *(a.shape[-1] if a.ndim == 2 or not i else 1 for i, a in enumerate(operands))]
    for i, a in enumerate(operands[1:], 1):
        if a.shape[0] != operands[i - 1].shape[-1]:
            raise ShapeError(
                f"multi_dot: shapes {operands[i - 1].shape} and {a.shape} of arrays {i - 1} and {i} differ"
            )
    cuts = _cheapest(extents)

    def product(first: int, end: int) -> GPUArray:
        if first == end:
            return operands[first]
        cut = cuts[first, end]
        whole = first == 0 and end == last
        return gemm.matmul(product(first, cut), product(cut + 1, end), out=out if whole else None)

    return product(0, last)


def trace(x: GPUArray, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> GPUArray:
    """The sum of the offset-th diagonal of each matrix; small integers add up in 64 bits. dtype: as sum() takes it."""
    return reduce.sum(diagonal(_matrices(x, "trace"), offset=offset), axis=-1, dtype=dtype)


def diagonal(x: GPUArray, /, *, offset: int = 0) -> GPUArray:
    """A view of the offset-th diagonal of each matrix."""
    return shape.diagonal(_matrices(x, "diagonal"), offset, -2, -1)


def matrix_transpose(x: GPUArray, /) -> GPUArray:
    """A view with the last two axes exchanged."""
    return shape.matrix_transpose(_matrices(x, "matrix_transpose"))


def cross(x1: GPUArray, x2: GPUArray, /, *, axis: int = -1) -> GPUArray:
    """Cross products of the vectors of three elements along an axis; the other axes broadcast. Raises ShapeError."""
    x1, x2 = check_array(x1, "cross"), check_array(x2, "cross")
    for x in (x1, x2):
        if x.shape[layout.normalize_axis(axis, x.ndim, "cross")] != 3:
            raise ShapeError(f"cross: axis {axis} of shapes {x1.shape} and {x2.shape} must have 3 elements in both")
    return contraction.cross(x1, x2, axis=axis)


def outer(x1: GPUArray, x2: GPUArray, /) -> GPUArray:
    """Products of every element of x1 with every one of x2, both of one axis. Raises ShapeError for others."""
    for x in (check_array(x1, "outer"), check_array(x2, "outer")):
        if x.ndim != 1:
            raise ShapeError(f"outer: an array of shape {x.shape} is no vector; gp.outer() takes any shape")
    return products.outer(x1, x2)


def tensordot(x1: GPUArray, x2: GPUArray, /, *, axes: int | tuple[Any, Any] = 2) -> GPUArray:
    """gp.tensordot(): sums over the last `axes` axes of x1 and the first of x2, or over pairs of named axes."""
    return contraction.tensordot(x1, x2, axes)


def vecdot(x1: GPUArray, x2: GPUArray, /, *, axis: int = -1) -> GPUArray:
    """Dot products along an axis, x1 conjugated; the other axes broadcast. Raises ShapeError."""
    x1, x2 = check_array(x1, "vecdot"), check_array(x2, "vecdot")
    left, right = (shape.moveaxis(x, layout.normalize_axis(axis, x.ndim, "vecdot"), -1) for x in (x1, x2))
    if left.shape[-1] != right.shape[-1]:
        raise ShapeError(f"vecdot: shapes {x1.shape} and {x2.shape} differ along axis {axis}")
    a, b = shape.broadcast_arrays(elementwise.conj(left), right)
    return gemm.matmul(a[..., None, :], b[..., :, None])[..., 0, 0]


def _matrices(x: Any, what: str) -> GPUArray:
    x = check_array(x, what)
    if x.ndim < 2:
        from pygpukit.ops.linalg.errors import MatrixShapeError

        raise MatrixShapeError(f"{what}: an array of shape {x.shape} is no matrix; reshape it to at least two axes")
    return x


def _cheapest(extents: Sequence[int]) -> dict[tuple[int, int], int]:
    """Where to cut each product of matrices i to k: matrix i is extents[i] by extents[i + 1]."""
    count = len(extents) - 1
    costs = {(i, i): 0 for i in range(count)}
    cuts: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for i in range(count - length):
            k = i + length
            options = {
                cut: costs[i, cut] + costs[cut + 1, k] + extents[i] * extents[cut + 1] * extents[k + 1]
                for cut in range(i, k)
            }
            cuts[i, k] = min(options, key=lambda cut: options[cut])
            costs[i, k] = options[cuts[i, k]]
    return cuts
