"""Magnitude, power and phase of complex spectrograms, and the magnitudes that features start from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.array import promotion
from pygpukit.ops import copying, elementwise
from pygpukit.ops.audio.inputs import magnitude_of, matrix, spectrum
from pygpukit.ops.audio.stft import stft
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


def squared(D: GPUArray) -> GPUArray:
    """|D|^2, without the root in between."""
    if D.dtype not in promotion.COMPLEX:
        return elementwise.mul(D, D)
    re, im = math.real(D), math.imag(D)
    return elementwise.add(elementwise.mul(re, re), elementwise.mul(im, im))


def to_power(magnitude: GPUArray, power: float) -> GPUArray:
    """magnitude ** power; of power 1 itself."""
    if power == 1:
        return magnitude
    return elementwise.mul(magnitude, magnitude) if power == 2 else elementwise.power(magnitude, power)


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
    D = stft(
        y,
        n_fft=n_fft,
        hop_length=hop_length,
        win_length=win_length,
        window=window,
        center=center,
        pad_mode=pad_mode,
    )
    return (squared(D) if power == 2 else to_power(magnitude_of(D), power)), n_fft


def frame_major(S: GPUArray) -> GPUArray:
    """(..., frames, bins) of a spectrogram, dense: a view where its memory has one frame after the other."""
    return copying.contiguous(S.swapaxes(-1, -2))
