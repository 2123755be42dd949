"""trim and split: where a signal is silent, by its level in dB."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pygpukit.ops.audio.inputs import finite
from pygpukit.ops.audio.levels import rms
from pygpukit.ops.audio.returned import like

__all__ = ["split", "trim"]

Array = np.ndarray[Any, Any]


def trim(
    y: Any,
    *,
    top_db: float = 60,
    ref: float | Callable[[Array], float] = np.max,
    frame_length: int = 2048,
    hop_length: int = 512,
    aggregate: Callable[..., Array] = np.max,
) -> tuple[Any, Array]:
    """(y without silence at both ends, [start, end]), as librosa.effects.trim(); y as a view, the index of NumPy.

    y: (..., samples), array or AudioBuffer. Silent is what is top_db below ref (the loudest frame, a number, or a
    function of the frames' levels), by the rms of frames, of all channels by aggregate. Waits for the device. A signal
    that is all silent becomes empty. Raises ValueError (NaN, infinity), ShapeError, DTypeError.
    """
    values = finite(y, "trim")
    heard = np.flatnonzero(_heard(values, top_db, ref, frame_length, hop_length, aggregate))
    start, end = 0, 0
    if len(heard):
        start, end = int(heard[0]) * hop_length, min(values.shape[-1], int(heard[-1] + 1) * hop_length)
    return like(y, values[..., start:end]), np.array([start, end])


def split(
    y: Any,
    *,
    top_db: float = 60,
    ref: float | Callable[[Array], float] = np.max,
    frame_length: int = 2048,
    hop_length: int = 512,
    aggregate: Callable[..., Array] = np.max,
) -> Array:
    """The pieces that are not silent, (pieces, 2) in samples, as librosa.effects.split(); NumPy. As trim()."""
    values = finite(y, "split")
    heard = _heard(values, top_db, ref, frame_length, hop_length, aggregate)
    edges = np.flatnonzero(np.diff(np.concatenate(([0], heard.astype(int), [0]))))
    return np.minimum(edges * hop_length, values.shape[-1]).reshape(-1, 2)


def _heard(
    y: Any,
    top_db: float,
    ref: float | Callable[[Array], float],
    frame_length: int,
    hop_length: int,
    aggregate: Callable[..., Array],
) -> Array:
    """For each frame whether it is above the threshold."""
    level = rms(y=y, frame_length=frame_length, hop_length=hop_length).to_numpy()[..., 0, :].astype(np.float64)
    reference = np.abs(ref(level)) if callable(ref) else abs(ref)
    decibels = 20 * np.log10(np.maximum(level, 1e-5)) - 20 * np.log10(max(float(reference), 1e-5))
    if decibels.ndim > 1:
        decibels = aggregate(decibels.reshape(-1, decibels.shape[-1]), axis=0)
    return np.asarray(decibels > -top_db)
