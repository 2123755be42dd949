"""Settings of a transcription, checked when they are made."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

from pygpukit.asr.languages import code_of
from pygpukit.asr.speech import SpeechOptions
from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.sizes import whole

TEMPERATURES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_SPEECH = SpeechOptions(min_speech_duration_ms=0, min_silence_duration_ms=2000, speech_pad_ms=400)


@dataclass(frozen=True)
class Options:
    """Settings of a transcription. InvalidSpecError names the one that cannot be.

    language: a code or its English name, None to hear it from the first window. task: "transcribe", or "translate"
    into English.
    beam_size, patience: the search at temperature 0: how many sequences it keeps, and how many of those it waits
    for; 1 is greedy. best_of: how many are drawn above it. temperature: one, or those that are tried in turn while
    a window repeats itself (compression_ratio_threshold) or is improbable (log_prob_threshold); None for no such
    limit. no_speech_threshold: windows above it that are improbable, too, or have nothing to hear, are left out.
    condition_on_previous_text: the text so far is the prompt of the next window, unless it was found above
    prompt_reset_on_temperature. initial_prompt: text before the first, or its token ids. timestamps: whether the
    model tells times; without, a window is one segment. word_timestamps: the times of words, too. max_length: most
    tokens of a window. seed: of what is drawn. vad_filter: only what Silero's detector takes for speech is heard,
    joined; times are of the whole sound; "energy" takes what is loud for speech and needs no model. vad_parameters:
    fields of SpeechOptions, of which min_speech_duration_ms is 0, min_silence_duration_ms 2000 and speech_pad_ms
    400 here by default.
    """

    language: str | None = None
    task: str = "transcribe"
    beam_size: int = 1
    patience: float = 1.0
    best_of: int = 5
    temperature: float | Sequence[float] = TEMPERATURES
    compression_ratio_threshold: float | None = 2.4
    log_prob_threshold: float | None = -1.0
    no_speech_threshold: float | None = 0.6
    condition_on_previous_text: bool = True
    prompt_reset_on_temperature: float = 0.5
    initial_prompt: str | Sequence[int] | None = None
    timestamps: bool = True
    max_initial_timestamp: float = 1.0
    word_timestamps: bool = False
    max_length: int = 448
    seed: int = 0
    vad_filter: bool | str = False
    vad_parameters: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        for name in ("beam_size", "best_of", "max_length", "seed"):
            object.__setattr__(self, name, whole(getattr(self, name), name, "a whole number"))
        for name in ("patience", "max_initial_timestamp", "prompt_reset_on_temperature"):
            if not isinstance(getattr(self, name), Real):
                raise InvalidSpecError(f"{name} is {getattr(self, name)!r}, must be a number", name)
        if self.language is not None:
            object.__setattr__(self, "language", code_of(self.language))
        for name in ("beam_size", "best_of"):
            if not 1 <= getattr(self, name) <= 64:
                raise InvalidSpecError(f"{name} is {getattr(self, name)}, must be 1 to 64", name)
        for value in self.temperatures:
            if not 0 <= value < math.inf:
                raise InvalidSpecError(f"temperature is {value}, must be 0 or more", "temperature")
        if not self.temperatures:
            raise InvalidSpecError("temperature is empty, must be a number or some of them", "temperature")
        if not 0 < self.patience < math.inf:
            raise InvalidSpecError(f"patience is {self.patience}, must be above 0", "patience")
        if not 0 <= self.max_initial_timestamp <= 30:
            raise InvalidSpecError(
                f"max_initial_timestamp is {self.max_initial_timestamp}, must be 0 to 30 seconds",
                "max_initial_timestamp",
            )
        if self.max_length < 2:
            raise InvalidSpecError(f"max_length is {self.max_length}, must be 2 or more", "max_length")
        if not 0 <= self.seed < 2**64:
            raise InvalidSpecError(f"seed is {self.seed}, must be of 0 to 2^64 - 1", "seed")
        if self.vad_filter not in (False, True, "silero", "energy"):
            raise InvalidSpecError(
                f'vad_filter is {self.vad_filter!r}, must be True, False, "silero" or "energy"', "vad_filter"
            )
        if self.initial_prompt is not None and not isinstance(self.initial_prompt, str):
            object.__setattr__(self, "initial_prompt", _ids(self.initial_prompt))
        if self.word_timestamps and not self.timestamps:
            raise InvalidSpecError("word_timestamps needs timestamps=True", "word_timestamps")
        if self.vad_parameters and not self.vad_filter:
            raise InvalidSpecError("vad_parameters needs vad_filter=True", "vad_parameters")
        _ = self.speech  # its fields are checked

    @property
    def speech(self) -> SpeechOptions:
        """The settings of speech detection for vad_filter."""
        return _SPEECH.changed(self.vad_parameters or {})

    @property
    def temperatures(self) -> tuple[float, ...]:
        """Those that are tried, in order."""
        values: Any = self.temperature
        several = [values] if isinstance(values, str | Real) else list(values)
        if not all(isinstance(value, Real) for value in several):
            raise InvalidSpecError(f"temperature is {values!r}, must be a number or some of them", "temperature")
        return tuple(map(float, several))


def _ids(tokens: Any) -> tuple[int, ...]:
    try:
        ids = tuple(operator.index(token) for token in tokens)
    except TypeError:
        raise InvalidSpecError(
            f"initial_prompt is {type(tokens).__name__}, must be a text or a list of token ids", "initial_prompt"
        ) from None
    if any(token < 0 for token in ids):
        raise InvalidSpecError(f"initial_prompt has token {min(ids)}, token ids are 0 or more", "initial_prompt")
    return ids
