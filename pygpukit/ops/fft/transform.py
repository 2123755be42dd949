"""The frame of every transform along one axis: checks, types, output, and where it is computed."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.array import layout, promotion
from pygpukit.core.dtypes import (
    STORAGE_ONLY,
    DataType,
    bfloat16,
    complex64,
    complex128,
    float16,
    float32,
    float64,
)
from pygpukit.core.errors import DTypeError, InvalidSpecError, ShapeError
from pygpukit.ops import copying, host
from pygpukit.ops.fft import device
from pygpukit.ops.operands import check_array, check_devices, check_out, overlaps

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

NORMS = ("backward", "ortho", "forward")


def transform(
    name: str,
    a: GPUArray,
    n: int | None,
    axis: int,
    norm: str | None,
    out: GPUArray | None,
    what: str = "",
) -> GPUArray:
    """The transform with NumPy's name, "fft", "ifft", "rfft" or "irfft". what: the function that errors name."""
    what = what or name
    a = check_array(a, what)
    check_devices(what, a)
    norm = checked_norm(norm, what)
    dtype, result = _computing(name, a.dtype, what), result_dtype(name, a.dtype, what)
    axis = layout.normalize_axis(axis, a.ndim, what)
    n = _length(name, a.shape[axis], n, what)
    extent = n // 2 + 1 if name == "rfft" else n
    shape = (*a.shape[:axis], extent, *a.shape[axis + 1 :])
    target = out if out is None else check_out(out, shape, result, what)
    if a.dtype != dtype:
        a = copying.astype(a, dtype)
    if target is None or target.dtype != result or overlaps(a, target):
        target = native.empty(shape, result)
    if not a.size:  # nothing but the zeros that fill it up
        copying.fill(target, 0)
    elif host.computes():
        native.host_launch(what, lambda: _on_host(name, a, n, axis, norm, target), [a, target])
    else:
        device.transform(name, a, n, axis, _factor(name, n, norm), target)
    if out is not None and target is not out:
        copying.copy_to(target, out)
        return out
    return target


def result_dtype(name: str, dtype: DataType, what: str) -> DataType:
    """The type of the result of a transform of elements of dtype. Raises DTypeError for types that it does not take."""
    computing = _computing(name, dtype, what)
    single = computing in (float32, complex64)
    if name == "irfft":
        return float32 if single else float64
    return complex64 if single else complex128


def checked_norm(norm: str | None, what: str) -> str:
    """norm, "backward" for None. Raises InvalidSpecError for an unknown one."""
    if norm is None:
        return "backward"
    if norm not in NORMS:
        raise InvalidSpecError(f"{what}: norm is {norm!r}; it is one of {', '.join(NORMS)}, or None", "norm")
    return norm


def _computing(name: str, dtype: DataType, what: str) -> DataType:
    """The type that elements are converted to: of two precisions, real or complex as they are."""
    if dtype in STORAGE_ONLY:
        raise DTypeError(f"{what}: {dtype} is a storage type without arithmetic; convert to a float type first")
    if dtype in promotion.COMPLEX:
        if name == "rfft":
            raise DTypeError(f"{what}: takes real numbers, the array is {dtype}; use fft() or the array's .real")
        return dtype
    single = dtype in (float16, bfloat16, float32)
    if name == "irfft":  # its input is a spectrum
        return complex64 if single else complex128
    return float32 if single else float64


def _length(name: str, extent: int, n: int | None, what: str) -> int:
    if n is None:
        n = 2 * (extent - 1) if name == "irfft" else extent
        extents = f"an axis of {extent} elements gives a transform of {n}"
    else:
        n = operator.index(n)
        extents = f"n is {n}"
    if n < 1:
        raise ShapeError(f"{what}: {extents}; a transform has at least 1 element, give n")
    return n


def _factor(name: str, n: int, norm: str) -> float:
    """The factor that the plain sum is multiplied with."""
    if norm == "ortho":
        return float(1 / n**0.5)
    return 1 / n if (norm == "backward") == name.startswith("i") else 1.0


def _on_host(name: str, a: GPUArray, n: int, axis: int, norm: str, out: GPUArray) -> None:
    import numpy as np

    with np.errstate(all="ignore"):
        host.store(out, getattr(np.fft, name)(host.values(a), n, axis, norm))
