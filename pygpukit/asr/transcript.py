"""The course of a transcription: which windows are heard with which prompt, what is tried again, what is kept.

It computes nothing: transcript() is a generator that yields what it wants to know and is sent the answer, so that one
course runs alone or beside others, and with answers from anywhere.
"""

from __future__ import annotations

import zlib
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import TypeAlias

from pygpukit.asr.options import Options
from pygpukit.asr.results import TranscriptionSegment
from pygpukit.asr.search import Hypothesis
from pygpukit.asr.tokens import TIME_STEP, WhisperTokens
from pygpukit.asr.words import Aligned, placed
from pygpukit.core.errors import InvalidSpecError

FRAME = 0.01  # seconds of a frame
_PER_STEP = 2  # frames of a timestamp's step


@dataclass(frozen=True)
class Window:
    """Frames of the sound: `count` from `first` on; what it has less than the model takes is silence."""

    first: int
    count: int


@dataclass(frozen=True)
class WhichLanguage:
    """Asks for the language of a window; the answer is its code."""

    window: Window


@dataclass(frozen=True)
class Decode:
    """Asks for the tokens of a window; the answer is a Decoded. attempt: how often it was tried before."""

    window: Window
    prompt: list[int]
    temperature: float
    attempt: int


@dataclass(frozen=True)
class Decoded:
    """The tokens that were found, and the probability that nobody speaks. quiet: the window has nothing to hear."""

    hypothesis: Hypothesis
    no_speech: float
    quiet: bool = False


@dataclass(frozen=True)
class Align:
    """Asks when the words of a window are spoken; the answer is an Aligned. start: the tokens that begin a transcript;
    segments: the text tokens of each."""

    window: Window
    start: list[int]
    segments: list[list[int]]
    language: str


Ask: TypeAlias = "WhichLanguage | Decode | Align"
Answer: TypeAlias = "str | Decoded | Aligned | None"
Course: TypeAlias = "Generator[Ask | TranscriptionSegment, Answer, str | None]"


def transcript(frames: int, width: int, max_tokens: int, tokens: WhisperTokens, options: Options) -> Course:
    """The course of a sound of so many frames; it yields what it asks and segments, and returns the language.

    width: frames of a window. max_tokens: positions that the decoder has.
    """
    language = options.language
    if language is None:
        language = "en"
        if tokens.multilingual and frames:
            language = str((yield WhichLanguage(Window(0, min(width, frames)))))
    start = tokens.start(language, options.task)
    said = _before_all(tokens, options)
    seek, spoken_until = 0, 0.0
    while seek < frames:
        window = Window(seek, min(width, frames - seek))
        prompt = _prompt(said, start, max_tokens, tokens, options)
        decoded, temperature = yield from _decode(window, prompt, tokens, options)
        if _silent(decoded, options):
            seek += window.count
            continue
        parts, step = split(decoded.hypothesis.tokens, window, tokens.first_time)
        if options.word_timestamps:
            texts = [[token for token in part.tokens if token < tokens.eot] for part in parts]
            aligned = yield Align(window, start, texts, language)
            assert isinstance(aligned, Aligned)
            parts, spoken_until = placed(parts, aligned, window.first * FRAME, spoken_until)
            step = _after_words(parts, window, step, decoded.hypothesis.tokens, tokens.first_time)
        figures = {
            "temperature": temperature,
            "average_logprob": decoded.hypothesis.average,
            "compression": compression(tokens.decode(decoded.hypothesis.tokens)),
            "no_speech": decoded.no_speech,
        }
        for part in parts:
            text = tokens.decode(part.tokens)
            if part.start == part.end or not text.strip():
                continue
            said += part.tokens
            yield replace(part, text=text, **figures)  # type: ignore[arg-type]
        if not options.condition_on_previous_text or temperature > options.prompt_reset_on_temperature:
            said = []
        seek += step
    return language


def _before_all(tokens: WhisperTokens, options: Options) -> list[int]:
    """The ids of what stands before the first window. Raises InvalidSpecError for one that is no token."""
    prompt = options.initial_prompt
    if prompt is None or isinstance(prompt, str):
        return tokens.encode(" " + prompt.strip()) if prompt and prompt.strip() else []
    for token in prompt:
        if token >= tokens.vocab:
            raise InvalidSpecError(
                f"initial_prompt has token {token}, the model has tokens 0 to {tokens.vocab - 1}", "initial_prompt"
            )
    return list(prompt)


