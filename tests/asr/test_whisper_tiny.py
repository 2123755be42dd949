"""Whisper tiny.en, a real model, in float32, against faster-whisper. Fetched once into the model cache (71 MB)."""

from __future__ import annotations

import hashlib
from itertools import islice
from typing import Any

import numpy as np
import pytest
from asr.sounds import GOLDENS, HERE, NAMES, clip

import pygpukit as gp
from pygpukit.asr.model import WhisperModel
from pygpukit.asr.results import TranscriptionResult

pytestmark = pytest.mark.usefixtures("backend_name")

GOLDEN = GOLDENS["whisper-tiny.en"]


@pytest.fixture(scope="module")
def tiny() -> WhisperModel:
    return gp.asr.load("whisper-tiny.en", progress=False, dtype="float32")


@pytest.fixture(scope="module")
def greedy(tiny: WhisperModel) -> dict[str, TranscriptionResult]:
    """All clips, in one batch."""
    return dict(zip(NAMES, tiny.transcribe_batch([clip(name) for name in NAMES], temperature=0.0), strict=True))


def same(ours: TranscriptionResult, theirs: dict[str, Any]) -> None:
    """Text, tokens and times are equal, figures nearly."""
    segments = theirs["segments"]
    assert [one.tokens for one in ours.segments] == [one["tokens"] for one in segments]
    assert [one.text for one in ours.segments] == [one["text"] for one in segments]
    for one, other in zip(ours.segments, segments, strict=True):
        # faster-whisper has ends after the sound's.
        assert (one.start, one.end) == pytest.approx((other["start"], min(other["end"], ours.duration)), abs=1e-6)
        assert one.average_logprob == pytest.approx(other["average_logprob"], abs=1e-3)
        assert one.no_speech == pytest.approx(other["no_speech"], abs=1e-4)


def test_the_clips_are_those_that_were_heard() -> None:
    for name in NAMES:
        assert hashlib.sha256((HERE / "clips" / f"{name}.wav").read_bytes()).hexdigest() == GOLDENS["sha256"][name]


def test_greedy_text_tokens_and_times_are_those_of_faster_whisper(greedy: dict[str, TranscriptionResult]) -> None:
    for name in NAMES:
        same(greedy[name], GOLDEN[name]["beam1"])


@pytest.mark.turns(3)
def test_five_beams_give_those_of_faster_whisper(tiny: WhisperModel) -> None:
    found = tiny.transcribe_batch([clip(name) for name in NAMES], beam_size=5, temperature=0.0)
    for name, one in zip(NAMES, found, strict=True):
        same(one, GOLDEN[name]["beam5"])


def test_alone_again_and_as_a_stream_it_is_the_same(tiny: WhisperModel, greedy: dict[str, TranscriptionResult]) -> None:
    assert tiny.transcribe(clip("weather"), temperature=0.0) == greedy["weather"]  # figures too: the same bits
    assert list(tiny.transcribe_streaming(clip("weather"), temperature=0.0)) == greedy["weather"].segments


def test_windows_follow_each_other_as_in_faster_whisper(tiny: WhisperModel) -> None:
    stream = tiny.transcribe_streaming(clip("joined"), temperature=0.0, word_timestamps=True)
    theirs = GOLDEN["joined"]["words"]["segments"]
    for one, other in zip(islice(stream, len(theirs)), theirs, strict=True):
        assert one.tokens == other["tokens"]
        assert [word.text for word in one.words] == [word[0] for word in other["words"]]
        times = [(word.start, word.end) for word in one.words]
        assert times == pytest.approx(np.array([word[1:3] for word in other["words"]]), abs=0.021)
        chances = [word.probability for word in one.words]
        assert chances == pytest.approx([word[3] for word in other["words"]], abs=1e-3)


def test_silence_and_noise_say_nothing_for_ever(tiny: WhisperModel) -> None:
    rng = np.random.default_rng(3)
    silence, noise = np.zeros(16000, np.float32), (0.3 * rng.standard_normal(32000)).astype(np.float32)
    for result in tiny.transcribe_batch([silence, noise], temperature=(0.0, 1.0)):
        assert len(result.text) < 100


def test_clipped_and_narrow_sound_is_heard(tiny: WhisperModel) -> None:
    sound = clip("library")
    clipped = np.clip(20 * sound, -1, 1)
    telephone = tiny.transcribe(sound[::2], 8000, temperature=0.0)
    assert "to the library before Friday" in telephone.text
    assert "library" in tiny.transcribe(clipped, temperature=0.0).text
