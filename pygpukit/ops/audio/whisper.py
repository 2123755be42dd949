"""whisper_log_mel: the input of Whisper models (Radford et al. 2022)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit.ops import elementwise, reduce
from pygpukit.ops.audio.analysis import prepared
from pygpukit.ops.audio.inputs import signal
from pygpukit.ops.fusion import fuse
from pygpukit.ops.indexing import padding

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["whisper_log_mel"]

SAMPLE_RATE, N_FFT, HOP = 16000, 400, 160


def whisper_log_mel(audio: Any, n_mels: int = 80, *, padding: int = 0) -> GPUArray:
    """The log-mel spectrogram that Whisper models read: (..., n_mels, samples // 160).

    audio: (..., samples) at 16 kHz. n_mels: 80, or 128 for large-v3 and turbo. padding: zeros behind the signal; models
    want 480000 samples, 30 s, in all. Frames of 400 samples, 160 apart, the signal mirrored at its ends, the last frame
    left out; power in Slaney's mel bands; log10 of 1e-10 and more; no lower than 8 below an item's largest value; (x +
    4) / 4. An item's bits depend on it alone. Raises DTypeError, ShapeError and ValueError as stft(), ValueError for
    other n_mels and for a rate that is not 16 kHz.
    """
    what = "whisper_log_mel"
    if n_mels not in (80, 128):
        raise ValueError(f"{what}: n_mels is {n_mels}; Whisper models have 80 or 128")
    rate = getattr(audio, "sample_rate", SAMPLE_RATE)
    if rate != SAMPLE_RATE:
        raise ValueError(f"{what}: the signal has {rate} samples a second; resample it to {SAMPLE_RATE}")
    y = signal(audio, what)
    if padding:
        y = _longer(y, padding)
    logarithms = log_energies(y, n_mels, center=True)[..., :-1, :]
    return _scaled(logarithms, reduce.max(logarithms, (-2, -1), keepdims=True)).swapaxes(-1, -2)


@fuse
def _scaled(logarithms: GPUArray, largest: GPUArray) -> GPUArray:
    return (elementwise.maximum(logarithms, largest - 8.0) + 4.0) * 0.25


def log_energies(y: GPUArray, n_mels: int, *, center: bool) -> GPUArray:
    """log10 of the mel bands' energies, 1e-10 at least: (..., frames, n_mels), as whisper_log_mel() begins.

    center: whether frames stand around their sample, the signal mirrored at its ends; else they begin there.
    """
    analysis = prepared(y, N_FFT, HOP, None, "hann", center, "reflect", "whisper_log_mel")
    return analysis.logarithms((float(SAMPLE_RATE), N_FFT, n_mels, 0.0, None, False, "slaney"), 1e-10)


def _longer(y: GPUArray, count: int) -> GPUArray:
    return padding.pad(y, [(0, 0)] * (y.ndim - 1) + [(0, count)])