def split(tokens: list[int], window: Window, first_time: int) -> tuple[list[TranscriptionSegment], int]:
    """A window's tokens as segments without text, and how many frames on the next window begins.

    Segments end where two timestamps meet. What follows the last of those is heard again by the next window, unless it
    is a single timestamp, after which there is no speech.
    """
    begin = window.first * FRAME

    def at(token: int) -> float:
        return begin + (token - first_time) * TIME_STEP

    ends_single = _ends_single(tokens, first_time)
    cuts = [i for i in range(1, len(tokens)) if tokens[i] >= first_time and tokens[i - 1] >= first_time]
    if not cuts:
        times = [token for token in tokens if token >= first_time]
        until = at(times[-1]) if times and times[-1] != first_time else begin + window.count * FRAME
        return [TranscriptionSegment("", begin, until, tokens)], window.count
    if ends_single:
        cuts.append(len(tokens))
    parts = [tokens[a:b] for a, b in zip([0, *cuts], cuts, strict=False)]
    segments = [TranscriptionSegment("", at(part[0]), at(part[-1]), part) for part in parts]
    step = window.count if ends_single else (tokens[cuts[-1] - 1] - first_time) * _PER_STEP
    return segments, step if step > 0 else window.count


def _ends_single(tokens: list[int], first_time: int) -> bool:
    return len(tokens) >= 2 and tokens[-2] < first_time <= tokens[-1]


def _after_words(
    parts: list[TranscriptionSegment], window: Window, step: int, tokens: list[int], first_time: int
) -> int:
    """Number of frames until the next window begins: where the last word ends, if more may follow it."""
    ends = [part.words[-1].end for part in parts if part.words] or [part.end for part in parts]
    if _ends_single(tokens, first_time) or not ends:
        return step
    last_word_frame = round(ends[-1] / FRAME) - window.first
    return last_word_frame if last_word_frame > 0 else step


def compression(text: str) -> float:
    """The compression ratio of a text; large where it repeats itself."""
    raw = text.strip().encode()
    return len(raw) / len(zlib.compress(raw))


def _prompt(said: list[int], start: list[int], max_tokens: int, tokens: WhisperTokens, options: Options) -> list[int]:
    before = [tokens.previous, *said[-(max_tokens // 2 - 1) :]] if said else []
    return [*before, *start, *([] if options.timestamps else [tokens.no_timestamps])]


def _decode(
    window: Window, prompt: list[int], tokens: WhisperTokens, options: Options
) -> Generator[Ask, Answer, tuple[Decoded, float]]:
    """The first attempt that is good enough, or the most probable of those that do not repeat themselves."""
    tried: list[tuple[Decoded, float]] = []
    for attempt, temperature in enumerate(options.temperatures):
        decoded = yield Decode(window, prompt, temperature, attempt)
        assert isinstance(decoded, Decoded)
        repeats = _above(compression(tokens.decode(decoded.hypothesis.tokens)), options.compression_ratio_threshold)
        improbable = _improbable(decoded, options)
        if _silent(decoded, options) or not (repeats or improbable):
            return decoded, temperature
        tried.append((decoded, compression(tokens.decode(decoded.hypothesis.tokens))))
    plain = [candidate for candidate, ratio in tried if not _above(ratio, options.compression_ratio_threshold)]
    return max(
        plain or [candidate for candidate, _ in tried], key=lambda candidate: candidate.hypothesis.average
    ), options.temperatures[-1]


def _above(value: float, limit: float | None) -> bool:
    return limit is not None and value > limit


def _improbable(decoded: Decoded, options: Options) -> bool:
    return options.log_prob_threshold is not None and decoded.hypothesis.average < options.log_prob_threshold


def _silent(decoded: Decoded, options: Options) -> bool:
    """The model doubts that somebody speaks, and its text is improbable, or there is nothing to hear: models are sure
    of the "you" that they hear in silence."""
    if not _above(decoded.no_speech, options.no_speech_threshold):
        return False
    return decoded.quiet or not _above(decoded.hypothesis.average, options.log_prob_threshold)
