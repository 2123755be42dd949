"""spectral_contrast: peaks against valleys in octave bands (Jiang et al. 2002)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit.core.errors import ShapeError
from pygpukit.ops import elementwise, reduce
from pygpukit.ops.audio import scales
from pygpukit.ops.audio.decibels import power_to_db
from pygpukit.ops.audio.documented import keywords
from pygpukit.ops.audio.inputs import floats, positive, rate
from pygpukit.ops.audio.magnitudes import spectrogram
from pygpukit.ops.operands import is_array
from pygpukit.ops.shape.joining import concatenate
from pygpukit.ops.sorting import sort

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray
    from pygpukit.ops.audio.windows import Window

__all__ = ["spectral_contrast"]


@keywords("S n_bands quantile", spectrum="S", sample_rate="sr", alpha="quantile")
def spectral_contrast(
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
    fmin: float = 200.0,
    n_bands: int = 6,
    quantile: float = 0.02,
    linear: bool = False,
) -> GPUArray:
    """The mean of a band's highest magnitudes over that of its lowest, in dB: (..., n_bands + 1, frames).

    As librosa.feature.spectral_contrast(): a band below fmin, then n_bands octaves; quantile: the part of a band's bins
    that counts at either end; linear: the difference, not in dB. Decibels are limited to 80 below the largest value of
    the whole array, as power_to_db() does. freq: (bins,) in Hz. Raises ValueError, ShapeError, DTypeError.
    """
    what = "spectral_contrast"
    n_bands = positive(n_bands, "n_bands", what)
    if not 0.0 < quantile < 1.0:
        raise ValueError(f"{what}: quantile is {quantile} and must lie between 0 and 1")
    if not fmin > 0:
        raise ValueError(f"{what}: fmin is {fmin} and must be above 0 Hz")
    sr = rate(sr, y)
    S, n_fft = spectrogram(what, y, S, n_fft, hop_length, 1, win_length, window, center, pad_mode)
    S = floats(S, f"{what}: S")
    if fmin * 2.0 ** (n_bands - 1) >= 0.5 * sr:
        raise ValueError(f"{what}: the last of {n_bands} octaves from {fmin} Hz begins above sr / 2, {sr / 2} Hz")
    valleys, peaks = [], []
    for low, high, count in _bands(_bins(freq, S, sr, n_fft), fmin, n_bands, quantile, what):
        ordered = sort(S[..., low:high, :], -2)
        valleys.append(reduce.mean(ordered[..., :count, :], -2, keepdims=True))
        peaks.append(reduce.mean(ordered[..., -count:, :], -2, keepdims=True))
    peak, valley = concatenate(peaks, -2), concatenate(valleys, -2)
    return elementwise.sub(peak, valley) if linear else elementwise.sub(power_to_db(peak), power_to_db(valley))


def _bins(freq: Any, S: GPUArray, sr: float, n_fft: int) -> np.ndarray[Any, Any]:
    import numpy as np

    if freq is None:
        return scales.fft_frequencies(sr, n_fft)
    known = np.atleast_1d(freq.to_numpy() if is_array(freq) else np.asarray(freq))
    if known.shape != S.shape[-2:-1]:
        raise ShapeError(f"spectral_contrast: freq has shape {known.shape}, must have ({S.shape[-2]},): one a bin")
    return known


def _bands(
    freq: np.ndarray[Any, Any], fmin: float, n_bands: int, quantile: float, what: str
) -> list[tuple[int, int, int]]:
    """Of each band: its bins from, to, and how many of them count. A band begins with the last bin of the one before;
    all but the last leave out their own last bin, which still counts for the quantile."""
    import numpy as np

    edges = [0.0, *(fmin * 2.0**k for k in range(n_bands + 1))]
    bands = []
    for k in range(n_bands + 1):
        inside = np.flatnonzero((freq >= edges[k]) & (freq <= edges[k + 1]))
        if not inside.size:
            raise ValueError(f"{what}: no bin lies between {edges[k]} and {edges[k + 1]} Hz; take a larger n_fft")
        low = int(inside[0]) - (1 if k else 0)
        high = len(freq) if k == n_bands else int(inside[-1]) + 1
        count = max(int(np.rint(quantile * (high - low))), 1)
        bands.append((low, high if k == n_bands else high - 1, count))
    return bands
