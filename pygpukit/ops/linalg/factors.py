"""Cholesky, QR and singular value decompositions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.core.dtypes import int32
from pygpukit.core.errors import InvalidSpecError
from pygpukit.ops import elementwise, sorting
from pygpukit.ops.elementwise import logic
from pygpukit.ops.indexing import take_along_axis
from pygpukit.ops.indexing.triangles import triu
from pygpukit.ops.linalg import failures
from pygpukit.ops.linalg.dispatch import backend
from pygpukit.ops.linalg.eigen import eigh, eigvalsh
from pygpukit.ops.linalg.matrices import adjoint, real_type, square, stack
from pygpukit.ops.linalg.results import QRResult, SVDResult

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

MODES = ("reduced", "complete", "r", "raw")


def cholesky(a: GPUArray, /, *, upper: bool = False) -> GPUArray:
    """Lower triangular L with L @ L' = a, of Hermitian positive definite matrices; upper: U with U' @ U = a.

    Only that triangle of a is read. Raises LinAlgError for a matrix that is not positive definite, for which it waits
    for the device.
    """
    a = square(a, "cholesky")
    if upper:
        a = adjoint(a)
    lower, info = native.empty(a.shape, a.dtype), native.empty(a.shape[:-2], int32)
    if lower.size:
        backend("cholesky", a).cholesky(a, lower, info)
        failures.check(info, "cholesky", "is not positive definite", "eigh() takes any Hermitian matrix, solve() any")
    return adjoint(lower) if upper else lower


def qr(a: GPUArray, mode: str = "reduced") -> QRResult | GPUArray | tuple[GPUArray, GPUArray]:
    """a = Q @ R by Householder's reflections, R upper triangular, the columns of Q orthonormal. a: (..., m, n).

    mode: "reduced": Q (..., m, k), R (..., k, n), k = min(m, n); "complete": (..., m, m) and (..., m, n); "r": R alone;
    "raw": (h, tau) as LAPACK's geqrf has them, h transposed, (..., n, m). Raises InvalidSpecError for others. Does not
    wait.
    """
    if mode not in MODES:
        raise InvalidSpecError(f"qr: mode is {mode!r}; it is one of {', '.join(MODES)}", "mode")
    a = stack(a, "qr")
    *batch, m, n = a.shape
    k = min(m, n)
    h, tau = native.empty(a.shape, a.dtype), native.empty((*batch, k), a.dtype)
    columns = {"reduced": k, "complete": m}.get(mode)
    q = None if columns is None else native.empty((*batch, m, columns), a.dtype)
    if h.size or (q is not None and q.size):
        backend("qr", a).qr(a, h, tau, q)
    if mode == "raw":
        return h.swapaxes(-1, -2), tau
    if q is None:
        return triu(h[..., :k, :])
    return QRResult(q, triu(h[..., : q.shape[-1], :]))


def svd(
    a: GPUArray, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> SVDResult | GPUArray:
    """a = U @ diag(S) @ Vh, S in descending order and real, U and Vh unitary. a: (..., m, n), S: (..., min(m, n)).

    full_matrices: U (..., m, m) and Vh (..., n, n), else as many columns and rows as S has. compute_uv=False: S alone.
    hermitian: a is, which takes less time. Signs of vectors are the backend's. Raises LinAlgError where a matrix has
    NaN or infinities, for which it waits for the device.
    """
    if hermitian:
        return _hermitian_svd(a, compute_uv)
    a = stack(a, "svd")
    *batch, m, n = a.shape
    k = min(m, n)
    s, info = native.empty((*batch, k), real_type(a.dtype)), native.empty(batch, int32)
    u = native.empty((*batch, m, m if full_matrices else k), a.dtype) if compute_uv else None
    vh = native.empty((*batch, n if full_matrices else k, n), a.dtype) if compute_uv else None
    if any(x is not None and x.size for x in (u, s, vh)):
        backend("svd", a).svd(a, u, s, vh, info)
        failures.check(info, "svd", "has no singular values", "look for NaN and infinities in it")
    return s if u is None or vh is None else SVDResult(u, s, vh)


def svdvals(x: GPUArray, /) -> GPUArray:
    """The singular values of each matrix in descending order: svd(x, compute_uv=False)."""
    values: Any = svd(x, compute_uv=False)
    return values


def _hermitian_svd(a: GPUArray, compute_uv: bool) -> SVDResult | GPUArray:
    if not compute_uv:
        return sorting.sort(elementwise.abs(eigvalsh(a)), descending=True)
    w, v = eigh(a)
    order = sorting.argsort(elementwise.abs(w), descending=True)
    w = take_along_axis(w, order, -1)
    u = take_along_axis(v, order[..., None, :], -1)
    signs = elementwise.where(logic.signbit(w), -1.0, 1.0).astype(w.dtype)
    return SVDResult(u, elementwise.abs(w), adjoint(elementwise.mul(u, signs[..., None, :])))
