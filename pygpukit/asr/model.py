"""WhisperModel: speech in, text out."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pygpukit.asr.audio import samples_of
from pygpukit.asr.config import WhisperConfig
from pygpukit.asr.decoder import WhisperDecoder
from pygpukit.asr.encoder import WhisperEncoder
from pygpukit.asr.features import RATE
from pygpukit.asr.listening import listen
from pygpukit.asr.options import Options
from pygpukit.asr.results import TranscriptionResult, TranscriptionSegment
from pygpukit.asr.silero import SileroVAD
from pygpukit.asr.tokens import WhisperTokens
from pygpukit.asr.weights import config_of, from_checkpoint
from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.extras import require
from pygpukit.kernels.needed import Coming
from pygpukit.models.fetch import get

if TYPE_CHECKING:
    from pygpukit.models.tokenizer.tokenizer import Tokenizer
    from pygpukit.nn.reads import OnProgress

_NEEDS = "models", "speech recognition", "tokenizers"


def load(
    model: str | os.PathLike[str],
    *,
    dtype: str | None = None,
    name: str | None = None,
    progress: bool | OnProgress = True,
    revision: str | None = None,
) -> WhisperModel:
    """A Whisper model by name ("whisper-tiny.en"), or from a folder of Hugging Face's or CTranslate2's layout.

    Or by its owner and name on the Hugging Face hub: "openai/whisper-tiny"; revision: of that, a branch, a tag or a
    commit.

    dtype: of weights and caches; float16 on a GPU and float32 on the simulation by default. name: what its memory is
    called. progress: a bar, or a function (bytes done, bytes in all, tensor).
    Raises ModelNotFoundError, ModelFileError, InvalidSpecError for another kind of model, OutOfMemoryError, and
    ModuleNotFoundError where the extra `models` is missing, before anything is fetched or placed.
    """
    from pygpukit.models.checkpoint import open_checkpoint

    require(*_NEEDS)
    coming = Coming(str(model))
    checkpoint = open_checkpoint(model, progress=bool(progress), revision=revision)
    try:
        tokenizer = checkpoint.tokenizer()
        config, title = config_of(checkpoint), name or checkpoint.name
        weights = from_checkpoint(checkpoint, config=config, dtype=dtype, name=title, progress=progress)
        parts = WhisperEncoder(config, weights), WhisperDecoder(config, weights)
        coming.wait(progress is True)
        return WhisperModel(config, *parts, tokenizer, name=title)
    finally:
        checkpoint.close()


class WhisperModel:
    """Speech recognition. load() makes one; the constructor takes its parts. May be used from several threads."""

    def __init__(
        self,
        config: WhisperConfig,
        encoder: WhisperEncoder,
        decoder: WhisperDecoder,
        tokenizer: Tokenizer | None = None,
        *,
        name: str = "whisper",
    ) -> None:
        self.config, self.encoder, self.decoder, self.tokenizer = config, encoder, decoder, tokenizer
        self.name = name
        self.lock = threading.RLock()  # held while a window is heard: one at a time

    @classmethod
    def from_pretrained(cls, model_path_or_id: str | os.PathLike[str], cache_dir: Any = None) -> WhisperModel:
        """load(). cache_dir: a folder that is looked into first."""
        require(*_NEEDS)
        return load(located(model_path_or_id, cache_dir))

    @cached_property
    def tokens(self) -> WhisperTokens:
        """The meaning of its tokens."""
        if self.tokenizer is None:
            raise InvalidSpecError(f"{self.name} has no tokenizer; give the constructor one", "tokenizer")
        return WhisperTokens(self.tokenizer, self.config)

    @cached_property
    def vad(self) -> SileroVAD:
        """The detector of vad_filter, on this model's device; "silero-vad" is fetched on first use."""
        return SileroVAD(progress=False)

    def transcribe(
        self,
        audio: Any,
        sample_rate: int | None = None,
        language: str | None = None,
        **settings: Any,
    ) -> TranscriptionResult:
        """The transcription of a sound: text, segments with times, language.

        audio: the path of a WAV file, or samples (see samples_of()). language: a code ("de"); None hears it.
        settings: task, beam_size, temperature, word_timestamps and others, see Options. Silence gives no segments.
        The same sound and settings give the same result. Raises InvalidSpecError, ShapeError, DTypeError, OSError.
        """
        return self.transcribe_batch([audio], sample_rate, language, **settings)[0]

    def transcribe_batch(
        self, audios: Sequence[Any], sample_rate: int | None = None, language: str | None = None, **settings: Any
    ) -> list[TranscriptionResult]:
        """Several sounds, computed together; each result is what transcribe() alone gives, bit for bit."""
        sounds = [samples_of(audio, sample_rate) for audio in audios]
        options = _options(language, settings)
        segments: list[list[TranscriptionSegment]] = [[] for _ in sounds]
        languages: list[str | None] = [None] * len(sounds)
        with self.lock:
            for number, segment in listen(self, sounds, options):
                if isinstance(segment, TranscriptionSegment):
                    segments[number].append(segment)
                else:
                    languages[number] = segment
        return [
            TranscriptionResult.of(segment_list, code, samples.size / RATE)
            for segment_list, code, samples in zip(segments, languages, sounds, strict=True)
        ]

    def transcribe_streaming(
        self, audio: Any, language: str | None = None, sample_rate: int | None = None, **settings: Any
    ) -> Iterator[TranscriptionSegment]:
        """The segments of transcribe() as they are found, a window at a time: the same ones.

        What was not asked for is not computed. Other threads may use the model meanwhile.
        """
        samples, options = samples_of(audio, sample_rate), _options(language, settings)
        segments = listen(self, [samples], options)
        while True:
            with self.lock:
                item = next(segments, None)
            if item is None:
                return
            if isinstance(item[1], TranscriptionSegment):
                yield item[1]

    def __repr__(self) -> str:
        return f"WhisperModel({self.name!r}, {self.encoder.weights.summary()})"


def _options(language: str | None, settings: dict[str, Any]) -> Options:
    unknown = sorted(set(settings) - set(Options.__dataclass_fields__))
    if unknown:
        known = ", ".join(Options.__dataclass_fields__)
        raise InvalidSpecError(f"there is no setting {unknown[0]!r}; there are {known}", unknown[0])
    return Options(language=language, **settings)


def located(model_path_or_id: str | os.PathLike[str], cache_dir: str | os.PathLike[str] | None) -> Path:
    """Where a model is: a path as it is, the folder of that name in cache_dir, or what gp.models.get() fetches."""
    if cache_dir is not None and (Path(cache_dir) / model_path_or_id).exists():
        return Path(cache_dir) / model_path_or_id
    return get(model_path_or_id)
