"""The factorizations of large matrices on the device: cuSOLVER's, a matrix after the other.

The same functions, with the same inputs and outputs, as in on_host.py. cuSOLVER takes matrices column after column, and
writes over them: it gets dense copies of the transposes.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.array import factory
from pygpukit.ops import copying, elementwise, reduce
from pygpukit.ops.elementwise.logic import isfinite, logical_and
from pygpukit.ops.elementwise.math import log, sign
from pygpukit.ops.indexing.triangles import tril
from pygpukit.ops.linalg.matrices import adjoint
from pygpukit.ops.linalg.solver import DATA_TYPES, LETTERS, Session, pointer, session
from pygpukit.ops.shape import diagonal

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

_LOWER, _PLAIN = ctypes.c_int(0), ctypes.c_int(0)  # CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N


def solve(a: GPUArray, b: GPUArray, x: GPUArray, info: GPUArray) -> None:
    """As on_host.solve()."""
    n, columns = b.shape[-2:]
    lu, right = _columns(a), _columns(b)
    pivots = factory.zeros(a.shape[:-1], "int64")
    again = native.empty(info.shape, info.dtype)
    with session([lu, right, pivots, info, again]) as calls:
        for i in _each(a):
            _factorize(calls, lu, pivots, info, i)
            matrix, vectors = pointer(lu, i, n * n), pointer(right, i, n * columns)
            arguments = (_type(a), matrix, n, pointer(pivots, i, n), _type(a), vectors, n, pointer(again, i, 1))
            calls.call("cusolverDnXgetrs", ctypes.c_void_p(), _PLAIN, n, columns, *arguments)
    _deliver(info, (right.mT, x))


def slogdet(a: GPUArray, sign: GPUArray, logabs: GPUArray) -> None:
    """As on_host.slogdet()."""
    n = a.shape[-1]
    lu, pivots, info = _columns(a), factory.zeros(a.shape[:-1], "int64"), native.empty(a.shape[:-2], "int32")
    with session([lu, pivots, info]) as calls:
        for i in _each(a):
            _factorize(calls, lu, pivots, info, i)
    on_diagonal = diagonal(lu, 0, -2, -1)
    moved = elementwise.sub(pivots, factory.arange(1, n + 1, dtype="int64")).astype("bool")
    turns = elementwise.where(moved, -1.0, 1.0).astype(a.dtype)
    copying.copy_to(reduce.prod(elementwise.mul(_signs(on_diagonal), turns), axis=-1), sign)
    copying.copy_to(reduce.sum(log(elementwise.abs(on_diagonal)), axis=-1), logabs)


def cholesky(a: GPUArray, lower: GPUArray, info: GPUArray) -> None:
    """As on_host.cholesky()."""
    n = a.shape[-1]
    work = _columns(a)
    with session([work, info]) as calls:
        for i in _each(a):
            sized = (_LOWER, n, _type(a), pointer(work, i, n * n), n, _type(a))
            calls.generic("potrf", pointer(info, i, 1), sized)
    _deliver(info, (tril(work.mT), lower))


def qr(a: GPUArray, h: GPUArray, tau: GPUArray, q: GPUArray | None) -> None:
    """As on_host.qr()."""
    (m, n), k = a.shape[-2:], min(a.shape[-2:])
    work, factors, info = _columns(a), native.empty(tau.shape, tau.dtype), native.empty((), "int32")
    square = None if q is None else factory.zeros((*q.shape[:-2], q.shape[-1], m), q.dtype)
    with session([work, factors, info]) as calls:
        for i in _each(a):
            sized = (m, n, _type(a), pointer(work, i, m * n), m, _type(a), pointer(factors, i, k), _type(a))
            calls.generic("geqrf", pointer(info), sized)
    copying.copy_to(work.mT, h)
    copying.copy_to(factors, tau)
    if q is None or square is None:
        return
    copying.copy_to(work[..., :k, :], square[..., :k, :])
    name = f"cusolverDn{LETTERS[a.dtype.name]}{'un' if a.dtype.name[0] == 'c' else 'or'}gqr"
    extents = [ctypes.c_int(extent) for extent in (m, q.shape[-1], k)]
    with session([square, factors, info]) as calls:
        for i in _each(a):
            step = ctypes.c_int(m)
            arguments = (*extents, pointer(square, i, m * q.shape[-1]), step, pointer(factors, i, k))
            length = ctypes.c_int()
            calls.call(f"{name}_bufferSize", *arguments, ctypes.byref(length))
            space = native.empty((max(length.value, 1),), a.dtype)
            calls.call(name, *arguments, pointer(space), length, pointer(info))
    copying.copy_to(square.mT, q)


def eigh(a: GPUArray, w: GPUArray, v: GPUArray | None, info: GPUArray) -> None:
    """As on_host.eigh()."""
    n = a.shape[-1]
    work, values = _columns(a), native.empty(w.shape, w.dtype)
    with session([work, values, info]) as calls:
        for i in _each(a):
            vectors = ctypes.c_int(v is not None)  # CUSOLVER_EIG_MODE_VECTOR
            sized = (
                vectors,
                _LOWER,
                n,
                _type(a),
                pointer(work, i, n * n),
                n,
                _type(w),
                pointer(values, i, n),
                _type(a),
            )
            calls.generic("syevd", pointer(info, i, 1), sized)
    _mark(info, values)
    _deliver(info, (values, w), *([] if v is None else [(work.mT, v)]))


def svd(a: GPUArray, u: GPUArray | None, s: GPUArray, vh: GPUArray | None, info: GPUArray) -> None:
    """As on_host.svd(). Of wide matrices it takes the adjoints: their factors are the others' adjoints."""
    if a.shape[-2] < a.shape[-1]:
        left = None if vh is None else native.empty((*vh.shape[:-2], vh.shape[-1], vh.shape[-2]), vh.dtype)
        right = None if u is None else native.empty((*u.shape[:-2], u.shape[-1], u.shape[-2]), u.dtype)
        svd(adjoint(a), left, s, right, info)
        if u is not None and vh is not None and left is not None and right is not None:
            copying.copy_to(adjoint(right), u)
            copying.copy_to(adjoint(left), vh)
        return
    m, n = a.shape[-2:]
    work, values, batch = _columns(a), native.empty(s.shape, s.dtype), a.shape[:-2]
    columns = 0 if u is None else u.shape[-1]
    first, second = native.empty((*batch, columns, m), a.dtype), native.empty((*batch, n if columns else 0, n), a.dtype)
    job = ctypes.c_byte(ord("N" if not columns else "A" if columns == m else "S"))
    with session([work, values, first, second, info]) as calls:
        for i in _each(a):
            matrices = (_type(a), pointer(work, i, m * n), m, _type(s), pointer(values, i, n), _type(a))
            factors = (pointer(first, i, m * columns), m, _type(a), pointer(second, i, n * n if columns else 0), n)
            calls.generic("gesvd", pointer(info, i, 1), (job, job, m, n, *matrices, *factors, _type(a)))
    _mark(info, values)
    _deliver(info, (values, s), *([] if u is None or vh is None else [(first.mT, u), (second.mT, vh)]))


