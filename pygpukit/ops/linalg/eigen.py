"""Eigenvalues and eigenvectors of Hermitian matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.core.dtypes import int32
from pygpukit.core.errors import InvalidSpecError
from pygpukit.ops.linalg import failures
from pygpukit.ops.linalg.dispatch import backend
from pygpukit.ops.linalg.matrices import adjoint, real_type, square
from pygpukit.ops.linalg.results import EighResult

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray


def eigh(a: GPUArray, UPLO: str = "L") -> EighResult:
    """(eigenvalues, eigenvectors) of Hermitian matrices: real values in ascending order, (..., n), and orthonormal
    vectors in columns, (..., n, n).

    UPLO: the triangle of a that is read, "L" or "U"; InvalidSpecError for others. Raises LinAlgError where it holds NaN
    or infinities, for which it waits for the device. Signs of vectors are the backend's.
    """
    w, v = _eigh("eigh", a, UPLO, True)
    assert v is not None
    return EighResult(w, v)


def eigvalsh(a: GPUArray, UPLO: str = "L") -> GPUArray:
    """The eigenvalues of eigh() alone, which takes less time."""
    return _eigh("eigvalsh", a, UPLO, False)[0]


def _eigh(what: str, a: GPUArray, triangle: str, vectors: bool) -> tuple[GPUArray, GPUArray | None]:
    if triangle.upper() not in ("L", "U"):
        raise InvalidSpecError(f'{what}: UPLO is {triangle!r}; it is "L" or "U"', "UPLO")
    a = square(a, what)
    if triangle.upper() == "U":
        a = adjoint(a)
    w, info = native.empty(a.shape[:-1], real_type(a.dtype)), native.empty(a.shape[:-2], int32)
    v = native.empty(a.shape, a.dtype) if vectors else None
    if w.size:
        backend("eigh", a).eigh(a, w, v, info)
        failures.check(info, what, "has no eigenvalues", "look for NaN and infinities in it")
    return w, v
