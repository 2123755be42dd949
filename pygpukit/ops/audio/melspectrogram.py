"""Spectrograms in mel bands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit.ops.audio.analysis import prepared, warn_of_short
from pygpukit.ops.audio.decibels import log_mel
from pygpukit.ops.audio.documented import alias, keywords
from pygpukit.ops.audio.inputs import floats, matrix, rate
from pygpukit.ops.audio.magnitudes import frame_major, spectrogram
from pygpukit.ops.audio.mel_filters import dense
from pygpukit.ops.matmul.gemm import matmul

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.audio.windows import Window

__all__ = ["apply_mel_filterbank", "log_mel_spectrogram", "mel_spectrogram", "melspectrogram"]


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


def mel_spectrogram(
    audio: Any,
    n_fft: int = 512,
    hop_length: int = 160,
    n_mels: int = 80,
    sample_rate: float = 16000,
    f_min: float = 0.0,
    f_max: float = -1.0,
) -> GPUArray:
    """The documented name of melspectrogram(), with its defaults; the result is (..., n_mels, frames)."""
    alias("mel_spectrogram", "melspectrogram")
    fmax = None if f_max < 0 else f_max
    return melspectrogram(
        y=audio, sr=sample_rate, n_fft=n_fft, hop_length=hop_length, n_mels=n_mels, fmin=f_min, fmax=fmax
    )


def log_mel_spectrogram(
    audio: Any,
    n_fft: int = 512,
    hop_length: int = 160,
    n_mels: int = 80,
    sample_rate: float = 16000,
    f_min: float = 0.0,
    f_max: float = -1.0,
    eps: float = 1e-10,
) -> GPUArray:
    """The documented log_mel(mel_spectrogram(...)): natural logarithm, (..., n_mels, frames). Whisper's own input is
    whisper_log_mel()."""
    alias("log_mel_spectrogram", "log_mel(melspectrogram(...)), or whisper_log_mel()")
    fmax = None if f_max < 0 else f_max
    return log_mel(
        melspectrogram(
            y=audio, sr=sample_rate, n_fft=n_fft, hop_length=hop_length, n_mels=n_mels, fmin=f_min, fmax=fmax
        ),
        eps,
    )
