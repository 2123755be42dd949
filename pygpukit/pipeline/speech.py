"""LLMToTTSPipeline: a chat model's answer to a text, spoken as it is generated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from pygpukit.core.errors import InvalidSpecError
from pygpukit.pipeline.answer import Answer, TTSChunk, Voice
from pygpukit.pipeline.spoken import SpeechStats
from pygpukit.pipeline.stages import Contexts, Stages
from pygpukit.tts.wav import concatenate_audio


class StreamingTTSCallback:
    """Callbacks of an answer that is spoken; a subclass overrides some."""

    def on_audio_chunk(self, chunk: TTSChunk) -> None:
        """A sentence."""

    def on_complete(self) -> None:
        """There is no more."""

    def on_error(self, error: Exception) -> None:
        """A stage failed; the error is raised, too."""


class LLMToTTSPipeline:
    """A chat model and a voice. llm_tokenizer: only the model's own is taken. contexts: an ExecutionContext for
    "generate" and one for "speak", whose streams and shares the stages then have."""

    def __init__(
        self,
        llm_model: Any,
        tts_model: Any,
        llm_tokenizer: Any = None,
        voice: str | None = None,
        speed: float = 1.0,
        *,
        contexts: Contexts | None = None,
    ) -> None:
        check_part("llm_model", llm_model, "chat")
        check_part("tts_model", tts_model, "stream")
        self.llm_model, self.tts_model, self.voice, self.speed = llm_model, tts_model, voice, speed
        self.llm_tokenizer = tokenizer_of(llm_model, llm_tokenizer)
        self._stages = Stages(contexts)
        self.reset_stats()

    @property
    def stats(self) -> SpeechStats:
        """A copy of the figures so far."""
        latencies = self._stats.token_to_audio_latencies_ms
        return replace(self._stats, token_to_audio_latencies_ms=[*latencies])

    def reset_stats(self) -> None:
        """Count from zero."""
        self._stats = SpeechStats()

    def generate_speech(
        self,
        prompt: Any,
        max_new_tokens: int = 256,
        temperature: float = 0.7,
        top_k: int = 50,
        top_p: float = 0.9,
        stream_sentences: bool = True,
        *,
        seed: int | None = None,
    ) -> Iterator[TTSChunk]:
        """The answer, a sentence at a time, each as soon as it is spoken; with stream_sentences=False all at once.

        prompt: a question, or messages. seed: of what is drawn; with one, or temperature 0, the same call gives the
        same bits. Leaving the iteration ends the answer.
        """
        settings = {"max_new_tokens": max_new_tokens, "temperature": temperature, "top_k": top_k, "top_p": top_p}
        settings |= {} if seed is None else {"seed": seed}
        voice = Voice(self.tts_model, self.voice, self.speed)
        asked, first = self._stages.clock(), True
        answer = Answer(self.llm_model, voice, prompt, settings, self._stages, whole=not stream_sentences)
        try:
            for chunk in answer:
                if first:
                    self._stats.first_audio_latency_ms, first = 1000 * (chunk.end_time - asked), False
                self._stats.add(chunk)
                yield chunk
        finally:
            self._stats.total_tokens += answer.tokens

    def synthesize_text(self, text: str) -> TTSChunk:
        """A text as sound. Raises InvalidSpecError where it has nothing to speak."""
        chunk = Voice(self.tts_model, self.voice, self.speed).say(text, self._stages, lambda: False, True)
        if chunk is None:
            raise InvalidSpecError(f"there is nothing to speak in {text[:60]!r}: no word or number", "text")
        self._stats.add(chunk)
        return chunk

    def generate_speech_with_callback(
        self,
        prompt: Any,
        callback: StreamingTTSCallback,
        max_new_tokens: int = 256,
        temperature: float = 0.7,
        top_k: int = 50,
        top_p: float = 0.9,
        *,
        seed: int | None = None,
    ) -> SpeechStats:
        """generate_speech(), told to a callback; the figures at its end."""
        try:
            for chunk in self.generate_speech(prompt, max_new_tokens, temperature, top_k, top_p, seed=seed):
                callback.on_audio_chunk(chunk)
            callback.on_complete()
        except Exception as error:
            callback.on_error(error)
            raise
        return self.stats


def check_part(name: str, part: Any, does: str) -> None:
    """Raises InvalidSpecError where a model cannot do what its place in a pipeline asks for."""
    if not callable(getattr(part, does, None)):
        raise InvalidSpecError(
            f"{name} is a {type(part).__name__}, which has no {does}(); give a model that has it", name
        )


def tokenizer_of(llm: Any, explicit: Any) -> Any:
    """The tokenizer of a chat model. Raises InvalidSpecError where another one is given."""
    tokenizer = getattr(llm, "tokenizer", None)
    if explicit is not None and explicit is not tokenizer:
        raise InvalidSpecError(
            "llm_tokenizer is not the model's own, which it answers with; leave it out, or load the model with it",
            "llm_tokenizer",
        )
    return tokenizer


def speak(
    llm_model: Any, tts_model: Any, prompt: Any, voice: str | None = None, max_new_tokens: int = 256
) -> np.ndarray[Any, Any]:
    """The greedy answer to a prompt as sound, float32 (n,), all of it; empty where nothing can be spoken."""
    pipeline = LLMToTTSPipeline(llm_model, tts_model, voice=voice)
    chunks = pipeline.generate_speech(prompt, max_new_tokens, temperature=0.0)
    return concatenate_audio([chunk.audio for chunk in chunks])
