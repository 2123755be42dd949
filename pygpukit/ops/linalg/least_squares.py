"""Ranks, pseudo-inverses and least squares: singular values decide them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit.array import factory
from pygpukit.core.dtypes import complex64, complex128, float32, float64, int64
from pygpukit.core.errors import InvalidSpecError, ShapeError
from pygpukit.ops import elementwise, reduce
from pygpukit.ops.elementwise.logic import greater
from pygpukit.ops.linalg.factors import svd
from pygpukit.ops.linalg.matrices import EPS, adjoint, computing, converted, stack
from pygpukit.ops.matmul import gemm
from pygpukit.ops.operands import check_array, check_devices, is_array

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

_UNSET: Any = type("_Unset", (), {"__repr__": lambda self: "<not given>"})()
_PINV_RCOND = 1e-15  # NumPy's


def matrix_rank(
    A: GPUArray,
    tol: Any = None,
    hermitian: bool = False,
    *,
    rtol: Any = None,
) -> GPUArray:
    """The number of singular values above tol, by default above rtol times the largest; int64, shape A.shape[:-2].

    rtol: by default max(m, n) times the type's epsilon; tol and rtol: numbers or arrays of the result's shape. Of fewer
    than two axes: whether an element is not zero. Raises InvalidSpecError for both, LinAlgError as svd().
    """
    if tol is not None and rtol is not None:
        raise InvalidSpecError("matrix_rank: tol and rtol are both given; leave one of them out", "tol")
    if check_array(A, "matrix_rank").ndim < 2:
        return reduce.any(A).astype(int64)
    a = stack(A, "matrix_rank")
    if not min(a.shape[-2:]):
        return factory.zeros(a.shape[:-2], int64)
    s = _values(a, hermitian)
    if tol is None:
        tol = elementwise.mul(_last(_relative(a) if rtol is None else rtol), reduce.max(s, axis=-1, keepdims=True))
    else:
        tol = _last(tol)
    return reduce.count_nonzero(greater(s, tol), axis=-1)


def pinv(a: GPUArray, rcond: Any = None, hermitian: bool = False, *, rtol: Any = _UNSET) -> GPUArray:
    """The Moore-Penrose pseudo-inverse of each matrix, (..., n, m) of (..., m, n), from singular values.

    Those at most rcond (or rtol) times the largest count as zero: 1e-15 where neither is given, max(m, n) times the
    type's epsilon for rtol=None, as in NumPy. hermitian: a is. Raises InvalidSpecError for both, LinAlgError as svd().
    """
    if rcond is not None and rtol is not _UNSET:
        raise InvalidSpecError("pinv: rcond and rtol are both given; leave one of them out", "rcond")
    a = stack(a, "pinv")
    if rcond is None:
        rcond = _PINV_RCOND if rtol is _UNSET else _relative(a) if rtol is None else rtol
    if not a.size:
        return factory.zeros((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype)
    u, s, vh = _whole(svd(a, full_matrices=False, hermitian=hermitian))
    inverse = _inverses(s, _last(rcond))[0]
    return gemm.matmul(adjoint(vh), elementwise.mul(inverse[..., None], adjoint(u)))


def lstsq(a: GPUArray, b: GPUArray, rcond: float | None = None) -> tuple[GPUArray, GPUArray, int, GPUArray]:
    """(x, residuals, rank, s): x of the least norm with the least |a @ x - b|. a: (m, n); b: (m,) or (m, k).

    residuals: the sums of squares |a @ x - b|^2, shape (k,), (1,) of a vector; (0,) where m <= n or the rank is below
    n. rank: of a, an int. s: its singular values; those at most rcond times the largest count as zero: None: max(m, n)
    times the operands' epsilon, negative: half of float64's. Computed in double precision, as NumPy does, from the
    singular value decomposition, and delivered in the operands' type. Waits. Raises LinAlgError as svd().
    """
    a, b = stack(a, "lstsq"), check_array(b, "lstsq")
    check_devices("lstsq", a, b)
    if a.ndim != 2 or b.ndim not in (1, 2) or b.shape[0] != a.shape[0]:
        raise ShapeError(
            f"lstsq: shapes {a.shape} and {b.shape} do not fit: a is (m, n), b is (m,) or (m, k); "
            "call it for each matrix of a stack, or multiply by pinv()"
        )
    delivered = computing("lstsq", a, b)
    dtype = complex128 if delivered in (complex64, complex128) else float64
    a, columns = converted(a, dtype), converted(b if b.ndim == 2 else b[:, None], dtype)
    (m, n), vector = a.shape, b.ndim == 1
    if rcond is None:
        rcond = max(m, n) * EPS[delivered.name]
    elif rcond < 0:
        rcond = EPS[dtype.name] / 2  # LAPACK's: the largest relative error of a rounding
    u, s, vh = _whole(svd(a, full_matrices=False))
    if a.size:
        inverse, kept = _inverses(s, rcond)
        x = gemm.matmul(adjoint(vh), elementwise.mul(inverse[:, None], gemm.matmul(adjoint(u), columns)))
        rank = int(reduce.count_nonzero(kept).item())
    else:
        x, rank = factory.zeros((n, columns.shape[1]), dtype), 0
    if m > n and rank == n:
        residuals = elementwise.square(reduce.norm(elementwise.sub(columns, gemm.matmul(a, x)), axis=0))
    else:
        residuals = factory.empty((0,), s.dtype)
    real = float32 if delivered in (float32, complex64) else float64
    x = converted(x, delivered)
    return (x[:, 0] if vector else x), converted(residuals, real), rank, converted(s, real)


def _inverses(s: GPUArray, rcond: Any) -> tuple[GPUArray, GPUArray]:
    """1 / s where s is above rcond times the largest, else 0; and where that is."""
    kept = greater(s, elementwise.mul(reduce.max(s, axis=-1, keepdims=True), rcond))
    return elementwise.where(kept, elementwise.div(1.0, elementwise.where(kept, s, 1.0)), 0.0), kept


def _values(a: GPUArray, hermitian: bool) -> GPUArray:
    values: Any = svd(a, compute_uv=False, hermitian=hermitian)
    return values


def _whole(result: Any) -> tuple[GPUArray, GPUArray, GPUArray]:
    u, s, vh = result
    return u, s, vh


def _relative(a: GPUArray) -> float:
    return max(a.shape[-2:]) * EPS[a.dtype.name]


def _last(tolerance: Any) -> Any:
    """A tolerance for each matrix, beside its singular values."""
    return tolerance[..., None] if is_array(tolerance) and tolerance.ndim else tolerance
