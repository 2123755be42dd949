"""Speech alone: the pieces of a sound that have speech, one after the other, and when what is found in them was."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pygpukit.asr.features import RATE
from pygpukit.asr.results import TranscriptionSegment

if TYPE_CHECKING:
    Samples = np.ndarray[Any, Any]


class Speech:
    """samples: the pieces, given by their first samples and ends, joined."""

    def __init__(self, sound: Samples, pieces: Sequence[tuple[int, int]]) -> None:
        self.samples = np.concatenate([np.zeros(0, np.float32), *(sound[start:end] for start, end in pieces)])
        lengths = np.array([end - start for start, end in pieces], np.int64)
        self._ends = np.cumsum(lengths).tolist()  # in the joined sound
        self._left_out = [start - before for (start, _), before in zip(pieces, [0, *self._ends], strict=False)]

    def restored(self, segment: TranscriptionSegment) -> TranscriptionSegment:
        """The segment with its times in the whole sound. A word stands in the piece that has its middle."""
        words = []
        for word in segment.words:
            piece = self._piece((word.start + word.end) / 2)
            words.append(replace(word, start=self._time(word.start, piece), end=self._time(word.end, piece)))
        if words:
            return replace(segment, start=words[0].start, end=words[-1].end, words=words)
        start = self._time(segment.start, self._piece(segment.start))
        return replace(segment, start=start, end=self._time(segment.end, self._piece(segment.end, ends=True)))

    def _piece(self, time: float, ends: bool = False) -> int:
        """Where one piece meets the next, what begins is of the next, and what ends of the one before."""
        find = bisect_left if ends else bisect_right
        return min(find(self._ends, round(time * RATE)), len(self._ends) - 1)

    def _time(self, time: float, piece: int) -> float:
        return time + self._left_out[piece] / RATE
