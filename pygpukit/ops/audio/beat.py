"""beat_track: the beats that fit onsets and tempo best, by dynamic programming (Ellis 2007). The path is sequential and
small: it is made on the host, on either backend."""

from __future__ import annotations

from typing import Any

import numpy as np

from pygpukit.array.factory import from_numpy
from pygpukit.ops.audio.inputs import finite, positive, rate
from pygpukit.ops.audio.onset import onset_strength
from pygpukit.ops.audio.tempo import tempo
from pygpukit.ops.audio.units import positions

__all__ = ["beat_track"]

Array = np.ndarray[Any, Any]


def beat_track(
    *,
    y: Any = None,
    sr: float | None = None,
    onset_envelope: Any = None,
    hop_length: int = 512,
    start_bpm: float = 120.0,
    tightness: float = 100,
    trim: bool = True,
    bpm: Any = None,
    prior: Any = None,
    units: str = "frames",
    sparse: bool = True,
) -> tuple[Any, Array]:
    """(tempo, beats), as librosa.beat.beat_track() (Ellis 2007); NumPy.

    y, or its onset_envelope (..., frames). Beats are positions in units ("frames", "samples", "time") of one signal, or
    without sparse True and False, (..., frames). bpm: the tempo, one or one a frame (..., frames); found by tempo()
    when left out. tightness: how much beats keep to it. trim: weak ones at the ends are left out. Raises ValueError.
    """
    what, sr = "beat_track", rate(sr, y)
    hop_length = positive(hop_length, "hop_length", what)
    if onset_envelope is None:
        if y is None:
            raise ValueError(f"{what}: give y, a signal, or onset_envelope")
        onset_envelope = onset_strength(y=finite(y, what), sr=sr, hop_length=hop_length, aggregate=np.median)
    envelope = np.asarray(onset_envelope.to_numpy() if hasattr(onset_envelope, "to_numpy") else onset_envelope)
    if sparse and envelope.ndim != 1:
        raise ValueError(f"{what}: onset_envelope has shape {envelope.shape}; positions are of one, pass sparse=False")
    if tightness <= 0:
        raise ValueError(f"{what}: tightness is {tightness} and must be positive")
    if not np.isfinite(envelope).all():
        raise ValueError(f"{what}: the onset strength is NaN or infinite somewhere; replace it, with gp.where for one")
    if not envelope.any():
        return (0.0, np.zeros(0, int)) if sparse else (np.zeros(envelope.shape[:-1]), np.zeros(envelope.shape, bool))
    if bpm is None:
        envelope_array = from_numpy(np.ascontiguousarray(envelope))
        bpm = tempo(onset_envelope=envelope_array, sr=sr, hop_length=hop_length, start_bpm=start_bpm, prior=prior)
    rates = np.atleast_1d(np.asarray(bpm, np.float64))
    if np.any(rates <= 0):
        raise ValueError(f"{what}: bpm is {bpm} and must be positive")
    if rates.shape[-1] not in (1, envelope.shape[-1]):
        raise ValueError(
            f"{what}: bpm has shape {rates.shape}; it is one number or one for each of {envelope.shape[-1]}"
        )
    rates = np.broadcast_to(rates, (*envelope.shape[:-1], rates.shape[-1]))
    beats = np.zeros(envelope.shape, bool)
    for line in np.ndindex(envelope.shape[:-1]):
        periods = np.round(sr / hop_length * 60.0 / rates[line])
        beats[line] = _tracked(envelope[line].astype(np.float64), periods, tightness, trim)
    return bpm, (positions(np.flatnonzero(beats), units, sr, hop_length, what) if sparse else beats)


def _tracked(onsets: Array, periods: Array, tightness: float, trim: bool) -> Array:
    """periods: frames a beat, one or one a frame."""
    deviation = onsets.std(ddof=1) if len(onsets) > 1 else 0.0
    # The tiny number is float32's, as librosa has it: over float64's even one onset overflows where all are alike.
    score = _local(onsets / (deviation + np.finfo(np.float32).tiny), periods)
    back, total = _path(score, periods, tightness)
    beats = np.zeros(len(onsets), bool)
    frame = _last(total)
    while frame >= 0:
        beats[frame] = True
        frame = back[frame]
    return _trimmed(score, beats, trim)


def _local(onsets: Array, periods: Array) -> Array:
    """The fit of each frame to a beat: onsets around it, weighted by a bell of a 32nd of the period."""
    count = len(onsets)
    score = np.empty(count)
    for frame in range(count):
        period = periods[frame if len(periods) > 1 else 0]
        reach = int(period)
        near = np.arange(max(1, frame - reach), min(count, frame + reach + 1))  # librosa's sum never has frame 0
        score[frame] = np.exp(-0.5 * ((frame - near) * 32.0 / period) ** 2) @ onsets[near]
    return score


def _path(score: Array, periods: Array, tightness: float) -> tuple[Array, Array]:
    """The beat before each frame, -1 where there is none, and the sum of the best path to it."""
    back, total = np.full(len(score), -1), score.copy()
    min_score, started = 0.01 * score.max(), False
    for frame in range(len(score)):
        period = periods[frame if len(periods) > 1 else 0]
        earlier = np.arange(frame - int(np.round(period / 2)), max(frame - int(2 * period) - 1, -1), -1)
        earlier = earlier[earlier < frame]
        last = -1
        if len(earlier):
            steps = total[earlier] - tightness * (np.log(frame - earlier) - np.log(period)) ** 2
            best = int(np.argmax(steps))
            last, total[frame] = int(earlier[best]), score[frame] + steps[best]
        started = started or score[frame] >= min_score
        if started:
            back[frame] = last
    return back, total


def _last(total: Array) -> int:
    """The last local maximum of at least half their median; the last frame if there is none."""
    peak = np.zeros(len(total), bool)
    if len(total) > 1:
        peak[1:-1] = (total[1:-1] > total[:-2]) & (total[1:-1] >= total[2:])
        peak[-1] = total[-1] > total[-2]
    if not peak.any():
        return len(total) - 1
    strong = np.flatnonzero(peak & (total >= 0.5 * np.median(total[peak])))
    return int(strong[-1]) if len(strong) else len(total) - 1


def _trimmed(score: Array, beats: Array, trim: bool) -> Array:
    """Without the beats before the first frame and after the last one that is not weak."""
    weight = np.convolve(score[beats], np.hanning(5))[2 : len(score) + 2]
    min_strength = 0.5 * np.sqrt((weight**2).mean()) if trim else 0.0
    strong = np.flatnonzero(score > min_strength)
    result = beats.copy()
    if len(strong):
        result[: strong[0]] = False
        result[strong[-1] + 1 :] = False
    else:
        result[:] = False
    return result
