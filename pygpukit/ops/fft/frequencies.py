"""The frequencies that a transform's values belong to, and their order."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pygpukit.array import factory, layout
from pygpukit.core.device import current_device
from pygpukit.core.errors import ShapeError
from pygpukit.ops import copying
from pygpukit.ops.indexing import padding
from pygpukit.ops.operands import check_array

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DTypeLike


def fftfreq(n: int, d: float = 1.0, *, dtype: DTypeLike | None = None, device: int | None = None) -> GPUArray:
    """The frequencies of fft() of n samples, d apart, in cycles for each unit of d: [0, 1, ..., -2, -1] / (n d).

    dtype: float64 when left out. The values are made on the host and copied once. Raises ShapeError for n below 1.
    """
    return _frequencies("fftfreq", n, d, dtype, device)


def rfftfreq(n: int, d: float = 1.0, *, dtype: DTypeLike | None = None, device: int | None = None) -> GPUArray:
    """The frequencies of rfft() of n samples, d apart: [0, 1, ..., n // 2] / (n d). As fftfreq()."""
    return _frequencies("rfftfreq", n, d, dtype, device)


def fftshift(x: GPUArray, axes: int | Sequence[int] | None = None) -> GPUArray:
    """x with the zero frequency moved from the start to the middle of axes (all when left out). Raises ShapeError."""
    return _rolled("fftshift", check_array(x, "fftshift"), axes, 1)


def ifftshift(x: GPUArray, axes: int | Sequence[int] | None = None) -> GPUArray:
    """The inverse of fftshift(): the zero frequency moved back to the start. They differ in axes of odd extent."""
    return _rolled("ifftshift", check_array(x, "ifftshift"), axes, -1)


def _frequencies(name: str, n: int, d: float, dtype: DTypeLike | None, device: int | None) -> GPUArray:
    import numpy as np

    n = operator.index(n)
    if n < 1:
        raise ShapeError(f"{name}: n is {n}; it is the number of samples, at least 1")
    values: Any = getattr(np.fft, name)(n, d)
    with current_device(device):
        return factory.asarray(values, dtype)


def _rolled(what: str, x: GPUArray, axes: int | Sequence[int] | None, sign: int) -> GPUArray:
    axes_rolled = range(x.ndim) if axes is None else layout.integers(axes, f"{what}: axes")
    chosen = [layout.normalize_axis(axis, x.ndim, what) for axis in axes_rolled]
    return padding.roll(x, [sign * (x.shape[axis] // 2) for axis in chosen], chosen) if chosen else copying.clone(x)
