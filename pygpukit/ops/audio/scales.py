"""Frequencies in Hz and on the scales of hearing and music, in float64 on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Values = np.ndarray[Any, Any]

C1_HZ = 32.70319566257483  # A4 = 440 Hz
# Slaney's Auditory Toolbox (1998): linear up to 1 kHz, then logarithmic.
_HZ_A_MEL, _BREAK_HZ = 200.0 / 3, 1000.0
_BREAK_MEL = _BREAK_HZ / _HZ_A_MEL


def fft_frequencies(sr: float, n_fft: int) -> Values:
    """Of the bins of a real transform, in Hz."""
    import numpy as np

    return np.fft.rfftfreq(n_fft, 1.0 / sr)


def hz_to_mel(hz: Values | float, htk: bool) -> Values:
    """Slaney's mel scale, or that of HTK."""
    import numpy as np

    hz = np.asarray(hz, np.float64)
    if htk:
        return 2595.0 * np.log10(1.0 + hz / 700.0)
    high = _BREAK_MEL + np.log(np.maximum(hz, _BREAK_HZ) / _BREAK_HZ) / (np.log(6.4) / 27.0)
    return np.where(hz >= _BREAK_HZ, high, hz / _HZ_A_MEL)


def mel_to_hz(mels: Values, htk: bool) -> Values:
    """The way back of hz_to_mel()."""
    import numpy as np

    if htk:
        return 700.0 * (10.0 ** (mels / 2595.0) - 1.0)
    high = _BREAK_HZ * np.exp(np.log(6.4) / 27.0 * (np.maximum(mels, _BREAK_MEL) - _BREAK_MEL))
    return np.where(mels >= _BREAK_MEL, high, mels * _HZ_A_MEL)


def hz_to_octaves(hz: Values, tuning: float, bins_per_octave: int) -> Values:
    """Octaves above A0, 27.5 Hz, or above it where A4 is off 440 Hz by so many bins."""
    import numpy as np

    return np.log2(np.asarray(hz, np.float64) / (440.0 * 2.0 ** (tuning / bins_per_octave) / 16))
