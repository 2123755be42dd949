"""peak_pick: peaks of a curve, greedily and far enough apart. Sequential and small: made on the host."""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np

__all__ = ["peak_pick"]

Array = np.ndarray[Any, Any]


def peak_pick(
    x: Any,
    *,
    pre_max: float,
    post_max: float,
    pre_avg: float,
    post_avg: float,
    delta: float,
    wait: float,
    sparse: bool = True,
    axis: int = -1,
) -> Array:
    """Peaks, as librosa.util.peak_pick() (Boeck, Krebs, Schedl 2012).

    A sample is one if it is the largest from pre_max samples before it to post_max - 1 after it, at least delta above
    the mean from pre_avg before to post_avg - 1 after, and more than wait after the last peak. x: an array of this
    package or of NumPy; made on the host. Result: the positions, of 1-D x; without sparse True and False, of x's shape.
    Raises ValueError.
    """
    values = np.asarray(x.to_numpy() if hasattr(x, "to_numpy") else x)
    for name, number in {"pre_max": pre_max, "pre_avg": pre_avg, "delta": delta, "wait": wait}.items():
        if number < 0:
            raise ValueError(f"peak_pick: {name} is {number} and must not be negative")
    for name, number in {"post_max": post_max, "post_avg": post_avg}.items():
        if number <= 0:
            raise ValueError(f"peak_pick: {name} is {number} and must be positive")
    if sparse and values.ndim != 1:
        raise ValueError(f"peak_pick: x has shape {values.shape}; positions are of 1-D arrays, pass sparse=False")
    peaks = np.zeros(values.shape, bool)
    lines, marks = np.moveaxis(values, axis, -1), np.moveaxis(peaks, axis, -1)
    largest_of, mean_of = (ceil(pre_max), ceil(post_max)), (ceil(pre_avg), ceil(post_avg))
    for line in np.ndindex(lines.shape[:-1]):
        marks[line] = _greedy(lines[line], largest_of, mean_of, delta, ceil(wait))
    return np.flatnonzero(peaks) if sparse else peaks


def _greedy(x: Array, largest_of: tuple[int, int], mean_of: tuple[int, int], delta: float, wait: int) -> Array:
    """Windows are (samples before, samples from it on)."""
    peaks = np.zeros(len(x), bool)
    n = 0
    while n < len(x):
        around, wide = (x[max(0, n - before) : n + after] for before, after in (largest_of, mean_of))
        peaks[n] = x[n] == around.max() and x[n] >= wide.mean() + delta
        n += wait + 1 if peaks[n] else 1
    return peaks
