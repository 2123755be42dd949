"""Answer: a chat model's answer as it is generated and spoken, sentence by sentence."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pygpukit.pipeline.sentences import SentenceBuffer
from pygpukit.pipeline.stages import Stages
from pygpukit.pipeline.turns import VoicePipelineCallback
from pygpukit.tts.text import split_sentences

Record = Callable[[str, float, float, str], None]


@dataclass
class TTSChunk:
    """A sentence as sound, float32 (n,). start_time, end_time: when its text was there and when its sound was, seconds
    of the monotonic clock. is_final: it is the end of the answer; where only signs that nobody can speak follow the
    last sentence, no chunk is."""

    audio: np.ndarray[Any, Any]
    sample_rate: int
    text: str
    start_time: float
    end_time: float
    is_final: bool = False

    @property
    def duration_ms(self) -> float:
        """Its duration."""
        return 1000 * self.audio.size / self.sample_rate

    @property
    def latency_ms(self) -> float:
        """The time of its synthesis."""
        return 1000 * (self.end_time - self.start_time)


@dataclass
class Voice:
    """Who speaks, and how fast: a model of speech synthesis and two of its arguments."""

    model: Any
    name: str | None = None
    speed: float = 1.0

    def say(self, text: str, stages: Stages, stopped: Callable[[], bool], final: bool) -> TTSChunk | None:
        """A sentence as sound; None where it has nothing to speak, or it is no longer wanted."""
        if not split_sentences(text):
            return None
        start = stages.clock()
        parts = []
        with stages.session("speak"):
            for part in self.model.stream(text, self.name, self.speed):
                if stopped():
                    return None
                parts.append(part.to_numpy())
        return TTSChunk(np.concatenate(parts), self.model.sample_rate, text, start, stages.clock(), final)


class Answer:
    """Iterate over its chunks; what was not asked for is not computed. stop(), from any thread, ends it within one
    step: a token, or a sentence's synthesis, whose sound is dropped.

    llm: what has chat(). prompt, settings: its arguments. whole: speak all at once, at the end. record: is told what
    each stage took.
    """

    def __init__(
        self,
        llm: Any,
        voice: Voice,
        prompt: Any,
        settings: dict[str, Any],
        stages: Stages,
        *,
        callback: VoicePipelineCallback | None = None,
        record: Record = lambda _stage, _start, _end, _text: None,
        whole: bool = False,
    ) -> None:
        self._llm, self._voice, self._prompt, self._settings = llm, voice, prompt, settings
        self._stages, self._record, self._whole = stages, record, whole
        self._callback = callback or VoicePipelineCallback()
        self._stopped = threading.Event()
        self._step = threading.Lock()  # held while a token is computed
        self._generation: Any = None
        self.text = ""
        self.tokens = 0
        self.first_token_s: float | None = None  # since the model was asked

    def stop(self) -> None:
        """End it; the model is free for another answer when this returns."""
        self._stopped.set()
        generation = self._generation
        if generation is not None:
            generation.stop()
        self._close()

    def __iter__(self) -> Iterator[TTSChunk]:
        spoken = False
        try:
            for text, final in self._sentences():
                if not spoken:
                    self._callback.on_tts_start()
                spoken = True
                chunk = self._voice.say(text, self._stages, self._stopped.is_set, final)
                if self._stopped.is_set():
                    return
                if chunk is not None:
                    self._record("speak", chunk.start_time, chunk.end_time, text)
                    yield chunk
            if spoken and not self._stopped.is_set():
                self._callback.on_tts_complete()
        finally:
            self._close()

    def _sentences(self) -> Iterator[tuple[str, bool]]:
        """The sentences with whether it is the last, each as soon as it has ended."""
        buffer, clock = SentenceBuffer(), self._stages.clock
        self._callback.on_generation_start()
        start = asked = clock()
        while (token := self._next()) is not None:
            if self.first_token_s is None:
                self.first_token_s = clock() - asked
            self.tokens += 1
            if token.text:
                self.text += token.text
                self._callback.on_generation_token(token.text)
                buffer.append(token.text)
            for sentence in () if self._whole else buffer.extract_sentences():
                self._record("generate", start, clock(), sentence)
                yield sentence, False
                start = clock()
        if self._stopped.is_set():
            return
        self._callback.on_generation_complete(self.text)
        rest = buffer.flush()
        if rest is not None:
            self._record("generate", start, clock(), rest)
            yield rest, True

    def _next(self) -> Any:
        """The next token; None at the end, and when it was stopped."""
        with self._step:
            if self._stopped.is_set():
                return None
            with self._stages.session("generate"):
                if self._generation is None:
                    self._generation = self._llm.chat(self._prompt, **self._settings)
                return next(self._generation, None)

    def _close(self) -> None:
        with self._step:
            if self._generation is not None:
                self._generation.close()
