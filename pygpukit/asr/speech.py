"""Where somebody speaks, from the probabilities of a detector's chunks: SpeechOptions, and pieces()."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any

from pygpukit.core.errors import InvalidSpecError

CHUNK = 512  # samples that a probability stands for
_PER_MS = 16  # samples
_PAUSE = 98 * _PER_MS  # samples of silence at which a piece that is too long may be cut


@dataclass(frozen=True)
class SpeechOptions:
    """Names, defaults and meaning as Silero's get_speech_timestamps() has them. Raises InvalidSpecError.

    Speech begins at a probability of threshold or more, and ends where it was below neg_threshold (threshold - 0.15, at
    least 0.01, by default) for min_silence_duration_ms without coming back to threshold. Pieces of at most
    min_speech_duration_ms are left out; one longer than max_speech_duration_s is cut at the longest pause of 98 ms that
    it has, or where it is so long. Each piece gets speech_pad_ms more at both ends, up to the middle of a pause.
    """

    threshold: float = 0.5
    neg_threshold: float | None = None
    min_speech_duration_ms: float = 250
    max_speech_duration_s: float = math.inf
    min_silence_duration_ms: float = 100
    speech_pad_ms: float = 30

    def __post_init__(self) -> None:
        for name in ("threshold", "neg_threshold"):
            value = getattr(self, name)
            if value is not None and not 0 < value < 1:
                raise InvalidSpecError(f"{name} is {value}, must be above 0 and below 1", name)
        if self.lower_threshold > self.threshold:
            raise InvalidSpecError(
                f"neg_threshold is {self.lower_threshold}, must be at most threshold, {self.threshold}", "neg_threshold"
            )
        for name in ("min_speech_duration_ms", "min_silence_duration_ms", "speech_pad_ms"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InvalidSpecError(f"{name} is {getattr(self, name)}, must be 0 ms or more", name)
        if not self.longest > 0:
            raise InvalidSpecError(
                f"max_speech_duration_s is {self.max_speech_duration_s}, must be longer than a chunk of 32 ms and "
                f"twice speech_pad_ms, {self.speech_pad_ms}",
                "max_speech_duration_s",
            )

    def changed(self, settings: Mapping[str, Any]) -> SpeechOptions:
        """With other values for some fields. Raises InvalidSpecError for a name that is none, too."""
        known = [field.name for field in fields(self)]
        for name in settings:
            if name not in known:
                raise InvalidSpecError(f"there is no setting {name!r} of speech; there are {', '.join(known)}", name)
        return replace(self, **settings)

    @property
    def lower_threshold(self) -> float:
        """Below it nobody speaks."""
        return max(self.threshold - 0.15, 0.01) if self.neg_threshold is None else self.neg_threshold

    @property
    def longest(self) -> float:
        """Samples of a piece before it is cut and padded."""
        return 1000 * _PER_MS * self.max_speech_duration_s - CHUNK - 2 * self.speech_pad_ms * _PER_MS


def pieces(probabilities: Iterable[float], samples: int, options: SpeechOptions) -> list[tuple[int, int]]:
    """The pieces with speech of a sound of so many samples, in order, each from its first sample up to its end."""
    machine = _Machine(options)
    for number, probability in enumerate(probabilities):
        machine.take(number * CHUNK, probability)
    if machine.start is not None:
        machine.end(samples)
    return _padded(machine.spans, samples, options.speech_pad_ms * _PER_MS)


class _Machine:
    """start: of the piece that goes on; quiet: since when it may be over; pauses: those it had, with their lengths."""

    def __init__(self, options: SpeechOptions) -> None:
        self._options = options
        self.spans: list[list[int]] = []
        self.start: int | None = None
        self.quiet: int | None = None
        self.pauses: list[tuple[int, int]] = []

    def take(self, at: int, probability: float) -> None:
        """The chunk that begins at a sample."""
        options = self._options
        if probability >= options.threshold:
            if self.quiet is not None and at - self.quiet > _PAUSE:
                self.pauses.append((self.quiet, at - self.quiet))
            self.quiet = None
            if self.start is None:
                self.start = at
                return
        if self.start is None or (at - self.start > options.longest and not self._cut(at)):
            return
        if probability < options.lower_threshold:
            self.quiet = at if self.quiet is None else self.quiet
            if at - self.quiet >= options.min_silence_duration_ms * _PER_MS:
                self.end(self.quiet)

    def end(self, at: int) -> None:
        """The piece is over; a short one is none."""
        assert self.start is not None
        if at - self.start > self._options.min_speech_duration_ms * _PER_MS:
            self.spans.append([self.start, at])
        self._begin(None)

    def _cut(self, at: int) -> bool:
        """The piece is too long. Whether another begins at the end of its longest pause; else none goes on."""
        assert self.start is not None
        if not self.pauses:
            self.spans.append([self.start, at])
            self._begin(None)
            return False
        pause, length = max(self.pauses, key=lambda pause_length: pause_length[1])
        self.spans.append([self.start, pause])
        self._begin(pause + length)
        return True

    def _begin(self, start: int | None) -> None:
        self.start, self.quiet, self.pauses = start, None, []


def _padded(spans: list[list[int]], samples: int, pad: float) -> list[tuple[int, int]]:
    for this, following in pairwise(spans):
        silence = following[0] - this[1]
        added = silence // 2 if silence < 2 * pad else pad
        this[1] = int(min(samples, this[1] + added))
        following[0] = int(max(0, following[0] - added))
    if spans:
        spans[0][0] = int(max(0, spans[0][0] - pad))
        spans[-1][1] = int(min(samples, spans[-1][1] + pad))
    return [(start, end) for start, end in spans]
