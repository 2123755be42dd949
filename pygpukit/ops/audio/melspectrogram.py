"""Spectrograms in mel bands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit.ops.audio.analysis import prepared, warn_of_short
from pygpukit.ops.audio.documented import keywords
from pygpukit.ops.audio.inputs import floats, matrix, rate
from pygpukit.ops.audio.magnitudes import frame_major, spectrogram
from pygpukit.ops.audio.mel_filters import dense
from pygpukit.ops.matmul.gemm import matmul

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.audio.windows import Window

__all__ = ["apply_mel_filterbank", "melspectrogram"]


@keywords(audio="y", sample_rate="sr", f_min="fmin", f_max="fmax")
def melspectrogram(
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
    power: float = 2.0,
    n_mels: int = 128,
    fmin: float = 0.0,
    fmax: float | None = None,
    htk: bool = False,
    norm: str | float | None = "slaney",
) -> GPUArray:
    """The spectrogram in mel bands, as librosa.feature.melspectrogram(): (..., n_mels, frames).

    y: (..., samples), or S: (..., bins, frames), taken as it is. sr: 22050 by default, of an AudioBuffer its own.
    power: of the magnitude, 2 for power. n_fft to pad_mode: as stft(); n_mels to norm: as mel(). Raises as they do. An
    item's bits depend on it alone, the same on every run.
    """
    what = "melspectrogram"
    sr = rate(sr, y)
    how = (n_mels, fmin, fmax, htk, norm)
    if S is None and y is not None:
        analysis = prepared(y, n_fft, hop_length, win_length, window, center, pad_mode, what)
        warn_of_short(analysis, what)
        return analysis.bands(power, (sr, n_fft, *how)).swapaxes(-1, -2)
    S, n_fft = spectrogram(what, y, S, n_fft, hop_length, power, win_length, window, center, pad_mode)
    S = floats(S, f"{what}: S")
    return matmul(frame_major(S), dense(S.dtype, sr, n_fft, *how)).swapaxes(-1, -2)


def apply_mel_filterbank(spectrogram: GPUArray, mel_filterbank: GPUArray) -> GPUArray:
    """(..., n_mels, frames) of a spectrogram (..., bins, frames) and filters (n_mels, bins). Raises ShapeError,
    DTypeError."""
    what = "apply_mel_filterbank"
    S, bank = matrix(floats(spectrogram, what), what), matrix(floats(mel_filterbank, what), what)
    return matmul(frame_major(S), bank.swapaxes(-1, -2)).swapaxes(-1, -2)
