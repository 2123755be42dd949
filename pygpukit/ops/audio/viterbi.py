"""The likeliest path through pitches with and without voice that move a little from frame to frame (Viterbi 1967)."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
_TINY = np.finfo(np.float64).tiny


class Bands:
    """Probabilities of going from one of `pitches` to another: a triangle of `width`, cut at the ends; with or without
    voice, which switches with probability `switch`. States are the pitches with voice, then those without."""

    def __init__(self, pitches: int, width: int, switch: float) -> None:
        if width > pitches:
            raise ValueError(
                f"pyin: {width} pitches can be reached in a frame, there are {pitches}; lower max_transition_rate or "
                "hop_length, or widen fmin and fmax"
            )
        self.pitches, self.width, self.switch = pitches, width, switch
        # The triangle's place: centred in the row of the middle pitch, as filters are padded.
        self.first = (pitches - width) // 2 + pitches // 2 + 1 - pitches

    @cached_property
    def logarithms(self) -> tuple[Array, Array]:
        """(pitches, width) each: of coming to a pitch from the k-th of those around it, with voice as it was, and with
        voice switched; ascending sources."""
        rise = np.arange(1, (self.width + 1) // 2 + 1)
        if self.width % 2:
            triangle = 2 * rise / (self.width + 1)
            triangle = np.concatenate((triangle, triangle[-2::-1]))
        else:
            triangle = (2 * rise - 1) / self.width
            triangle = np.concatenate((triangle, triangle[::-1]))
        offsets = self.first + np.arange(self.width)
        source = np.arange(self.pitches)[:, None]
        target = source + offsets
        there = (target >= 0) & (target < self.pitches)
        there &= (offsets >= -(self.width // 2)) & (offsets <= self.width // 2)
        moves = np.where(there, triangle, 0)
        moves /= moves.sum(1, keepdims=True)
        # The same by target: from target - offset, the largest offset first.
        origin = np.arange(self.pitches)[:, None] - offsets[::-1]
        valid = (origin >= 0) & (origin < self.pitches)
        reached = np.where(valid, moves[np.where(valid, origin, 0), np.arange(self.width)[::-1]], 0)
        same, switched = ((p * reached) for p in (1 - self.switch, self.switch))
        return tuple(np.where(valid, np.log(p + _TINY), -np.inf) for p in (same, switched))  # type: ignore[return-value]

    @property
    def origin(self) -> Array:
        """The first source of each target's band; may lie outside."""
        return np.arange(self.pitches) - self.first - (self.width - 1)


def decoded(observed: Array, bands: Bands) -> Array:
    """The states of the likeliest path. observed: (frames, 2 * pitches), probabilities. Zeros count as the smallest
    normal number, in steps, too."""
    frames, pitches = len(observed), bands.pitches
    seen = np.log(observed + _TINY)
    same, switched = bands.logarithms
    origin = bands.origin
    before, after = max(0, -int(origin[0])), max(0, int(origin[-1]) + bands.width - pitches)
    back = np.zeros((frames, 2 * pitches), np.int64)
    value = seen[0] + np.log(1 / (2 * pitches) + _TINY)
    rows = np.arange(pitches)
    for frame in range(1, frames):
        windows = [
            np.lib.stride_tricks.sliding_window_view(
                np.concatenate((np.full(before, -np.inf), part, np.full(after, -np.inf))), bands.width
            )[origin[0] + before :][:pitches]
            for part in (value[:pitches], value[pitches:])
        ]
        far = int(np.argmax(value))
        following = np.empty_like(value)
        for voice in (0, 1):
            best, source = np.full(pitches, value[far] + np.log(_TINY)), np.full(pitches, far)
            for other in (1, 0):  # ascending sources win ties: those with voice come last and take them
                steps = windows[other] + (same if voice == other else switched)
                choice = np.argmax(steps, 1)
                height = steps[rows, choice]
                better = height >= best
                best = np.where(better, height, best)
                source = np.where(better, origin + choice + other * pitches, source)
            here = slice(voice * pitches, (voice + 1) * pitches)
            following[here], back[frame, here] = seen[frame, here] + best, source
        value = following
    states = np.empty(frames, np.int64)
    if frames:
        states[-1] = np.argmax(value)
    for frame in range(frames - 1, 0, -1):
        states[frame - 1] = back[frame, states[frame]]
    return states
