"""Functions of sound under the older project's names: each warns, saying the name to use."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from pygpukit.ops import elementwise
from pygpukit.ops.audio.correlation import autocorrelate
from pygpukit.ops.audio.cqt import cqt
from pygpukit.ops.audio.decibels import log_mel, power_to_db
from pygpukit.ops.audio.griffinlim import griffinlim
from pygpukit.ops.audio.inputs import finite
from pygpukit.ops.audio.mel_filters import mel
from pygpukit.ops.audio.melspectrogram import melspectrogram
from pygpukit.ops.audio.pitch import voiced

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = [
    "autocorrelation",
    "cqt_magnitude",
    "create_mel_filterbank",
    "detect_pitch_yin",
    "detect_pitch_yin_frames",
    "griffin_lim",
    "log_mel_spectrogram",
    "mel_spectrogram",
    "to_decibels",
]


def to_decibels(audio: GPUArray, eps: float = 1e-10) -> GPUArray:
    """The older name of power_to_db(audio, amin=eps, top_db=None)."""
    _renamed("to_decibels", "power_to_db")
    return power_to_db(audio, amin=eps, top_db=None)


def create_mel_filterbank(
    n_mels: int = 80, n_fft: int = 512, sample_rate: float = 16000, f_min: float = 0.0, f_max: float = -1.0
) -> GPUArray:
    """The older name of mel(), with its defaults."""
    _renamed("create_mel_filterbank", "mel")
    return mel(sr=sample_rate, n_fft=n_fft, n_mels=n_mels, fmin=f_min, fmax=None if f_max < 0 else f_max)


def mel_spectrogram(
    audio: Any,
    n_fft: int = 512,
    hop_length: int = 160,
    n_mels: int = 80,
    sample_rate: float = 16000,
    f_min: float = 0.0,
    f_max: float = -1.0,
) -> GPUArray:
    """The older name of melspectrogram(), with its defaults; the result is (..., n_mels, frames)."""
    _renamed("mel_spectrogram", "melspectrogram")
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
    """The older log_mel(mel_spectrogram(...)): natural logarithm, (..., n_mels, frames). Whisper's own input is
    whisper_log_mel()."""
    _renamed("log_mel_spectrogram", "log_mel(melspectrogram(...)), or whisper_log_mel()")
    fmax = None if f_max < 0 else f_max
    return log_mel(
        melspectrogram(
            y=audio, sr=sample_rate, n_fft=n_fft, hop_length=hop_length, n_mels=n_mels, fmin=f_min, fmax=fmax
        ),
        eps,
    )


def cqt_magnitude(
    audio: Any,
    sample_rate: float = 16000,
    hop_length: int = 160,
    f_min: float = 32.7,
    n_bins: int = 84,
    bins_per_octave: int = 12,
) -> GPUArray:
    """The older magnitude of cqt(), with its defaults: (..., n_bins, frames)."""
    _renamed("cqt_magnitude", "abs(cqt(...))")
    C = cqt(audio, sr=sample_rate, hop_length=hop_length, fmin=f_min, n_bins=n_bins, bins_per_octave=bins_per_octave)
    return elementwise.abs(C)


def autocorrelation(audio: Any, max_lag: int) -> GPUArray:
    """The older name of autocorrelate(audio, max_size=max_lag)."""
    _renamed("autocorrelation", "autocorrelate")
    return autocorrelate(audio, max_size=max_lag)


def griffin_lim(magnitude: GPUArray, n_iter: int = 32, hop_length: int = 160, win_length: int = -1) -> GPUArray:
    """The older name of griffinlim(), with its defaults; magnitude is (..., bins, frames)."""
    _renamed("griffin_lim", "griffinlim")
    return griffinlim(
        magnitude, n_iter=n_iter, hop_length=hop_length, win_length=None if win_length == -1 else win_length
    )


def detect_pitch_yin(
    audio: Any, sample_rate: float = 16000, f_min: float = 50.0, f_max: float = 500.0, threshold: float = 0.1
) -> float:
    """The older single pitch of a mono signal in Hz, by YIN over the whole of it; 0.0 where there is none: no
    trough is below threshold. Waits for the device. Errors as yin(), whose frame is the signal."""
    _renamed("detect_pitch_yin", "yin")
    audio = finite(audio, "detect_pitch_yin")
    result = voiced(audio, sample_rate, audio.shape[-1], 1, f_min, f_max, threshold)
    return float(result.reshape(-1)[0].item())


def detect_pitch_yin_frames(
    audio: Any,
    sample_rate: float = 16000,
    frame_size: int = 1024,
    hop_size: int = 256,
    f_min: float = 50.0,
    f_max: float = 500.0,
    threshold: float = 0.1,
) -> GPUArray:
    """The older pitches of frames that are not centred, (..., frames) in Hz; 0 where no trough is below threshold.
    Errors as yin()."""
    _renamed("detect_pitch_yin_frames", "yin")
    return voiced(audio, sample_rate, frame_size, hop_size, f_min, f_max, threshold)


def _renamed(name: str, instead: str) -> None:
    """Warns that a function has another name now, at the line that called it."""
    warnings.warn(f"{name}() is now {instead}", DeprecationWarning, stacklevel=3)
