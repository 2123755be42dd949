"""Silence by energy alone: a check of windows in which a model doubts that anything is said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pygpukit.asr.speech import CHUNK

if TYPE_CHECKING:
    Samples = np.ndarray[Any, Any]

_FRAME = 480  # samples: 30 ms
_FLOOR = 1e-3  # root mean square, -60 dB of full scale
_BELOW = 0.01  # of the loudest frame of the whole sound: 40 dB
_STEADY = 2.0  # between loud and quiet frames of one sound that goes on; speech has ten times that


class Loudness:
    """Of a sound, float32 (n,) at 16 kHz on the host, in frames of 30 ms."""

    def __init__(self, samples: Samples) -> None:
        frames = samples[: samples.size // _FRAME * _FRAME].reshape(-1, _FRAME).astype(np.float64)
        # Without the mean: a direct current is nothing to hear.
        self._levels = np.sqrt(frames.var(axis=1)) if frames.size else np.zeros(0)
        self._threshold = max(_FLOOR, _BELOW * float(self._levels.max(initial=0.0)))

    def nothing(self, start: float, end: float) -> bool:
        """True if from one time to another, in seconds, nothing is louder than the floor, or one steady noise goes on.

        Of less than ten frames nothing is told.
        """
        frames = self._levels[round(start * 16000 / _FRAME) : round(end * 16000 / _FRAME)]
        if frames.size < 10:
            return False
        loud, quiet = np.percentile(frames, (99, 10))
        return bool(np.sort(frames)[-3] < self._threshold or loud < _STEADY * quiet)


def chances(samples: Samples) -> Samples:
    """Probabilities of speech by loudness, one for each 512 samples: 1 where it is loud, 0 elsewhere.

    Loud is a third of the way, in dB, from the quiet tenth of the chunks to the loud one, and above the floor; of a
    sound in which those are less than 6 dB apart nothing is.
    """
    chunks = np.pad(samples, (0, -samples.size % CHUNK)).reshape(-1, CHUNK).astype(np.float64)
    levels = np.maximum(np.sqrt(chunks.var(axis=1)), 1e-9)
    quiet, loud = np.log(np.percentile(levels, (10, 95))) if levels.size else (0.0, 0.0)
    if loud - quiet < np.log(_STEADY):
        return np.zeros(levels.size)
    return (levels > max(_FLOOR, float(np.exp(quiet + (loud - quiet) / 3)))).astype(np.float64)
