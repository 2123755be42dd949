"""autocorrelate: how much a signal is like itself, shifted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit.array import layout
from pygpukit.core.errors import ShapeError
from pygpukit.ops import elementwise
from pygpukit.ops.audio.inputs import floats, positive
from pygpukit.ops.elementwise.math import imag, real
from pygpukit.ops.fft import irfft, rfft
from pygpukit.ops.shape import moveaxis

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["autocorrelate"]


def autocorrelate(y: Any, *, max_size: int | None = None, axis: int = -1) -> GPUArray:
    """The autocorrelation along an axis, lags 0 to max_size - 1 (all by default), as librosa.autocorrelate().

    y: real. out[k] = sum of y[n] * y[n + k], by transforms of 5-smooth length, so that errors are relative to lag 0.
    NaN makes the whole line NaN. Raises ShapeError (no samples, no such axis), DTypeError, ValueError. Deterministic.
    """
    what = "autocorrelate"
    y = floats(y, f"{what}: y")
    axis = layout.normalize_axis(axis, y.ndim, what)
    length = y.shape[axis]
    if not length:
        raise ShapeError(f"{what}: axis {axis} of shape {y.shape} is empty")
    size = length if max_size is None else min(positive(max_size, "max_size", what), length)
    spectrum = rfft(moveaxis(y, axis, -1), fast_length(length + size - 1))
    power = elementwise.add(elementwise.square(real(spectrum)), elementwise.square(imag(spectrum)))
    return moveaxis(irfft(power, fast_length(length + size - 1))[..., :size], -1, axis)


def fast_length(min_length: int) -> int:
    """The smallest length of at least so many samples whose only prime factors are 2, 3 and 5."""
    best = 1 << (min_length - 1).bit_length()
    five = 1
    while five < best:
        three = five
        while three < best:
            rest = -(-min_length // three)
            best = min(best, three << (rest - 1).bit_length())
            three *= 3
        five *= 5
    return best
