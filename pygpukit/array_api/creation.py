"""The standard's creation functions. Floating-point types default to float64, unlike gp.zeros() and its relatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pygpukit.array import factory
from pygpukit.array.factory import from_dlpack as from_dlpack
from pygpukit.array_api._lookup import operation
from pygpukit.array_api.datatypes import DEFAULT_FLOAT
from pygpukit.core.device import DeviceLike, current_device
from pygpukit.core.dtypes import complex128

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DTypeLike


def asarray(
    obj: Any, /, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None, copy: bool | None = None
) -> GPUArray:
    """gp.asarray()."""
    return factory.asarray(obj, dtype, device=device, copy=copy)


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> GPUArray:
    """gp.arange()."""
    return factory.arange(start, stop, step, dtype, device=device)


def empty(shape: int | Sequence[int], *, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> GPUArray:
    """An array with undefined contents."""
    return factory.empty(shape, DEFAULT_FLOAT if dtype is None else dtype, device=device)


def zeros(shape: int | Sequence[int], *, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> GPUArray:
    """An array of zeros."""
    return factory.zeros(shape, DEFAULT_FLOAT if dtype is None else dtype, device=device)


def ones(shape: int | Sequence[int], *, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> GPUArray:
    """An array of ones."""
    return factory.ones(shape, DEFAULT_FLOAT if dtype is None else dtype, device=device)


def full(
    shape: int | Sequence[int], fill_value: Any, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> GPUArray:
    """An array with every element set to fill_value; the number's own kind decides the type."""
    return factory.full(shape, fill_value, dtype, device=device)


def empty_like(x: GPUArray, /, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> GPUArray:
    """empty() with the shape and, unless given, type and device of x."""
    return factory.empty_like(x, dtype, device=device)


def zeros_like(x: GPUArray, /, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> GPUArray:
    """zeros() with the shape and, unless given, type and device of x."""
    return factory.zeros_like(x, dtype, device=device)


def ones_like(x: GPUArray, /, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> GPUArray:
    """ones() with the shape and, unless given, type and device of x."""
    return factory.ones_like(x, dtype, device=device)


def full_like(
    x: GPUArray, /, fill_value: Any, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> GPUArray:
    """full() with the shape and, unless given, type and device of x."""
    return factory.full_like(x, fill_value, dtype, device=device)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> GPUArray:
    """Ones on the k-th diagonal, zeros elsewhere."""
    with current_device(device):
        return operation("eye")(n_rows, n_cols, k=k, dtype=DEFAULT_FLOAT if dtype is None else dtype)


def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    endpoint: bool = True,
) -> GPUArray:
    """num evenly spaced numbers from start to stop."""
    if dtype is None:
        dtype = complex128 if any(type(end) is complex for end in (start, stop)) else DEFAULT_FLOAT
    with current_device(device):
        return operation("linspace")(start, stop, num, endpoint=endpoint, dtype=dtype)
