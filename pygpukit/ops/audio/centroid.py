"""Spectral centroid and bandwidth: mean and spread of the frequencies of a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit.ops import elementwise, reduce
from pygpukit.ops.audio.bins import frequencies
from pygpukit.ops.audio.documented import keywords
from pygpukit.ops.audio.inputs import floats, magnitudes, rate
from pygpukit.ops.audio.magnitudes import spectrogram
from pygpukit.ops.audio.powers import to_power
from pygpukit.ops.audio.scaling import normalized

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.audio.windows import Window

__all__ = ["spectral_bandwidth", "spectral_centroid"]


@keywords("S sr", spectrum="S", sample_rate="sr")
def spectral_centroid(
    *,
    y: Any = None,
    sr: float | None = None,
    S: GPUArray | None = None,
    n_fft: int = 2048,
    hop_length: int = 512,
    freq: Any = None,
    win_length: int | None = None,
    window: Window = "hann",
    center: bool = True,
    pad_mode: str = "constant",
) -> GPUArray:
    """The mean frequency of each frame, weighted by magnitude, in Hz: (..., 1, frames), as librosa has it.

    y: (..., samples), or S: (..., bins, frames), real and not negative. freq: of the bins, in Hz, (bins,) or (...,
    bins, frames). Others as stft(). Frames of zeros give 0. Raises DTypeError, ShapeError, ValueError. Deterministic.
    """
    what = "spectral_centroid"
    sr = rate(sr, y)
    S, n_fft = spectrogram(what, y, S, n_fft, hop_length, 1, win_length, window, center, pad_mode)
    S = magnitudes(S, what)
    return _centroid(S, frequencies(freq, S, sr, n_fft, what))


@keywords("S centroid sr p", spectrum="S", sample_rate="sr", centroids="centroid")
def spectral_bandwidth(
    *,
    y: Any = None,
    sr: float | None = None,
    S: GPUArray | None = None,
    n_fft: int = 2048,
    hop_length: int = 512,
    win_length: int | None = None,
    window: Window = "hann",
    center: bool = True,
    pad_mode: str = "constant",
    freq: Any = None,
    centroid: GPUArray | None = None,
    norm: bool = True,
    p: float = 2,
) -> GPUArray:
    """(sum of S |freq - centroid|^p)^(1/p) of each frame, in Hz: (..., 1, frames), as librosa has it.

    centroid: (..., 1, frames), else computed. norm: weights of a frame add up to one. Others as spectral_centroid().
    """
    what = "spectral_bandwidth"
    sr = rate(sr, y)
    S, n_fft = spectrogram(what, y, S, n_fft, hop_length, 1, win_length, window, center, pad_mode)
    S = magnitudes(S, what)
    places = frequencies(freq, S, sr, n_fft, what)
    middle = _centroid(S, places) if centroid is None else floats(centroid, f"{what}: centroid")
    deviation = elementwise.abs(elementwise.sub(places, middle))
    weights = normalized(S, 1, -2, what) if norm else S
    return elementwise.power(reduce.sum(elementwise.mul(weights, to_power(deviation, p)), -2, keepdims=True), 1.0 / p)


def _centroid(S: GPUArray, places: GPUArray) -> GPUArray:
    return reduce.sum(elementwise.mul(normalized(S, 1, -2, "spectral_centroid"), places), -2, keepdims=True)
