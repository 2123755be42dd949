"""Magnitude, power and phase of complex spectrograms, and the magnitudes that features start from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.ops import copying, elementwise
from pygpukit.ops.audio.analysis import prepared, warn_of_short
from pygpukit.ops.audio.inputs import matrix, spectrum
from pygpukit.ops.audio.powers import squared, to_power
from pygpukit.ops.elementwise import math
from pygpukit.ops.operands import check_array

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.audio.windows import Window

__all__ = ["magnitude_spectrum", "magphase", "power_spectrum"]


def magphase(D: GPUArray, *, power: float = 1) -> tuple[GPUArray, GPUArray]:
    """(|D| to a power, D / |D|) of complex numbers of any shape, as librosa.magphase(); where D is 0 the phase is 1.

    Raises DTypeError for real numbers.
    """
    D = spectrum(D, "magphase: D")
    magnitude = elementwise.abs(D)
    zero = elementwise.as_type(elementwise.binary(elementwise.operations.EQ, magnitude, 0, None), magnitude.dtype)
    divisor = elementwise.add(magnitude, zero)
    phase = native.empty(D.shape, D.dtype)
    elementwise.add(elementwise.div(math.real(D), divisor), zero, out=math.real(phase))
    elementwise.div(math.imag(D), divisor, out=math.imag(phase))
    return to_power(magnitude, power), phase


def magnitude_spectrum(stft_output: GPUArray) -> GPUArray:
    """|D| of a complex spectrogram (..., bins, frames). Raises DTypeError, ShapeError."""
    return elementwise.abs(spectrum(stft_output, "magnitude_spectrum: stft_output"))


def power_spectrum(stft_output: GPUArray) -> GPUArray:
    """|D|^2 of a complex spectrogram (..., bins, frames). Raises DTypeError, ShapeError."""
    return squared(spectrum(stft_output, "power_spectrum: stft_output"))


def spectrogram(
    what: str,
    y: Any,
    S: Any,
    n_fft: int | None,
    hop_length: int | None = 512,
    power: float = 1,
    win_length: int | None = None,
    window: Window = "hann",
    center: bool = True,
    pad_mode: str = "constant",
) -> tuple[GPUArray, int]:
    """(S, its n_fft): what was given, or |stft(y)| to a power. Raises ValueError where neither was."""
    if S is not None:
        S = matrix(check_array(S, f"{what}: S"), f"{what}: S")
        if n_fft is None or n_fft // 2 + 1 != S.shape[-2]:
            n_fft = 2 * (S.shape[-2] - 1)
        return S, n_fft
    if y is None or n_fft is None:
        raise ValueError(f"{what}: give a signal y with n_fft, or a spectrogram S")
    analysis = prepared(y, n_fft, hop_length, win_length, window, center, pad_mode, what)
    warn_of_short(analysis, what)
    return analysis.sizes(power).swapaxes(-1, -2), n_fft


def frame_major(S: GPUArray) -> GPUArray:
    """(..., frames, bins) of a spectrogram, dense: a view where its memory has one frame after the other."""
    return copying.contiguous(S.swapaxes(-1, -2))
