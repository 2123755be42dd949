"""Nothing is heard where nothing is said, times lie within the sound, a prompt may be ids."""

from __future__ import annotations

import numpy as np
import pytest
from asr.scripted import answered, at, said
from asr.sounds import clip

import pygpukit as gp
from pygpukit.asr.model import WhisperModel
from pygpukit.asr.options import Options
from pygpukit.asr.results import TranscriptionSegment, Word, within
from pygpukit.asr.silence import Loudness, chances
from pygpukit.asr.speech import SpeechOptions, pieces
from pygpukit.asr.transcript import Decoded

pytestmark = pytest.mark.usefixtures("backend_name")

RATE = 16000


def noise(seconds: float, level: float) -> np.ndarray:
    return (level * np.random.default_rng(7).standard_normal(int(seconds * RATE))).astype(np.float32)


@pytest.fixture(scope="module")
def tiny() -> WhisperModel:
    return gp.asr.load("whisper-tiny.en", progress=False, dtype="float32")


def test_what_has_nothing_to_hear() -> None:
    speech = clip("fox")
    end = speech.size / RATE
    for quiet in (np.zeros(RATE * 9, np.float32), noise(9, 1e-4), noise(9, 0.1), np.full(RATE * 9, 0.3, np.float32)):
        assert Loudness(quiet).nothing(0, 9)
    assert not Loudness(speech).nothing(0, end)
    assert not Loudness(speech * np.float32(0.01)).nothing(0, end)  # spoken low
    assert not Loudness(speech + noise(end, 0.01)[: speech.size]).nothing(0, end)
    padded = Loudness(np.concatenate([speech, noise(20, 1e-4)]))
    assert not padded.nothing(0, 20) and padded.nothing(end + 0.1, end + 19)
    assert not Loudness(np.zeros(800, np.float32)).nothing(0, 0.05)  # too short to tell


def test_a_quiet_window_that_the_model_doubts_is_left_out_however_sure_its_text_is() -> None:
    def heard(no_speech: float, quiet: bool) -> Decoded:
        told = said(at(0), 1, at(2), average=-0.3, no_speech=no_speech)
        return Decoded(told.hypothesis, told.no_speech, quiet)

    for no_speech, quiet, expected in ((0.9, True, 0), (0.9, False, 1), (0.1, True, 1)):
        segments, asked = answered(500, lambda ask: heard(no_speech, quiet))  # noqa: B023 it is called here
        assert (len(segments), len(asked)) == (expected, 1)
    assert len(answered(500, lambda ask: heard(0.9, True), no_speech_threshold=None)[0]) == 1


def test_silence_says_nothing(tiny: WhisperModel) -> None:
    sounds = [np.zeros(RATE * 33, np.float32), noise(30, 1e-3)]
    assert [one.text for one in tiny.transcribe_batch(sounds)] == ["", ""]
    assert tiny.transcribe(sounds[0], beam_size=5).segments == []


def test_times_lie_within_the_sound(tiny: WhisperModel) -> None:
    for seconds in (0.4, 1.1, 2.3):
        samples = clip("fox")[: int(seconds * RATE)]
        for settings in ({}, {"word_timestamps": True}):
            found = tiny.transcribe(samples, max_length=40, temperature=0.0, no_speech_threshold=None, **settings)
            assert all(0 <= one.start <= one.end <= samples.size / RATE for one in (*found.segments, *found.words))
    part = TranscriptionSegment(" a b", 1.0, 3.0, words=[Word(" a", 1.0, 1.9, 1.0), Word(" b", 2.1, 3.0, 1.0)])
    cut = within(part, 2.0)
    assert cut is not None and (cut.start, cut.end) == (1.0, 2.0)
    assert [(word.start, word.end) for word in cut.words] == [(1.0, 1.9), (2.0, 2.0)]
    assert within(part, 1.0) is None and part.end == 3.0


def test_a_prompt_may_be_ids() -> None:
    def prompts(initial: object) -> list[int]:
        return answered(300, lambda ask: said(at(0), 1, at(1)), initial_prompt=initial)[1][0].prompt

    assert prompts("w3 w4") == prompts([3, 4]) == prompts(np.array([3, 4])) == prompts(iter((3, 4)))
    assert prompts([]) == prompts("") == prompts(" ") == prompts(None)
    for wrong, told in ((5, "int"), ([1.5], "list"), ([-1], "-1"), ([{}], "list"), (["a"], "list")):
        with pytest.raises(gp.InvalidSpecError, match=f"initial_prompt .*{told}"):
            Options(initial_prompt=wrong)  # type: ignore[arg-type]
    with pytest.raises(gp.InvalidSpecError, match="initial_prompt has token 99999"):
        prompts([99999])


def test_a_prompt_of_ids_hears_what_its_text_does(tiny: WhisperModel) -> None:
    ids = tiny.tokens.encode(" A fox.")
    first, second = (tiny.transcribe(clip("fox"), initial_prompt=one, temperature=0.0) for one in ("A fox.", ids))
    assert first.text and [one.tokens for one in first.segments] == [one.tokens for one in second.segments]


def test_energy_finds_speech_between_silences(tiny: WhisperModel) -> None:
    speech = clip("fox")
    sound = np.concatenate([np.zeros(RATE * 4, np.float32), speech, np.zeros(RATE * 4, np.float32)])
    found = pieces(chances(sound), sound.size, SpeechOptions(min_silence_duration_ms=1000))
    assert len(found) == 1 and abs(found[0][0] - 4 * RATE) < RATE and abs(found[0][1] - 4 * RATE - speech.size) < RATE
    assert not chances(noise(4, 0.1)).any() and not chances(np.zeros(RATE, np.float32)).any()
    heard = tiny.transcribe(sound, vad_filter="energy", temperature=0.0)
    assert "fox" in heard.text.lower() or "dog" in heard.text.lower()
    assert 3.5 < heard.segments[0].start < heard.segments[-1].end <= sound.size / RATE
    assert tiny.transcribe(noise(4, 0.1), vad_filter="energy").segments == []
    with pytest.raises(gp.InvalidSpecError, match="vad_filter"):
        tiny.transcribe(sound, vad_filter="loud")
