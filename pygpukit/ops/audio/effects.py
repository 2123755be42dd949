"""Speed without pitch, and pitch without speed."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from pygpukit.ops.audio.documented import keywords
from pygpukit.ops.audio.framing import fix_length
from pygpukit.ops.audio.inputs import positive, signal
from pygpukit.ops.audio.inputs import rate as sample_rate
from pygpukit.ops.audio.istft import istft
from pygpukit.ops.audio.resampling import resample
from pygpukit.ops.audio.returned import like
from pygpukit.ops.audio.stft import stft
from pygpukit.ops.audio.vocoder import phase_vocoder

__all__ = ["pitch_shift", "time_stretch"]

_FINENESS = 4096  # of the ratio that a pitch is shifted by: half a cent off at most, whole semitones a thousandth


@keywords("y rate n_fft hop_length", audio="y")
def time_stretch(y: Any, *, rate: float, **kwargs: Any) -> Any:
    """A signal rate times as fast at its own pitch, as librosa.effects.time_stretch().

    y: (..., samples). Result: (..., round(samples / rate)), of an AudioBuffer one. kwargs: as stft() takes them. Raises
    ValueError for a rate not above 0, and as stft(). Deterministic.
    """
    if not rate > 0:
        raise ValueError(f"time_stretch: rate is {rate} and must be positive")
    samples = signal(y, "time_stretch")
    D = phase_vocoder(
        stft(samples, **kwargs), rate=rate, hop_length=kwargs.get("hop_length"), n_fft=kwargs.get("n_fft")
    )
    back = {name: value for name, value in kwargs.items() if name != "pad_mode"}
    return like(y, istft(D, length=round(samples.shape[-1] / rate), dtype=samples.dtype, **back))


@keywords("y sr n_steps n_fft hop_length", audio="y", sample_rate="sr")
def pitch_shift(
    y: Any,
    *,
    sr: float | None = None,
    n_steps: float,
    bins_per_octave: int = 12,
    res_type: str = "soxr_hq",
    scale: bool = False,
    **kwargs: Any,
) -> Any:
    """A signal n_steps higher (lower if negative) at its own speed, as librosa.effects.pitch_shift().

    y: (..., samples), and so is the result. Steps: bins_per_octave to an octave. sr: 22050 by default, of an
    AudioBuffer its own. res_type, scale: as resample(); kwargs: as stft(). Raises as those, and ValueError.
    """
    positive(bins_per_octave, "bins_per_octave", "pitch_shift")
    sample_rate(sr, y)  # checked; only the ratio of rates counts
    samples = signal(y, "pitch_shift")
    rate = Fraction(2.0 ** (-float(n_steps) / bins_per_octave)).limit_denominator(_FINENESS)
    stretched = time_stretch(samples, rate=float(rate), **kwargs)
    shifted = resample(stretched, orig_sr=rate.denominator, target_sr=rate.numerator, res_type=res_type, scale=scale)
    return like(y, fix_length(shifted, size=samples.shape[-1]))
