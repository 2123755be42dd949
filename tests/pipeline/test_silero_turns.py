"""Silero's detector in the pipeline: what is loud and no speech begins no turn; any blocks, the same events."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from asr.sounds import clip
from pipeline.scripted import Whisper, pipeline

import pygpukit as gp
from pygpukit.pipeline import VADConfig, VoiceActivityDetector

pytestmark = pytest.mark.usefixtures("backend_name")


@pytest.fixture(scope="module")
def vad() -> gp.asr.SileroVAD:
    return gp.asr.SileroVAD(progress=False)


def question() -> np.ndarray[Any, Any]:
    """A loud tone, noise, and words."""
    tone = np.sin(np.arange(16000) * 0.2).astype(np.float32) / 2
    noise = (0.1 * np.random.default_rng(2).standard_normal(16000)).astype(np.float32)
    quiet = np.zeros(12000, np.float32)
    return np.concatenate([tone, quiet, noise, quiet, clip("short"), quiet, quiet])


def test_words_begin_a_turn_and_noise_does_not(vad: gp.asr.SileroVAD) -> None:
    whisper = Whisper("hello")
    made = pipeline(whisper, vad=vad)
    spoken = list(made.process_audio(question()))
    assert len(spoken) == 2 and len(made.conversation_history) == 1
    (heard,) = whisper.heard
    assert 0.5 * 16000 < heard.size < clip("short").size + 16000
    by_energy = pipeline(Whisper("a", "b", "c"))
    list(by_energy.process_audio(question()))
    assert len(by_energy.conversation_history) == 3


def test_the_events_do_not_depend_on_the_blocks(vad: gp.asr.SileroVAD) -> None:
    sound = question()[48000:]

    def events(sizes: int) -> list[tuple[str, float, float]]:
        detector = VoiceActivityDetector(model=vad)
        blocks = np.split(sound, range(sizes, sound.size, sizes))
        told = [event for block in blocks for event in detector.process_audio(block)]
        return [(event.event_type, event.timestamp, event.duration) for event in told + detector.flush()]

    whole = events(sound.size)
    assert [name for name, *_ in whole] == ["speech_start", "speech_end"]
    assert events(700) == events(5000) == whole


def test_other_frames_and_other_names_are_refused(vad: gp.asr.SileroVAD) -> None:
    with pytest.raises(gp.InvalidSpecError, match=r"480 samples at 16000 Hz; Silero's has 512 at 16000"):
        VoiceActivityDetector(VADConfig(), vad)
    with pytest.raises(gp.InvalidSpecError, match="vad is 'webrtc', must be 'energy', 'silero' or a SileroVAD"):
        pipeline(vad="webrtc")
    settings = VADConfig.silero(min_silence_duration=0.2)
    assert VoiceActivityDetector(settings, vad).config.frame_samples == 512
