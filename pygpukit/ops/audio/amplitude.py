"""Amplitudes: normalize, fade, noise_gate."""

from __future__ import annotations

from typing import Any

import numpy as np

from pygpukit.array.factory import from_numpy
from pygpukit.ops import elementwise
from pygpukit.ops.audio.inputs import floats, rate
from pygpukit.ops.audio.returned import in_place, like
from pygpukit.ops.audio.scaling import TINY, norms
from pygpukit.ops.elementwise import logic

__all__ = ["fade", "noise_gate", "normalize"]

_SHAPES = {
    "linear": lambda t: t,
    "quarter_sine": lambda t: np.sin(np.pi / 2 * t),
    "half_sine": lambda t: 0.5 - 0.5 * np.cos(np.pi * t),
    "exponential": lambda t: np.exp2(10 * (t - 1)) * t,
}


def normalize(
    S: Any,
    *,
    norm: float | None = np.inf,
    axis: int | None = 0,
    threshold: float | None = None,
    fill: bool | None = None,
) -> Any:
    """S over its norm along an axis (None: of all), as librosa.util.normalize(); a new array (or AudioBuffer).

    norm: inf (the largest magnitude), -inf (the smallest), 0 (how many are not 0), a positive p, or None for S itself.
    What has a norm below threshold (the type's smallest normal number) stays as it is; with fill=True becomes constant
    with norm 1, with fill=False 0. A signal's time is axis -1. NaN and infinity make what is
    divided by their norm NaN or 0. Raises ValueError, DTypeError.
    """
    what = "normalize"
    values = floats(S, f"{what}: S")
    if norm is None:
        return S
    min_norm = TINY[values.dtype.name] if threshold is None else threshold
    if min_norm <= 0:
        raise ValueError(f"{what}: threshold is {threshold} and must be positive")
    if fill and norm == 0:
        raise ValueError(f"{what}: nothing constant has norm 0; leave fill out")
    length = norms(values, norm, axis, what)
    count = values.size if axis is None else values.shape[axis]
    constant = count ** (-1.0 / norm) if 0 < norm < np.inf else 1.0
    small = logic.less(length, min_norm)
    result = elementwise.div(values, elementwise.where(small, 1.0, length))
    if fill is not None:
        result = elementwise.where(small, constant if fill else 0.0, result)
    return like(S, result)


def fade(y: Any, *, fade_in: float = 0.0, fade_out: float = 0.0, sr: float | None = None, shape: str = "linear") -> Any:
    """The signal from silence over fade_in seconds, and to silence over fade_out at its end; a new array (or
    AudioBuffer).

    sr: that of an AudioBuffer, else 22050. shape: "linear", "quarter_sine" (equal power), "half_sine", "exponential".
    Raises ValueError for another, and for fades longer than the signal; DTypeError.
    """
    what = "fade"
    values = floats(y, f"{what}: y")
    if shape not in _SHAPES:
        raise ValueError(f"{what}: shape {shape!r} is unknown; use one of {', '.join(map(repr, _SHAPES))}")
    length = values.shape[-1]
    gains = np.ones(length)
    for name, seconds in {"fade_in": fade_in, "fade_out": fade_out}.items():
        count = round(seconds * rate(sr, y))
        if not 0 <= count <= length:
            raise ValueError(f"{what}: {name} is {seconds} s, {count} samples; the signal has {length}")
        ramp = _SHAPES[shape](np.arange(count) / max(count, 1))
        if name == "fade_in":
            gains[:count] *= ramp
        else:
            gains[length - count :] *= ramp[::-1]
    return like(y, elementwise.mul(values, from_numpy(gains.astype(values.dtype.to_numpy_dtype()))))


def noise_gate(audio: Any, threshold: float = 0.01) -> Any:
    """Samples below threshold in magnitude become 0, in place; returns audio itself, as documented. Raises
    DTypeError."""
    values = floats(audio, "noise_gate: audio")
    return in_place(audio, elementwise.where(logic.less(elementwise.abs(values), threshold), 0.0, values))
