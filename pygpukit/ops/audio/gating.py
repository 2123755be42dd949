"""spectral_gate: frequencies that are too quiet are taken out, moment by moment."""

from __future__ import annotations

from math import exp
from typing import Any

from pygpukit.ops import copying, elementwise
from pygpukit.ops.audio.filtering import lfilter
from pygpukit.ops.audio.inputs import floats, positive
from pygpukit.ops.audio.istft import istft
from pygpukit.ops.audio.recursion import decaying_peak
from pygpukit.ops.audio.returned import in_place
from pygpukit.ops.audio.stft import stft
from pygpukit.ops.elementwise import logic

__all__ = ["spectral_gate"]


def spectral_gate(
    audio: Any,
    threshold: float = 0.01,
    attack_samples: int = 64,
    release_samples: int = 256,
    *,
    n_fft: int = 512,
    hop_length: int = 128,
) -> Any:
    """Takes out what is below threshold in each bin of a short-time Fourier transform, in place; returns audio itself,
    as documented.

    audio: (..., samples). threshold: the amplitude of a sine wave that just passes. attack_samples, release_samples:
    time constants of a bin's gain going up, and back to 0. NaN and infinity
    spread over the frames that they are in. Raises ValueError, ShapeError, DTypeError.
    """
    what = "spectral_gate"
    values = floats(audio, f"{what}: audio")
    attack, release = (
        positive(count, name, what)
        for count, name in ((attack_samples, "attack_samples"), (release_samples, "release_samples"))
    )
    if not values.size:
        return audio
    spectrum = stft(values, n_fft=n_fft, hop_length=hop_length)
    min_magnitude = threshold * n_fft / 4  # a sine of amplitude 1 gives n_fft / 4 behind a Hann window
    open_ = copying.astype(logic.greater_equal(elementwise.abs(spectrum), min_magnitude), values.dtype)
    held = decaying_peak(open_, exp(-hop_length / release))
    kept = exp(-hop_length / attack)
    gain = lfilter([1 - kept], [1.0, -kept], held)
    return in_place(audio, istft(elementwise.mul(spectrum, gain), hop_length=hop_length, length=values.shape[-1]))
