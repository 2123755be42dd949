"""KokoroModel: text in, speech out, sentence by sentence."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pygpukit.ops as ops
from pygpukit.core.errors import InvalidSpecError
from pygpukit.kernels.needed import Coming
from pygpukit.models.fetch import get
from pygpukit.ops import host
from pygpukit.ops.audio.buffer import AudioBuffer
from pygpukit.tts import voices as tables
from pygpukit.tts.batches import Sentence, speak
from pygpukit.tts.config import KokoroConfig
from pygpukit.tts.network import Network
from pygpukit.tts.phonemes import chunks, library
from pygpukit.tts.result import SynthesisResult
from pygpukit.tts.text import split_sentences
from pygpukit.tts.tokenizer import KokoroTokenizer
from pygpukit.tts.voices import Voices
from pygpukit.tts.weights import load_kokoro_weights, weights_file

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

    Voice: TypeAlias = "str | Mapping[str, float] | None"

_SLOWEST, _FASTEST = 0.25, 4.0
_STREAMED = 8  # sentences that a stream speaks together, at most


@dataclass(frozen=True)
class _Piece:
    """A piece that is spoken at once: at most 510 phonemes, of one sentence."""

    text: str
    phonemes: str
    sentence: Sentence


class KokoroModel:
    """Kokoro-82M on the current device, float32. load() makes one from files.

    weights: by their PyTorch names. voice_embeddings: the voices. One batch at a time is computed; several threads take
    turns.
    """

    def __init__(
        self,
        config: KokoroConfig,
        weights: Mapping[str, GPUArray],
        tokenizer: KokoroTokenizer,
        voice_embeddings: Voices | None = None,
    ) -> None:
        self.config, self.weights, self.tokenizer = config, weights, tokenizer
        self.voice_embeddings = voice_embeddings or Voices(Path("/nonexistent"))
        self.network = Network(weights, config)
        self.sample_rate = config.sample_rate
        self._voice: str | None = self.voice_embeddings.default
        self._lock = threading.Lock()

    @classmethod
    def from_pretrained(
        cls,
        model_path: str | os.PathLike[str],
        voice: str | None = None,
        dtype: str = "float32",
        load_all_voices: bool = False,
    ) -> KokoroModel:
        """load(). load_all_voices: read every voice now, not when it is first used."""
        model = load(model_path, voice=voice, dtype=dtype, progress=False)
        for name in model.available_voices if load_all_voices else ():
            model.voice_embeddings.table(name)
        return model

    @property
    def available_voices(self) -> list[str]:
        """The names of the voices."""
        return self.voice_embeddings.names

    @property
    def current_voice(self) -> str | None:
        """The voice that speaks where none is named; None where the model came without any."""
        return self._voice

    def set_voice(self, voice: str) -> None:
        """Choose the voice that speaks where none is named: a name, or a mixture as in synthesize()."""
        self.voice_embeddings.table(voice)
        self._voice = voice

    def load_voice(self, voice_path: str | os.PathLike[str]) -> str:
        """Take in a voice from a file (load_voice_embedding() says which); the name it has now."""
        name = Path(voice_path).stem
        self.voice_embeddings.add(name, tables.load_voice_embedding(voice_path).to_numpy())
        return name

    def synthesize(
        self,
        text: str = "",
        voice: Voice = None,
        speed: float = 1.0,
        normalize: bool = False,
        *,
        phonemes: str | None = None,
        seed: int | None = 0,
    ) -> SynthesisResult:
        """Speak a text. phonemes: say these, in Kokoro's alphabet, instead; no library is needed for them.

        voice: a name of available_voices, or several mixed: "a+b", "a:0.7+b:0.3". speed: 2 is twice as fast. normalize:
        scale to a largest magnitude of 1. seed: of the noise in the voice; None for none. The same call gives the same
        bits. Long texts are spoken sentence by sentence, and sentences of more than 510 phonemes in parts. Raises
        InvalidSpecError: nothing to speak, an unknown voice, a speed beyond 0.25 to 4, no library for text.
        """
        result = self._whole(text, self._spoken(self._prepared(text, voice, speed, phonemes, seed)))
        if normalize:
            result.audio = result.audio.normalize()
        return result

    def __call__(self, text: str, voice: Voice = None, **kwargs: Any) -> SynthesisResult:
        """synthesize()."""
        return self.synthesize(text, voice, **kwargs)

    def stream(
        self,
        text: str = "",
        voice: Voice = None,
        speed: float = 1.0,
        *,
        phonemes: str | None = None,
        seed: int | None = 0,
    ) -> Iterator[SynthesisResult]:
        """synthesize(), a sentence at a time, each as soon as it is there. One after the other they are the whole.

        The first sentence is spoken alone, those that wait then together: two, four, and eight at a time.
        """
        return self._streamed(self._prepared(text, voice, speed, phonemes, seed))

    def synthesize_batch(
        self,
        texts: Sequence[str],
        voice: Voice | Sequence[Voice] = None,
        speed: float | Sequence[float] = 1.0,
        *,
        seed: int | None = 0,
    ) -> list[SynthesisResult]:
        """synthesize() of each text, in order; each with the bits that it has alone. All are checked first.

        voice, speed: one for all, or a list with one for each text. The sentences of all texts go through the network
        together, at most 8192 frames of 25 ms at a time (pygpukit.tts.batches), about 3 GB. Raises as synthesize(), and
        InvalidSpecError for a list of another length.
        """
        voices, speeds = (_each(name, value, len(texts)) for name, value in (("voice", voice), ("speed", speed)))
        pieces = [
            self._prepared(text, chosen_voice, pace, None, seed)
            for text, chosen_voice, pace in zip(texts, voices, speeds, strict=True)
        ]
        spoken = iter(self._spoken([piece for of_text in pieces for piece in of_text]))
        return [
            self._whole(text, [next(spoken) for _ in pieces_of_text])
            for text, pieces_of_text in zip(texts, pieces, strict=True)
        ]

    def generate_stream(self, text: str, voice: Voice = None, chunk_size: int = 4800) -> Iterator[Any]:
        """Samples on the host, float32, chunk_size at a time and what is left at the end; as stream() has them."""
        import numpy as np

        if chunk_size < 1:
            raise InvalidSpecError(f"chunk_size is {chunk_size}, must be 1 or more", "chunk_size")
        left = np.zeros(0, np.float32)
        for sentence in self.stream(text, voice):
            left = np.concatenate([left, sentence.to_numpy()])
            while left.size >= chunk_size:
                yield left[:chunk_size]
                left = left[chunk_size:]
        if left.size:
            yield left

    def print_info(self) -> None:
        """Print what the model is."""
        print(repr(self))

    def __repr__(self) -> str:
        count = sum(array.size for array in self.weights.values())
        voices = ", ".join(self.available_voices) or "none"
        return f"KokoroModel({count:,} parameters, {self.sample_rate} Hz, voice={self._voice!r}, voices: {voices})"

    def _prepared(self, text: str, voice: Voice, speed: float, phonemes: str | None, seed: int | None) -> list[_Piece]:
        """All that is to be spoken; whatever can be wrong is found here."""
        if not _SLOWEST <= speed <= _FASTEST:
            raise InvalidSpecError(f"speed is {speed}, must be {_SLOWEST} to {_FASTEST}", "speed")
        chosen = self._voice if voice is None else voice
        if chosen is None:
            raise InvalidSpecError("the model came without voices; load_voice() takes one in", "voice")
        said = [(text, phonemes)] if phonemes is not None else [(s, None) for s in split_sentences(text)]
        parts = []
        for sentence, known in said:
            for part in chunks(self.tokenizer.text_to_phonemes(sentence) if known is None else known):
                tokens = self.tokenizer.phonemes_to_tokens(part)
                if any(symbol.isalpha() for symbol in self.tokenizer.decode(tokens)):
                    parts.append((sentence, part, [0, *tokens, 0]))
        if not parts:
            source = text if phonemes is None else phonemes
            raise InvalidSpecError(f"there is nothing to speak in {source[:60]!r}: no word, number or phoneme", "text")
        table = self.voice_embeddings.table(chosen)
        return [
            _Piece(
                sentence,
                part,
                Sentence(
                    tokens, table[min(len(part), tables.ROWS) - 1], speed, None if seed is None else seed + number
                ),
            )
            for number, (sentence, part, tokens) in enumerate(parts)
        ]

    def _spoken(self, pieces: Sequence[_Piece]) -> list[SynthesisResult]:
        with self._lock:
            samples = speak(self.network, [piece.sentence for piece in pieces])
        buffers = [AudioBuffer(each, self.sample_rate) for each in samples]
        return [
            SynthesisResult(audio, piece.text, piece.phonemes, audio.duration)
            for piece, audio in zip(pieces, buffers, strict=True)
        ]

    def _streamed(self, pieces: list[_Piece]) -> Iterator[SynthesisResult]:
        start, count = 0, 1
        while start < len(pieces):
            yield from self._spoken(pieces[start : start + (1 if host.computes() else count)])
            start, count = start + (1 if host.computes() else count), min(2 * count, _STREAMED)

    def _whole(self, text: str, spoken: Sequence[SynthesisResult]) -> SynthesisResult:
        samples = [each.audio.data for each in spoken]
        audio = AudioBuffer(samples[0] if len(samples) == 1 else ops.concatenate(samples), self.sample_rate)
        return SynthesisResult(audio, text, " ".join(each.phonemes for each in spoken), audio.duration)


def _each(name: str, value: Any, count: int) -> list[Any]:
    """One for each of several texts."""
    if isinstance(value, (list, tuple)):
        if len(value) != count:
            raise InvalidSpecError(f"{name} has {len(value)} for {count} texts; give one, or one for each", name)
        return list(value)
    return [value] * count


def load(
    model: str | os.PathLike[str] = "kokoro-82m",
    *,
    voice: str | None = None,
    dtype: str = "float32",
    lang: str | None = "a",
    progress: bool = True,
    revision: str | None = None,
) -> KokoroModel:
    """Kokoro by name ("kokoro-82m", fetched if need be), an .onnx or .safetensors file, or a folder with one of them.

    Or an "owner/name" of the Hugging Face hub with one .safetensors file; revision: of that, a branch, a tag or a
    commit.

    Voices and vocabulary are looked for beside the weights. voice: the one that speaks where none is named, jm_kumo by
    default. lang: of the text, "a" American, "b" British English; None for a model that is given phonemes only. Raises
    ModelNotFoundError, ModelFileError, InvalidSpecError for an unknown voice, OutOfMemoryError, and InvalidSpecError
    where no library makes phonemes of that language, before anything is fetched or placed.
    """
    if lang is not None:
        library(lang)
    coming = Coming(str(model))
    path = weights_file(get(model, progress, revision))
    weights, fields = load_kokoro_weights(path, dtype, progress=progress)
    config = KokoroConfig.from_dict(fields)
    loaded = KokoroModel(config, weights, KokoroTokenizer.from_config(config, lang=lang), Voices(path.parent))
    if voice is not None:
        loaded.set_voice(voice)
    coming.wait(progress)
    return loaded
