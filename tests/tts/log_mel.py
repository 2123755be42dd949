"""A log-mel spectrum in NumPy, to say how far two sounds are apart where waveforms cannot be compared."""

from __future__ import annotations

from typing import Any

import numpy as np

Values = np.ndarray[Any, Any]


def distance(first: Values, second: Values) -> float:
    """Mean difference in decibels of two sounds at 24 kHz, over mel bands and frames within 60 dB of the loudest."""
    a, b = log_mel(first), log_mel(second)
    loud = np.maximum(a, b) > max(a.max(), b.max()) - 60
    floor = max(a.max(), b.max()) - 60
    return float(np.abs(np.maximum(a, floor) - np.maximum(b, floor))[loud].mean())


def log_mel(samples: Values, size: int = 1024, hop: int = 256, bands: int = 80, rate: int = 24000) -> Values:
    """Decibels, (frames, bands)."""
    frames = np.lib.stride_tricks.sliding_window_view(np.pad(samples, size // 2), size)[::hop]
    power = np.abs(np.fft.rfft(frames * np.hanning(size + 1)[:-1])) ** 2
    edges = 700 * (10 ** (np.linspace(0, 2595 * np.log10(1 + rate / 1400), bands + 2) / 2595) - 1)
    bins = np.fft.rfftfreq(size, 1 / rate)[:, None]
    up, down = (bins - edges[:-2]) / np.diff(edges)[:-1], (edges[2:] - bins) / np.diff(edges)[1:]
    return 10 * np.log10(power @ np.clip(np.minimum(up, down), 0, None) + 1e-10)
