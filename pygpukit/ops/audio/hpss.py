"""Harmonic and percussive parts of a sound, by running medians along time and frequency (FitzGerald 2010)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pygpukit.array import promotion
from pygpukit.core.dtypes import float32
from pygpukit.ops import copying, elementwise
from pygpukit.ops.audio.documented import keywords
from pygpukit.ops.audio.inputs import complex_of, magnitudes, matrix, positive, signal
from pygpukit.ops.audio.istft import istft
from pygpukit.ops.audio.magnitudes import magphase
from pygpukit.ops.audio.median import running_median
from pygpukit.ops.audio.returned import like
from pygpukit.ops.audio.stft import stft
from pygpukit.ops.elementwise import logic
from pygpukit.ops.operands import check_array

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.audio.windows import Window

__all__ = ["harmonic", "hpss", "percussive"]


@keywords("S kernel_size power margin", stft_magnitude_input="S")
def hpss(
    S: GPUArray,
    *,
    kernel_size: int | tuple[int, int] = 31,
    power: float = 2.0,
    mask: bool = False,
    margin: float | tuple[float, float] = 1.0,
) -> tuple[GPUArray, GPUArray]:
    """(harmonic, percussive) of a spectrogram (..., bins, frames), as librosa.decompose.hpss().

    S: magnitudes, or complex, whose phase both parts keep. kernel_size: of the medians along time and along frequency.
    power: of the Wiener masks, inf for hard ones. margin: by how much one part must outweigh the other, 1 or more;
    above 1 the parts leave something over. mask: the masks instead of the parts. Raises DTypeError,
    ShapeError, ValueError. An item's bits depend on it alone, the same on every run.
    """
    what = "hpss"
    S = matrix(check_array(S, what), f"{what}: S")
    phase = None
    if S.dtype in promotion.COMPLEX:
        S, phase = magphase(S)
    S = magnitudes(S, what)
    widths = kernel_size if isinstance(kernel_size, (tuple, list)) else (kernel_size, kernel_size)
    margins = margin if isinstance(margin, (tuple, list)) else (margin, margin)
    if min(margins) < 1:
        raise ValueError(f"{what}: margin is {margin} and must be 1 or more")
    if not power > 0:
        raise ValueError(f"{what}: power is {power} and must be above 0")
    along_time = running_median(S, positive(widths[0], "kernel_size", what), -1)
    along_frequency = running_median(S, positive(widths[1], "kernel_size", what), -2)
    split = margins[0] == 1 and margins[1] == 1
    masks = (
        _mask(along_time, elementwise.mul(along_frequency, float(margins[0])), power, split),
        _mask(along_frequency, elementwise.mul(along_time, float(margins[1])), power, split),
    )
    if mask:
        return masks
    parts = tuple(elementwise.mul(S, one) for one in masks)
    return (
        (parts[0], parts[1]) if phase is None else (elementwise.mul(parts[0], phase), elementwise.mul(parts[1], phase))
    )


def harmonic(
    y: Any = None,
    *,
    kernel_size: int | tuple[int, int] = 31,
    power: float = 2.0,
    mask: bool = False,
    margin: float | tuple[float, float] = 1.0,
    n_fft: int = 2048,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Window = "hann",
    center: bool = True,
    pad_mode: str = "constant",
    stft_magnitude_input: GPUArray | None = None,
) -> Any:
    """The harmonic part of a signal (..., samples), as librosa.effects.harmonic(): stft(), hpss(), istft().

    kernel_size, power, margin as hpss(); mask: the signal of the mask alone; the others as stft(). Of an AudioBuffer
    the result is one. stft_magnitude_input, documented: hpss() of that spectrogram instead.
    """
    how: dict[str, Any] = {"kernel_size": kernel_size, "power": power, "mask": mask, "margin": margin}
    if stft_magnitude_input is not None:
        return hpss(stft_magnitude_input, **how)[0]
    back = {"n_fft": n_fft, "hop_length": hop_length, "win_length": win_length, "window": window, "center": center}
    return _part("harmonic", 0, y, how, back, pad_mode)


def percussive(
    y: Any = None,
    *,
    kernel_size: int | tuple[int, int] = 31,
    power: float = 2.0,
    mask: bool = False,
    margin: float | tuple[float, float] = 1.0,
    n_fft: int = 2048,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Window = "hann",
    center: bool = True,
    pad_mode: str = "constant",
    stft_magnitude_input: GPUArray | None = None,
) -> Any:
    """The percussive part of a signal, as librosa.effects.percussive(). Arguments as harmonic()."""
    how: dict[str, Any] = {"kernel_size": kernel_size, "power": power, "mask": mask, "margin": margin}
    if stft_magnitude_input is not None:
        return hpss(stft_magnitude_input, **how)[1]
    back = {"n_fft": n_fft, "hop_length": hop_length, "win_length": win_length, "window": window, "center": center}
    return _part("percussive", 1, y, how, back, pad_mode)


def _part(what: str, position: int, y: Any, how: dict[str, Any], back: dict[str, Any], pad_mode: str) -> Any:
    samples = signal(y, what)
    part = hpss(stft(samples, pad_mode=pad_mode, **back), **how)[position]
    part = part if part.dtype in promotion.COMPLEX else copying.astype(part, complex_of(part.dtype))  # of a mask
    return like(y, istft(part, length=samples.shape[-1], dtype=samples.dtype, **back))


def _mask(X: GPUArray, other: GPUArray, power: float, split_zeros: bool) -> GPUArray:
    """X^p / (X^p + other^p) without overflow; where both are 0 one half, or none."""
    if power == math.inf:
        return copying.astype(logic.greater(X, other), X.dtype)
    tiny = 2.0**-126 if X.dtype == float32 else 2.0**-1022
    larger = elementwise.maximum(X, other)
    silent = logic.less(larger, tiny)
    larger = elementwise.where(silent, 1.0, larger)
    own, rest = (elementwise.power(elementwise.div(x, larger), power) for x in (X, other))
    return elementwise.where(silent, 0.5 if split_zeros else 0.0, elementwise.div(own, elementwise.add(own, rest)))
