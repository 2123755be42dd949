"""compressor and limiter: gains that follow the level (Giannoulis, Massberg, Reiss 2012). Each channel by itself."""

from __future__ import annotations

from math import exp
from typing import TYPE_CHECKING, Any

import numpy as np

from pygpukit.ops import elementwise
from pygpukit.ops.audio.filtering import lfilter
from pygpukit.ops.audio.framing import padded
from pygpukit.ops.audio.inputs import floats, rate
from pygpukit.ops.audio.polyphase import upfirdn
from pygpukit.ops.audio.recursion import decaying_peak
from pygpukit.ops.audio.returned import like
from pygpukit.ops.elementwise.math import log10

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["compressor", "limiter"]

_FLOOR = 1e-6  # magnitudes below are as quiet as this one, -120 dB


def compressor(
    y: Any,
    *,
    sr: float | None = None,
    threshold_db: float = -20.0,
    ratio: float = 4.0,
    knee_db: float = 6.0,
    attack: float = 0.005,
    release: float = 0.1,
    makeup_db: float = 0.0,
) -> Any:
    """Makes what is loud quieter: above threshold_db, ratio dB more give 1 dB more; a new array (or AudioBuffer).

    y: (..., samples). sr: that of an AudioBuffer, else 22050. knee_db: width of the bend between the two slopes.
    attack, release: time constants in seconds of the gain going down, and back: a peak that decays, smoothed.
    makeup_db: added. Raises ValueError, DTypeError. The same bits on every run, for a channel in any batch.
    """
    what = "compressor"
    values, sr = floats(y, f"{what}: y"), rate(sr, y)
    if ratio < 1 or knee_db < 0:
        raise ValueError(f"{what}: ratio is {ratio} and knee_db {knee_db}; at least 1 and 0 are needed")
    over = elementwise.sub(_decibels(values), threshold_db)
    slope = 1 - 1 / ratio
    if knee_db:
        inside = elementwise.clip(elementwise.add(over, knee_db / 2), 0.0, knee_db)
        bent = elementwise.mul(elementwise.square(inside), slope / (2 * knee_db))
        reduction = elementwise.add(
            bent, elementwise.mul(elementwise.maximum(elementwise.sub(over, knee_db / 2), 0.0), slope)
        )
    else:
        reduction = elementwise.mul(elementwise.maximum(over, 0.0), slope)
    held = decaying_peak(reduction, _decay(release, sr, "release", what))
    kept = _decay(attack, sr, "attack", what)
    smooth = lfilter([1 - kept], [1.0, -kept], held)
    return like(y, elementwise.mul(values, _gain(elementwise.sub(makeup_db, smooth))))


def limiter(
    y: Any, *, sr: float | None = None, ceiling_db: float = -1.0, lookahead: float = 0.005, release: float = 0.05
) -> Any:
    """No sample above ceiling_db, by a gain that goes down ahead of peaks; a new array (or AudioBuffer), without delay.

    sr: that of an AudioBuffer, else 22050. lookahead: seconds in which the gain goes down, as a line in dB. release:
    time constant of its way back. Raises ValueError, DTypeError. Deterministic as compressor().
    """
    what = "limiter"
    values, sr = floats(y, f"{what}: y"), rate(sr, y)
    if lookahead < 0:
        raise ValueError(f"{what}: lookahead is {lookahead} s and must not be negative")
    ahead = round(lookahead * sr)
    over = elementwise.maximum(elementwise.sub(_decibels(values), ceiling_db), 0.0)
    coming = _running_maximum(padded(over, ahead, ahead, "constant", what), ahead + 1)
    held = decaying_peak(coming, _decay(release, sr, "release", what))
    # Every mean is of ahead + 1 values that all saw the sample, so that none is below what the sample needs.
    needed = upfirdn(held, np.full(ahead + 1, 1 / (ahead + 1)), 1, 1, ahead, values.shape[-1])
    limited = elementwise.mul(values, _gain(elementwise.neg(needed)))
    ceiling = 10 ** (ceiling_db / 20)
    return like(y, elementwise.clip(limited, -ceiling, ceiling))  # roundings


def _decibels(values: GPUArray) -> GPUArray:
    return elementwise.mul(log10(elementwise.maximum(elementwise.abs(values), _FLOOR)), 20.0)


def _gain(decibels: GPUArray) -> GPUArray:
    return elementwise.power(10.0, elementwise.mul(decibels, 0.05))


def _decay(seconds: float, sr: float, name: str, what: str) -> float:
    """The factor that a level falls by in one sample, where it falls by e in so many seconds."""
    if seconds < 0:
        raise ValueError(f"{what}: {name} is {seconds} s and must not be negative")
    return exp(-1 / (seconds * sr)) if seconds else 0.0


def _running_maximum(x: GPUArray, width: int) -> GPUArray:
    """Of each sample and the width - 1 after it; that much shorter. Windows double until they are wide enough."""
    have = 1
    while have < width:
        step = min(have, width - have)
        x = elementwise.maximum(x[..., :-step], x[..., step:])
        have += step
    return x
