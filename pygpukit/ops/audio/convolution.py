"""fftconvolve: convolution by transforms."""

from __future__ import annotations

from typing import Any

from pygpukit.array import layout
from pygpukit.core.errors import ShapeError
from pygpukit.ops import elementwise
from pygpukit.ops.audio.correlation import fast_length
from pygpukit.ops.audio.inputs import floats
from pygpukit.ops.audio.returned import like
from pygpukit.ops.fft import irfft, rfft
from pygpukit.ops.shape import moveaxis

__all__ = ["fftconvolve"]


def fftconvolve(in1: Any, in2: Any, mode: str = "full", axis: int = -1) -> Any:
    """The convolution of two real signals along one axis, other axes broadcast, as scipy.signal.fftconvolve(axes=axis).

    mode: "full"; "same", of in1's length, from the middle; "valid", where the shorter one lies within the other. Errors
    are relative to the largest output. The result has the wider type. Raises ValueError, ShapeError, DTypeError.
    """
    what = "fftconvolve"
    first, second = (floats(x, f"{what}: {name}") for x, name in ((in1, "in1"), (in2, "in2")))
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"{what}: mode {mode!r} is unknown; use 'full', 'same' or 'valid'")
    if first.ndim != second.ndim:
        raise ShapeError(f"{what}: in1 has shape {first.shape}, in2 {second.shape}; they must have as many axes")
    axis = layout.normalize_axis(axis, first.ndim, what)
    dtype = first.dtype if first.dtype.itemsize >= second.dtype.itemsize else second.dtype
    first, second = (elementwise.as_type(moveaxis(x, axis, -1), dtype) for x in (first, second))
    n, m = first.shape[-1], second.shape[-1]
    if not n or not m:
        raise ShapeError(f"{what}: axis {axis} of shapes {first.shape} and {second.shape} is empty")
    size = fast_length(n + m - 1)
    product = elementwise.mul(rfft(first, size), rfft(second, size))
    start, length = {"full": (0, n + m - 1), "same": ((m - 1) // 2, n), "valid": (min(n, m) - 1, abs(n - m) + 1)}[mode]
    return like(in1, moveaxis(irfft(product, size)[..., start : start + length], -1, axis))
