"""Models without weights for the pipeline, and sound for it: loud where somebody speaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
from stub_model import StubModel

import pygpukit as gp
from pygpukit.pipeline import VoicePipeline, VoicePipelineCallback

Samples = np.ndarray[Any, Any]
RATE = 16000


def speech(seconds: float, seed: int = 0) -> Samples:
    """Loud sound."""
    return np.random.default_rng(seed).uniform(-0.5, 0.5, round(seconds * RATE)).astype(np.float32)


def silence(seconds: float) -> Samples:
    return np.zeros(round(seconds * RATE), np.float32)


class Whisper:
    """Hears what the script says, one text an utterance; an exception is raised."""

    def __init__(self, *texts: Any) -> None:
        self.texts, self.heard = list(texts), list[Samples]()

    def transcribe(self, audio: Samples, sample_rate: int) -> SimpleNamespace:
        assert sample_rate == RATE
        self.heard.append(audio)
        text = self.texts.pop(0)
        if isinstance(text, Exception):
            raise text
        return SimpleNamespace(text=f" {text} ")


class Kokoro:
    """A word is a hundred samples, numbered. before: called of each sentence before it is spoken."""

    sample_rate = 24000

    def __init__(self, before: Callable[[str], Any] = lambda _text: None) -> None:
        self.before, self.said = before, list[str]()

    def stream(self, text: str, voice: Any = None, speed: float = 1.0) -> Iterator[SimpleNamespace]:
        self.before(text)
        self.said.append(text)
        for number, _ in enumerate(text.split()):
            samples = np.full(100, number, np.float32)
            yield SimpleNamespace(to_numpy=samples.copy)


class Log(VoicePipelineCallback):
    """Remembers the names of what was told; audio_chunk with its size."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("on_"):
            return super().__getattribute__(name)
        return lambda *_: self.told.append(name[3:])


class Clock:
    """A second passes whenever it is looked at."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


def chat(answer: str = "One two. Three?", **kwargs: Any) -> StubModel:
    """A chat model that answers so, a word a token."""
    words = [f" {word}" if at else word for at, word in enumerate(answer.split(" "))]
    return StubModel(lambda _messages: words, **kwargs)


def pipeline(whisper: Any = None, llm: Any = None, tts: Any = None, **kwargs: Any) -> VoicePipeline:
    made = gp.pipeline.VoicePipeline(
        whisper or Whisper("hello"), llm or chat(), tts or Kokoro(), **{"clock": Clock(), **kwargs}
    )
    made.start_listening()
    return made


QUESTION = np.concatenate([silence(0.3), speech(0.6), silence(0.6)])
