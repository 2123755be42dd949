"""The factorizations of small matrices on the device: kernels that have one in the shared memory of each block.

The same functions, with the same inputs and outputs, as in on_host.py. Sums and rotations are in an order that the
matrix's shape fixes. Source of the methods: Golub and Van Loan, "Matrix Computations": LU with partial pivoting,
Cholesky, Householder QR, Jacobi's methods for Hermitian matrices and, of Hestenes, for singular values.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit.array import layout
from pygpukit.ops.elementwise.pointwise import CTYPES, packed_layout
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.kernels import KernelSpec

LU, CHOLESKY, QR, EIGH, SVD = (
    kernels.KernelSpec(__file__, f"{name}.cu", options=kernels.SAME_BITS)
    for name in ("lu", "cholesky", "qr", "eigh", "svd")
)
_STACK = LU.structure("Stack")
_LU_CALL, _CHOLESKY_CALL = LU.structure("LuCall"), CHOLESKY.structure("CholeskyCall")
_QR_CALL, _EIGH_CALL, _SVD_CALL = QR.structure("QrCall"), EIGH.structure("EighCall"), SVD.structure("SvdCall")
TYPES = ("float32", "float64", "complex64", "complex128")
LONGEST = 64  # rows and columns
_BYTES = 96 * 1024  # of shared memory, which every device from SM 8.0 on has
_TOGETHER = 16  # right-hand sides in shared memory at a time
_SWEEPS = 40  # of rotations; a dozen are enough, even in double precision
_WORDS = 16 * 8  # bytes beside matrices: scratch of four warps, and what alignment takes


def fits(what: str, a: GPUArray) -> bool:
    """True where the kernel of that function holds such matrices."""
    m, n = a.shape[-2:]
    if max(m, n) > LONGEST:
        return False
    matrix = max(m, n) * (max(m, n) | 1) * a.itemsize
    return {"solve": 1.3, "eigh": 2, "svd": 2}.get(what, 1) * matrix + LONGEST * 40 + _WORDS <= _BYTES


def solve(a: GPUArray, b: GPUArray, x: GPUArray, info: GPUArray) -> None:
    """As on_host.solve()."""
    n, columns = b.shape[-2:]
    together = min(columns, _TOGETHER)
    (first, left), (second, right) = _stack(a), _stack(b)
    call = _LU_CALL.pack(a=left, b=right, n=n, columns=columns, together=together)
    shared = (n * (n | 1) + n * together) * a.itemsize + 4 * n
    _launch(LU, "lu_solve", a, shared, first, second, x, info, call)


def slogdet(a: GPUArray, sign: GPUArray, logabs: GPUArray) -> None:
    """As on_host.slogdet()."""
    n = a.shape[-1]
    source, packed = _stack(a)
    call = _LU_CALL.pack(a=packed, b=packed, n=n, columns=0, together=0)
    _launch(LU, "lu_slogdet", a, n * (n | 1) * a.itemsize + 4 * n, source, sign, logabs, call)


def cholesky(a: GPUArray, lower: GPUArray, info: GPUArray) -> None:
    """As on_host.cholesky()."""
    n = a.shape[-1]
    source, packed = _stack(a)
    call = _CHOLESKY_CALL.pack(a=packed, n=n)
    _launch(CHOLESKY, "cholesky", a, n * (n | 1) * a.itemsize, source, lower, info, call)


def qr(a: GPUArray, h: GPUArray, tau: GPUArray, q: GPUArray | None) -> None:
    """As on_host.qr()."""
    m, n = a.shape[-2:]
    source, packed = _stack(a)
    call = _QR_CALL.pack(a=packed, m=m, n=n, columns=0 if q is None else q.shape[-1])
    shared = (m * (n | 1) + min(m, n)) * a.itemsize + _WORDS
    _launch(QR, "qr", a, shared, source, h, tau, h if q is None else q, call)


def eigh(a: GPUArray, w: GPUArray, v: GPUArray | None, info: GPUArray) -> None:
    """As on_host.eigh()."""
    n = a.shape[-1]
    source, packed = _stack(a)
    call = _EIGH_CALL.pack(a=packed, n=n, vectors=v is not None, sweeps=_SWEEPS)
    shared = n * (n | 1) * a.itemsize * (1 if v is None else 2) + n * 20 + _WORDS
    _launch(EIGH, "eigh", a, shared, source, w, info if v is None else v, info, call)


def svd(a: GPUArray, u: GPUArray | None, s: GPUArray, vh: GPUArray | None, info: GPUArray) -> None:
    """As on_host.svd()."""
    (m, n), is_wide = sorted(a.shape[-2:], reverse=True), a.shape[-2] < a.shape[-1]
    columns = 0
    if u is not None and vh is not None:
        columns = vh.shape[-2] if is_wide else u.shape[-1]
    source, packed = _stack(a)
    call = _SVD_CALL.pack(a=packed, m=m, n=n, is_adjoint=is_wide, columns=columns, sweeps=_SWEEPS)
    wide = max(columns, n)
    shared = (wide * (m | 1) + (n * (n | 1) if columns else 0)) * a.itemsize + wide * 12 + _WORDS
    _launch(SVD, "svd", a, shared, source, s if u is None else u, s, s if vh is None else vh, info, call)


def _expressions(*names: str) -> Iterator[tuple[str, ...]]:
    for dtype in TYPES:
        yield tuple(f"pk::{name}<{CTYPES[dtype]}>" for name in names)


@LU.lists
def _lu() -> Iterator[tuple[str, ...]]:
    return _expressions("lu_solve", "lu_slogdet")


@CHOLESKY.lists
def _cholesky() -> Iterator[tuple[str, ...]]:
    return _expressions("cholesky")


@QR.lists
def _qr() -> Iterator[tuple[str, ...]]:
    return _expressions("qr")


@EIGH.lists
def _eigh() -> Iterator[tuple[str, ...]]:
    return _expressions("eigh")


@SVD.lists
def _svd() -> Iterator[tuple[str, ...]]:
    return _expressions("svd")


def _stack(a: GPUArray) -> tuple[GPUArray, bytes]:
    """The storage of stacked matrices, and matrices.cuh's Stack of them."""
    source, start = span(a)
    extents, strides = layout.collapse(a.shape[:-2], [a.strides[:-2]])
    steps = [[step // a.itemsize for step in own] for own in strides]
    row, column = (step // a.itemsize for step in a.strides[-2:])
    batch = packed_layout(prod(a.shape[:-2]), extents, (start,), steps)
    return source, _STACK.pack(batch=batch, row=row, column=column)


def _launch(source: KernelSpec, name: str, a: GPUArray, shared: int, *args: GPUArray | bytes) -> None:
    """A block for each matrix of a: a warp for the smallest, four for others. Shared memory comes in few sizes: each is
    a kernel of its own to those who launch."""
    threads = 32 if max(a.shape[-2:]) <= 8 else 128
    size = min(max(1024, 1 << (shared - 1).bit_length()), _BYTES)
    spec = source.of(f"pk::{name}<{CTYPES[a.dtype.name]}>", shared_bytes=size)
    kernels.launch(spec, (prod(a.shape[:-2]), 1, 1), (threads, 1, 1), *args)
