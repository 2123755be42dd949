"""Systems of equations, inverses and determinants, by LU factorization with partial pivoting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.array import layout
from pygpukit.core.dtypes import int32
from pygpukit.core.errors import ShapeError
from pygpukit.ops import elementwise
from pygpukit.ops.elementwise.math import exp
from pygpukit.ops.linalg import failures
from pygpukit.ops.linalg.dispatch import backend
from pygpukit.ops.linalg.matrices import broadcast, computing, converted, real_type, square
from pygpukit.ops.linalg.results import SlogdetResult
from pygpukit.ops.operands import check_array, check_devices
from pygpukit.ops.shape.building import eye

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray


def solve(a: GPUArray, b: GPUArray) -> GPUArray:
    """x of a @ x = b. a: (..., n, n); b: (n,), a vector, or (..., n, k), columns. Shape as b, stacks broadcast.

    Raises LinAlgError for a singular matrix (a pivot is zero), for which it waits for the device.
    """
    a, b = square(a, "solve"), check_array(b, "solve")
    check_devices("solve", a, b)
    dtype = computing("solve", a, b)
    a, b = converted(a, dtype), converted(b, dtype)
    vector = b.ndim == 1
    columns = b[:, None] if vector else b
    if columns.ndim < 2 or columns.shape[-2] != a.shape[-1]:
        raise ShapeError(
            f"solve: b of shape {b.shape} does not fit matrices of shape {a.shape[-2:]}; "
            f"it is a vector of {a.shape[-1]}, or has {a.shape[-1]} rows"
        )
    x = _solved("solve", a, columns)
    return x[..., 0] if vector else x


def inv(a: GPUArray) -> GPUArray:
    """The inverse of each matrix. Raises LinAlgError as solve(), which is more exact and takes less time where it will
    do."""
    a = square(a, "inv")
    return _solved("inv", a, eye(a.shape[-1], dtype=a.dtype))


def det(a: GPUArray) -> GPUArray:
    """The determinant of each matrix, shape a.shape[:-2]; 1 of an empty one, 0 of a singular one. Does not wait."""
    sign, logabs = _slogdet("det", a)
    return elementwise.mul(sign, exp(logabs))


def slogdet(a: GPUArray) -> SlogdetResult:
    """(sign, logabsdet), both of shape a.shape[:-2]: the determinant is sign * exp(logabsdet); of a singular matrix
    they are 0 and -inf. sign is of a's type, of magnitude 1. Does not wait."""
    return _slogdet("slogdet", a)


def _solved(what: str, a: GPUArray, b: GPUArray) -> GPUArray:
    batch = layout.broadcast_shapes(a.shape[:-2], b.shape[:-2], what)
    a, b = broadcast(a, batch), broadcast(b, batch)
    x, info = native.empty(b.shape, b.dtype), native.empty(batch, int32)
    if x.size:
        backend("solve", a).solve(a, b, x, info)
        failures.check(info, what, "is singular", "use lstsq() or pinv() for such matrices")
    return x


def _slogdet(what: str, a: GPUArray) -> SlogdetResult:
    a = square(a, what)
    sign, logabs = native.empty(a.shape[:-2], a.dtype), native.empty(a.shape[:-2], real_type(a.dtype))
    if sign.size:
        backend("slogdet", a).slogdet(a, sign, logabs)
    return SlogdetResult(sign, logabs)
