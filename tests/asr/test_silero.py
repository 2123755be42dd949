"""Silero's detector against its own code under onnxruntime: probabilities, pieces, transcripts of what they leave."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asr.sounds import CASES, HERE, course, noisy, spaced

import pygpukit as gp
from pygpukit.asr.filtering import Speech
from pygpukit.asr.results import TranscriptionSegment, Word
from pygpukit.asr.speech import SpeechOptions, pieces

pytestmark = pytest.mark.usefixtures("backend_name")

FOUND = json.loads((HERE / "silero.json").read_text())


@pytest.fixture(scope="module")
def vad() -> gp.asr.SileroVAD:
    return gp.asr.SileroVAD(progress=False)


@pytest.mark.parametrize(("name", "make"), [("noisy", noisy), ("spaced", spaced)])
def test_probabilities_and_pieces_are_those_of_onnxruntime(vad: gp.asr.SileroVAD, name: str, make: Any) -> None:
    sound, golden = make(), np.load(HERE / "silero.npz")[name]
    assert np.abs(vad.probabilities(sound) - golden).max() < 1e-4
    assert golden.max() > 0.99 and golden.min() < 0.01
    for case, expected in zip(CASES, FOUND["real"][name], strict=True):
        found = vad.detect(sound, **case)
        assert [[one.start_sample, one.end_sample] for one in found] == expected
        assert [one.end_time for one in found] == [end / 16000 for _, end in expected]


def test_pieces_of_any_course_are_those_of_silero() -> None:
    for seed, (told, samples) in enumerate(course()):
        for case, expected in zip(CASES, FOUND["courses"][str(seed)], strict=True):
            found = pieces(told.tolist(), samples, SpeechOptions().changed(case))
            assert [list(one) for one in found] == expected, (seed, case)


def test_a_stream_gives_the_bits_of_the_whole(vad: gp.asr.SileroVAD) -> None:
    sound = noisy()[: 512 * 60]
    whole, stream = vad.probabilities(sound), vad.stream()
    parts = [stream(part) for part in np.split(sound, np.cumsum([512, 1024, 0, 512 * 20]))]
    assert np.array_equal(np.concatenate(parts), whole)
    stream.reset()
    assert np.array_equal(stream(sound), whole)
    with pytest.raises(gp.InvalidSpecError, match="500 samples, must be whole chunks of 512"):
        stream(sound[:500])


def test_silence_noise_and_a_tone_are_no_speech(vad: gp.asr.SileroVAD) -> None:
    rng = np.random.default_rng(1)
    tone = np.sin(np.arange(32000) * 0.2).astype(np.float32) / 2
    for sound in (np.zeros(20000, np.float32), (0.2 * rng.standard_normal(32000)).astype(np.float32), tone, tone[:1]):
        assert vad.detect(sound) == []


def test_what_is_no_setting_or_no_model_is_refused(vad: gp.asr.SileroVAD, tmp_path: Path) -> None:
    for settings, message in (
        ({"treshold": 0.5}, "no setting 'treshold' of speech"),
        ({"threshold": 1.0}, "threshold is 1.0"),
        ({"threshold": 0.3, "neg_threshold": 0.4}, "neg_threshold is 0.4, must be at most threshold"),
        ({"speech_pad_ms": -1}, "speech_pad_ms is -1"),
        ({"max_speech_duration_s": 0.05}, "max_speech_duration_s is 0.05"),
    ):
        with pytest.raises(gp.InvalidSpecError, match=message):
            vad.detect(np.zeros(512, np.float32), **settings)
    kokoro = gp.models.get("kokoro-82m", progress=False)
    with pytest.raises(gp.ModelFileError, match=r"stft.forward_basis_buffer is missing, must be \(258, 1, 256\)"):
        gp.asr.SileroVAD(kokoro / "model.onnx")
    with pytest.raises(gp.InvalidSpecError, match="vad_parameters needs vad_filter=True"):
        gp.asr.Options(vad_parameters={"threshold": 0.4})
    with pytest.raises(gp.InvalidSpecError, match="no setting 'pad'"):
        gp.asr.Options(vad_filter=True, vad_parameters={"pad": 1})


def test_times_of_what_is_joined_are_those_of_the_whole() -> None:
    sound = np.arange(16000 * 10, dtype=np.float32)
    speech = Speech(sound, [(16000, 32000), (48000, 64000), (128000, 160000)])
    assert np.array_equal(speech.samples, np.concatenate([sound[16000:32000], sound[48000:64000], sound[128000:]]))

    def restored(start: float, end: float, *words: Word) -> TranscriptionSegment:
        return speech.restored(TranscriptionSegment("", start, end, words=list(words)))

    for given, expected in (
        ((0.0, 1.0), (1, 2)),
        ((1.0, 2.0), (3, 4)),
        ((0.5, 2.5), (1.5, 8.5)),
        ((3.0, 4.2), (9, 10.2)),
    ):
        one = restored(*given)
        assert (one.start, one.end) == pytest.approx(expected)
    one = restored(0.0, 2.2, Word("a", 0.8, 1.1, 1.0), Word("b", 1.1, 2.2, 1.0))
    assert [(word.start, word.end) for word in one.words] == [pytest.approx((1.8, 2.1)), pytest.approx((3.1, 4.2))]
    assert (one.start, one.end) == pytest.approx((1.8, 4.2))


def test_what_is_heard_in_speech_alone_is_that_of_faster_whisper() -> None:
    tiny = gp.asr.load("whisper-tiny.en", progress=False, dtype="float32")
    found = tiny.transcribe(spaced(), temperature=0.0, vad_filter=True, word_timestamps=True)
    assert found.duration == pytest.approx(spaced().size / 16000)
    assert [one.text for one in found.segments] == [one["text"] for one in FOUND["heard"]]
    theirs = [word for one in FOUND["heard"] for word in one["words"]]
    assert [word.text for word in found.words] == [word[0] for word in theirs]
    expected = np.array([word[1:] for word in theirs])
    assert [(word.start, word.end) for word in found.words] == pytest.approx(expected, abs=0.026)
    assert tiny.transcribe(np.zeros(30000, np.float32), vad_filter=True).segments == []
