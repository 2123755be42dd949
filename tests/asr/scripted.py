"""Tokens and answers without a model, for tests of what decides: words by number, and courses that are answered."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pygpukit.asr.options import Options
from pygpukit.asr.results import TranscriptionSegment
from pygpukit.asr.search import Hypothesis
from pygpukit.asr.transcript import Decode, Decoded, transcript

TEXT, FIRST_TIME = 20, 30  # ids below are words; from here on timestamps


class Tokens:
    """What WhisperTokens says, of words "w0" to "w19"."""

    eot, sot, previous, no_speech, no_timestamps, first_time = 20, 21, 22, 23, 29, FIRST_TIME
    special = tuple(range(21, 29))
    vocab = 30 + 1501
    multilingual = False

    def start(self, language: str | None, task: str) -> list[int]:
        return [self.sot]

    def encode(self, text: str) -> list[int]:
        return [int(word[1:]) for word in text.split()]

    def decode(self, tokens: Iterable[int]) -> str:
        return "".join(f" w{token}" for token in tokens if token < TEXT)


def at(seconds: float) -> int:
    """The timestamp's token."""
    return FIRST_TIME + round(seconds / 0.02)


def answered(
    frames: int, answer: Callable[[Decode], Decoded], **settings: Any
) -> tuple[list[TranscriptionSegment], list[Decode]]:
    """The segments of a course, and what it asked."""
    course = transcript(frames, 3000, 448, Tokens(), Options(**settings))  # type: ignore[arg-type]
    segments, asked, reply = [], [], None
    while True:
        try:
            told = course.send(reply)
        except StopIteration:
            return segments, asked
        reply = None
        if isinstance(told, TranscriptionSegment):
            segments.append(told)
        else:
            assert isinstance(told, Decode)
            asked.append(told)
            reply = answer(told)


def said(*tokens: int, average: float = -0.2, no_speech: float = 0.0) -> Decoded:
    """An answer of these tokens."""
    return Decoded(Hypothesis(list(tokens), average * (len(tokens) + 1)), no_speech)
