"""Coefficients of second-order filters by Robert Bristow-Johnson's Audio EQ Cookbook, for sosfilt()."""

from __future__ import annotations

from math import cos, pi, sin, sqrt
from typing import Any

import numpy as np

from pygpukit.ops.audio.filtering import sosfilt
from pygpukit.ops.audio.inputs import rate

__all__ = ["biquad", "biquad_filter"]

KINDS = ("lowpass", "highpass", "bandpass", "notch", "allpass", "peaking", "lowshelf", "highshelf")


def biquad(
    kind: str, freq: float, *, sr: float = 22050, Q: float = sqrt(0.5), gain_db: float = 0.0
) -> np.ndarray[Any, Any]:
    """One section, (1, 6), float64, NumPy: b and a, with a[0] = 1.

    kind: "lowpass", "highpass", "bandpass" (0 dB at freq), "notch", "allpass", "peaking", "lowshelf", "highshelf".
    freq: of the corner or the middle, in Hz, below sr / 2. Q: the quality; sqrt(1/2) is Butterworth's. gain_db: of the
    peak or the shelf. Sections below each other are a chain: np.vstack. Raises ValueError.
    """
    if kind not in KINDS:
        raise ValueError(f"biquad: kind {kind!r} is unknown; use one of {', '.join(map(repr, KINDS))}")
    if not 0 < freq < sr / 2:
        raise ValueError(f"biquad: freq is {freq} Hz and must be between 0 and sr / 2, {sr / 2}")
    if Q <= 0:
        raise ValueError(f"biquad: Q is {Q} and must be positive")
    omega = 2 * pi * freq / sr
    c, alpha, A = cos(omega), sin(omega) / (2 * Q), 10 ** (gain_db / 40)
    a = (1 + alpha, -2 * c, 1 - alpha)
    if kind == "lowpass":
        b = ((1 - c) / 2, 1 - c, (1 - c) / 2)
    elif kind == "highpass":
        b = ((1 + c) / 2, -(1 + c), (1 + c) / 2)
    elif kind == "bandpass":
        b = (alpha, 0.0, -alpha)
    elif kind == "notch":
        b = (1.0, -2 * c, 1.0)
    elif kind == "allpass":
        b = (1 - alpha, -2 * c, 1 + alpha)
    elif kind == "peaking":
        b, a = (1 + alpha * A, -2 * c, 1 - alpha * A), (1 + alpha / A, -2 * c, 1 - alpha / A)
    else:
        b, a = _shelf(c if kind == "lowshelf" else -c, 2 * sqrt(A) * alpha, A)
        if kind == "highshelf":  # the low shelf, mirrored at half the Nyquist frequency
            b, a = (b[0], -b[1], b[2]), (a[0], -a[1], a[2])
    return np.array([[*b, *a]]) / a[0]


def biquad_filter(
    y: Any,
    kind: str,
    freq: float,
    *,
    sr: float | None = None,
    Q: float = sqrt(0.5),
    gain_db: float = 0.0,
    zi: Any = None,
) -> Any:
    """y through one section of biquad(): sosfilt(biquad(...), y, zi=zi). sr: that of an AudioBuffer, else 22050."""
    return sosfilt(biquad(kind, freq, sr=rate(sr, y), Q=Q, gain_db=gain_db), y, zi=zi)


def _shelf(c: float, slope: float, A: float) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    b = (A * (A + 1 - (A - 1) * c + slope), 2 * A * (A - 1 - (A + 1) * c), A * (A + 1 - (A - 1) * c - slope))
    a = (A + 1 + (A - 1) * c + slope, -2 * (A - 1 + (A + 1) * c), A + 1 + (A - 1) * c - slope)
    return b, a