def _factorize(calls: Session, lu: GPUArray, pivots: GPUArray, info: GPUArray, i: int) -> None:
    n = lu.shape[-1]
    sized = (n, n, _type(lu), pointer(lu, i, n * n), n, _type(lu))
    calls.generic("getrf", pointer(info, i, 1), sized, [(5, pointer(pivots, i, n))])


def _columns(a: GPUArray) -> GPUArray:
    """A dense copy that has each matrix column after column."""
    return copying.clone(a.mT)


def _each(a: GPUArray) -> Iterator[int]:
    yield from range(math.prod(a.shape[:-2]))


def _type(a: GPUArray) -> ctypes.c_int:
    return ctypes.c_int(DATA_TYPES[a.dtype.name])


def _signs(numbers: GPUArray) -> GPUArray:
    return sign(numbers)


def _mark(info: GPUArray, values: GPUArray) -> None:
    """Matrices with values that are not finite have no result, whatever the library says."""
    finite = reduce.all(isfinite(values), axis=-1)
    succeeded = logical_and(finite, elementwise.where(info.astype("bool"), False, True))
    copying.copy_to(elementwise.where(succeeded, 0, 1).astype(info.dtype), info)


def _deliver(info: GPUArray, *pairs: tuple[Any, GPUArray]) -> None:
    """Results into outputs, NaN where info is not zero."""
    failed = info.astype("bool")
    for result, out in pairs:
        mask = failed.reshape((*info.shape, *(1,) * (out.ndim - info.ndim)))
        copying.copy_to(elementwise.where(mask, math.nan, result), out)
