"""The whole conversation with real models: Kokoro asks, Whisper tiny.en hears, SmolLM2 answers, Kokoro speaks. Fetched
once into the model cache (260 MB)."""

from __future__ import annotations

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.tts.wav import resample_audio

pytestmark = pytest.mark.usefixtures("backend_name")

QUESTION = "How many days are in a week?"
ANSWER = "A week is 7 days."


def test_a_spoken_question_is_answered_by_voice_the_same_each_time() -> None:
    pytest.importorskip("hibari", reason="text is spoken by hibari-tts (extra tts), which is not installed")
    kokoro = gp.tts.load("kokoro-82m", progress=False)
    voice = gp.pipeline.VoicePipeline(
        gp.asr.load("whisper-tiny.en", progress=False, dtype="float32"),
        gp.llm.load("smollm2-135m-instruct", context=256, dtype="float32", progress=False),
        kokoro,
        system_prompt="You are a voice assistant. Answer in one short sentence.",
        speed=1.5,
        max_new_tokens=16,
    )
    spoken = resample_audio(kokoro.synthesize(QUESTION, speed=1.25).to_numpy(), 24000, 16000)
    sound = np.concatenate([np.zeros(4800, np.float32), spoken, np.zeros(12800, np.float32)])
    answers = []
    for _ in range(2):
        voice.reset()
        voice.start_listening()
        chunks = [chunk for block in np.split(sound, 20) for chunk in voice.process_audio(block)]
        (turn,) = voice.conversation_history
        assert turn.user_text == QUESTION and turn.assistant_text == ANSWER and not turn.was_interrupted
        answers.append(np.concatenate(chunks))
    assert answers[0].size > 0.8 * 24000 and np.abs(answers[0]).max() > 0.1 and np.isfinite(answers[0]).all()
    assert answers[0].tobytes() == answers[1].tobytes()
    assert [row.stage for row in voice.timeline()] == ["transcribe", "generate", "speak"]
    assert all(0 < row.start < row.end for row in voice.timeline())
