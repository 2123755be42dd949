"""LLMToTTSPipeline with scripted models: sentences as they come, all at once, figures, callbacks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pipeline.scripted import Kokoro, chat

import pygpukit as gp
from pygpukit.pipeline import LLMToTTSPipeline, StreamingTTSCallback, TTSChunk, speak


def test_sentences_are_spoken_as_they_come() -> None:
    llm, tts = chat("One two. Three four. Five."), Kokoro()
    pipeline = LLMToTTSPipeline(llm, tts)
    chunks = pipeline.generate_speech("count", max_new_tokens=8, seed=3)
    assert next(chunks).text == "One two." and llm.generations[0].count == 3  # not further than it was asked
    rest = list(chunks)
    assert [(chunk.text, chunk.is_final) for chunk in rest] == [("Three four.", False), ("Five.", True)]
    assert llm.settings == {"temperature": 0.7, "top_k": 50, "top_p": 0.9, "seed": 3}
    stats = pipeline.stats
    assert (stats.total_tokens, stats.total_sentences) == (5, 3)
    assert stats.total_audio_duration_ms == pytest.approx(500 / 24)
    assert len(stats.token_to_audio_latencies_ms) == 3
    assert stats.realtime_factor == stats.total_synthesis_time_ms / stats.total_audio_duration_ms
    assert stats.avg_synthesis_time_per_sentence_ms == stats.total_synthesis_time_ms / 3
    assert stats.first_audio_latency_ms is not None
    pipeline.reset_stats()
    assert pipeline.stats.total_tokens == 0 and pipeline.stats.realtime_factor == 0


def test_all_at_once_and_without_streaming() -> None:
    tts = Kokoro()
    (chunk,) = LLMToTTSPipeline(chat(), tts).generate_speech("count", stream_sentences=False)
    assert chunk.is_final and tts.said == ["One two. Three?"] and chunk.audio.size == 300
    assert chunk.duration_ms == 300 / 24 and chunk.latency_ms == 1000 * (chunk.end_time - chunk.start_time)
    assert speak(chat(), Kokoro(), "count").size == 300
    assert speak(chat("\U0001f600"), Kokoro(), "smile").size == 0


def test_leaving_gives_the_model_back() -> None:
    llm = chat()
    chunks = LLMToTTSPipeline(llm, Kokoro()).generate_speech("count")
    next(chunks)
    chunks.close()  # type: ignore[attr-defined]
    assert llm.generations[0].closed


def test_a_text_is_spoken_or_refused() -> None:
    pipeline = LLMToTTSPipeline(chat(), Kokoro())
    assert np.array_equal(pipeline.synthesize_text("Hello you.").audio, np.repeat([0, 1], 100))
    with pytest.raises(gp.InvalidSpecError, match=r"nothing to speak in ' \.\.\. '"):
        pipeline.synthesize_text(" ... ")


class Told(StreamingTTSCallback):
    def __init__(self) -> None:
        self.told: list[Any] = []

    def on_audio_chunk(self, chunk: TTSChunk) -> None:
        self.told.append(chunk.text)

    def on_complete(self) -> None:
        self.told.append("complete")

    def on_error(self, error: Exception) -> None:
        self.told.append(error)


def test_callbacks_are_told_and_errors_raised() -> None:
    told = Told()
    stats = LLMToTTSPipeline(chat(), Kokoro()).generate_speech_with_callback("count", told)
    assert told.told == ["One two.", "Three?", "complete"] and stats.total_sentences == 2

    def failing(_text: str) -> None:
        raise OSError("no voice")

    with pytest.raises(OSError, match="no voice"):
        LLMToTTSPipeline(chat(), Kokoro(failing)).generate_speech_with_callback("count", told)
    assert str(told.told[-1]) == "no voice"


def test_the_documented_ring_of_samples_keeps_the_newest() -> None:
    ring = gp.pipeline.AudioBuffer(sample_rate=10, max_duration=0.5)
    ring.append(np.float32([1, 2, 3]))
    assert len(ring) == 3 and ring.get_audio().dtype == np.float32
    ring.append(np.arange(4, 8, dtype=np.float64))
    assert ring.get_audio().tolist() == [3, 4, 5, 6, 7] and ring.get_audio(9).tolist() == [3, 4, 5, 6, 7]
    assert ring.get_audio(0.2).tolist() == [6, 7] and ring.get_audio(0).size == 0
    ring.clear()
    assert len(ring) == 0 and ring.get_audio(1.0).size == 0
    with pytest.raises(gp.InvalidSpecError, match="one channel of floats"):
        ring.append(np.zeros((2, 3), np.float32))
    with pytest.raises(gp.InvalidSpecError, match="0 samples, must be at least 1"):
        gp.pipeline.AudioBuffer(max_duration=0)
