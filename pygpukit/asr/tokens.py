"""The tokens of a Whisper model: which one means what, and text of tokens."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pygpukit.core.errors import InvalidSpecError, ModelFileError

if TYPE_CHECKING:
    from pygpukit.asr.config import WhisperConfig
    from pygpukit.models.tokenizer.tokenizer import Tokenizer

TIME_STEP = 0.02  # seconds from one timestamp token to the next
_MULTILINGUAL = 51865  # tokens; models of English have one less


class WhisperTokens:
    """Ids by meaning. languages: of those that the model knows, by code ("en"); empty where it knows English only.

    Raises ModelFileError where the tokenizer has not what Whisper needs.
    """

    def __init__(self, tokenizer: Tokenizer, config: WhisperConfig) -> None:
        self._tokenizer = tokenizer
        self.vocab = config.vocab_size
        self.eot, self.sot = self._id("<|endoftext|>"), self._id("<|startoftranscript|>")
        self.previous = self._id("<|startofprev|>")
        self.no_speech = self._id("<|nospeech|>", "<|nocaptions|>")
        self.no_timestamps = self._id("<|notimestamps|>")
        self.first_time = self.no_timestamps + 1
        self._tasks = {name: tokenizer.token_to_id(f"<|{name}|>") for name in ("transcribe", "translate")}
        self.languages = self._languages() if self.vocab >= _MULTILINGUAL else {}
        named = [*self._tasks.values(), tokenizer.token_to_id("<|startoflm|>")]
        self.special = sorted(
            {self.sot, self.previous, self.no_speech, *(token for token in named if token is not None)}
        )

    @property
    def multilingual(self) -> bool:
        """True if the model knows other languages than English."""
        return bool(self.languages)

    def start(self, language: str | None, task: str) -> list[int]:
        """The tokens that begin a transcript. Raises InvalidSpecError for a language or task that is not there."""
        if task not in self._tasks:
            raise InvalidSpecError(f"task is {task!r}, must be 'transcribe' or 'translate'", "task")
        if not self.languages:
            if task != "transcribe" or language not in (None, "en"):
                raise InvalidSpecError(
                    f"the model knows English only: language {language!r} and task {task!r} need a multilingual one",
                    "language" if task == "transcribe" else "task",
                )
            return [self.sot]
        chosen = self._tasks[task]
        if language not in self.languages or chosen is None:
            known = ", ".join(self.languages)
            raise InvalidSpecError(f"language is {language!r}, the model knows {known}", "language")
        return [self.sot, self.languages[language], chosen]

    def encode(self, text: str) -> list[int]:
        """The ids of a text."""
        return self._tokenizer.encode(text, add_special_tokens=False)

    def decode(self, tokens: Iterable[int]) -> str:
        """The text of ids; those that are no text are left out."""
        return self._tokenizer.decode([token for token in tokens if token < self.eot])

    def _id(self, *names: str) -> int:
        for name in names:
            number = self._tokenizer.token_to_id(name)
            if number is not None:
                return number
        raise ModelFileError(f"the tokenizer has no token {names[0]}, a Whisper model needs it", "tokenizer.json")

    def _languages(self) -> dict[str, int]:
        end = self._tasks["translate"] or self.previous
        end = min(end, self._tasks["transcribe"] or end)
        names = ((number, self._tokenizer.id_to_token(number) or "") for number in range(self.sot + 1, end))
        return {name[2:-2]: number for number, name in names if name.startswith("<|") and name.endswith("|>")}
