"""Operands of gp.linalg as every function asks for them: stacks of matrices, of a type that is computed with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.array import layout, promotion
from pygpukit.core.dtypes import DataType, bfloat16, complex64, complex128, float16, float32, float64
from pygpukit.core.errors import DTypeError
from pygpukit.ops import copying, elementwise
from pygpukit.ops.operands import check_array, check_devices

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

EPS = {"float32": 2.0**-23, "complex64": 2.0**-23, "float64": 2.0**-52, "complex128": 2.0**-52}


def stack(a: GPUArray, what: str) -> GPUArray:
    """a, which must have the two axes of a matrix at its end, in a type that is computed with."""
    a = check_array(a, what)
    check_devices(what, a)
    if a.ndim < 2:
        raise _refusal(f"{what}: an array of shape {a.shape} is no matrix; reshape it to at least two axes")
    return converted(a, computing(what, a))


def square(a: GPUArray, what: str) -> GPUArray:
    """stack(), of square matrices."""
    a = stack(a, what)
    if a.shape[-1] != a.shape[-2]:
        raise _refusal(f"{what}: matrices of shape {a.shape[-2:]} are not square; lstsq(), pinv() and svd() take them")
    return a


def _refusal(message: str) -> Exception:
    from pygpukit.ops.linalg.errors import MatrixShapeError  # NumPy's, too: only now

    return MatrixShapeError(message)


def computing(what: str, *arrays: GPUArray) -> DataType:
    """The type that arrays are computed in: single precision where all are, complex where one is; integers: double."""
    for array in arrays:
        if array.dtype in (float16, bfloat16):
            raise DTypeError(f"{what}: {array.dtype} is too short for this; convert with .astype('float32') first")
        promotion.promote(array.dtype, array.dtype)  # raises for types that only store
    single = all(array.dtype in (float32, complex64) for array in arrays)
    if any(array.dtype in promotion.COMPLEX for array in arrays):
        return complex64 if single else complex128
    return float32 if single else float64


def real_type(dtype: DataType) -> DataType:
    """The type of magnitudes of numbers of dtype."""
    return float32 if dtype in (float32, complex64) else float64


def converted(a: GPUArray, dtype: DataType) -> GPUArray:
    """a itself, or a copy in that type."""
    return a if a.dtype == dtype else copying.astype(a, dtype)


def broadcast(a: GPUArray, batch: layout.Shape) -> GPUArray:
    """A view of the matrices of a in a stack of that shape."""
    shape = (*batch, *a.shape[-2:])
    return native.view(a, shape, layout.broadcast_strides(a.shape, a.strides, shape), a.offset)


def adjoint(a: GPUArray) -> GPUArray:
    """The conjugate transpose of each matrix; of real ones a view."""
    transposed = a.swapaxes(-1, -2)
    return elementwise.conj(transposed) if a.dtype in promotion.COMPLEX else transposed
