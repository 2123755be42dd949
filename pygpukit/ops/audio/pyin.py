"""pyin: the fundamental frequency as the likeliest path through YIN's candidates (Mauch, Dixon 2014)."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, log2
from typing import Any

import numpy as np

from pygpukit.core.extras import need
from pygpukit.ops.audio import yin_curve
from pygpukit.ops.audio.documented import without_effect
from pygpukit.ops.audio.inputs import finite, rate
from pygpukit.ops.audio.pitch import host_shifts
from pygpukit.ops.audio.viterbi import Bands, decoded

__all__ = ["pyin"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class _Prior:
    """Prior probability of each threshold, and the weight of a trough's place among those below it."""

    thresholds: Array
    weights: Array
    boltzmann: float
    no_trough: float


def pyin(
    y: Any,
    *,
    fmin: float,
    fmax: float,
    sr: float | None = None,
    frame_length: int = 2048,
    hop_length: int | None = None,
    n_thresholds: int = 100,
    beta_parameters: tuple[float, float] = (2, 18),
    boltzmann_parameter: float = 2,
    resolution: float = 0.1,
    max_transition_rate: float = 35.92,
    switch_prob: float = 0.01,
    no_trough_prob: float = 0.01,
    fill_na: float | None = float("nan"),
    center: bool = True,
    pad_mode: str = "constant",
    win_length: int | None = None,
) -> tuple[Array, Array, Array]:
    """(f0, voiced, probability of voice) of each frame, as librosa.pyin() (Mauch, Dixon 2014); NumPy arrays.

    y: (..., samples); results (..., frames), float64 in Hz, bool, float64. Arguments as yin(), and: n_thresholds, with
    beta_parameters' distribution; boltzmann_parameter: how much smaller periods are preferred; resolution of the
    frequencies in semitones; max_transition_rate in octaves a second; switch_prob of voice to none and back; fill_na:
    f0 of frames without voice, None for the best guess. The curves come from the device; candidates and the path
    (Viterbi), sequential and small, are made on the host, on either backend. Needs SciPy (extra audio). Errors as
    yin().
    """
    without_effect(win_length, "pyin")
    sr = rate(sr, y)
    periods = yin_curve.check_periods(fmin, fmax, sr, frame_length, hop_length, "pyin")
    beta = need("scipy.special", "audio", "pyin()").betainc
    curves = yin_curve.curve(finite(y, "pyin"), periods, center, pad_mode, "pyin").to_numpy().astype(np.float64)
    thresholds = np.linspace(0, 1, n_thresholds + 1)
    weights = np.diff(beta(*beta_parameters, thresholds))
    prior = _Prior(thresholds[1:], weights, boltzmann_parameter, no_trough_prob)
    per_semitone = ceil(1 / resolution)
    pitches = floor(12 * per_semitone * log2(fmax / fmin)) + 1
    width = round(max_transition_rate * 12 * periods.hop_length / sr) * per_semitone + 1
    bands = Bands(pitches, width, switch_prob)
    frequencies = fmin * 2 ** (np.arange(pitches) / (12 * per_semitone))

    f0, probability = np.empty(curves.shape[:-1]), np.empty(curves.shape[:-1])
    voiced = np.empty(curves.shape[:-1], bool)
    for line in np.ndindex(curves.shape[:-2]):
        likely = _candidates(curves[line], prior)
        frame, index = np.nonzero(likely)
        f0_line = sr / (periods.shortest + index + host_shifts(curves[line])[frame, index])
        place = np.clip(np.round(12 * per_semitone * np.log2(f0_line / fmin)), 0, pitches).astype(int)
        observed = np.zeros((len(likely), 2 * pitches))
        observed[frame, place] = likely[frame, index]
        probability[line] = np.clip(observed[:, :pitches].sum(1), 0, 1)
        observed[:, pitches:] = ((1 - probability[line]) / pitches)[:, None]
        states = decoded(observed, bands)
        voiced[line] = states < pitches
        f0[line] = frequencies[states % pitches]
    if fill_na is not None:
        f0[~voiced] = fill_na
    return f0, voiced, probability


def _candidates(curve: Array, prior: _Prior) -> Array:
    """(frames, periods): how likely each trough of a frame's curve is its period."""
    likely = np.zeros_like(curve)
    trough = np.empty(curve.shape, bool)
    trough[:, 0] = curve[:, 0] < curve[:, 1]
    trough[:, 1:-1] = (curve[:, 1:-1] < curve[:, :-2]) & (curve[:, 1:-1] <= curve[:, 2:])
    trough[:, -1] = curve[:, -1] < curve[:, -2]
    for frame in range(len(curve)):
        (index,) = np.nonzero(trough[frame])
        if not len(index):
            continue
        heights = curve[frame, index]
        below = heights[:, None] < prior.thresholds
        place, count = np.cumsum(below, 0) - 1, np.maximum(np.count_nonzero(below, 0), 1)
        scale = np.expm1(-prior.boltzmann) / np.expm1(-prior.boltzmann * count)
        chances = np.where(below, scale * np.exp(-prior.boltzmann * place), 0) @ prior.weights
        lowest = np.argmin(heights)
        chances[lowest] += prior.no_trough * prior.weights[: np.count_nonzero(~below[lowest])].sum()
        likely[frame, index] = chances
    return likely
