"""VoiceActivityDetector against a model that sees all frames at once; blocks, limits, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pygpukit as gp
from pygpukit.pipeline import VADConfig, VADEvent, VADState, VoiceActivityDetector

LOUD, BETWEEN, QUIET = 0.1, 0.007, 0.001
SIZE = 10  # samples of a frame
BEFORE = 20  # frames that an utterance has before its beginning, at most


def config(**settings: Any) -> VADConfig:
    """Frames of ten samples, a hundredth of a second; durations in frames."""
    frames = {"min_speech_duration": 3, "min_silence_duration": 4, "max_speech_duration": 12, **settings}
    return VADConfig(sample_rate=1000, frame_duration_ms=10, **{name: n / 100 for name, n in frames.items()})


def sound(levels: list[float]) -> np.ndarray[Any, Any]:
    """A frame of each level, each sample of its own sign."""
    signs = np.where(np.arange(SIZE) % 2, -1, 1)
    return (np.asarray(levels)[:, None] * signs).astype(np.float32).ravel()


def expected(levels: list[float], least: int, pause: int, most: int) -> list[tuple[str, int, int]]:
    """(type, frame, frames of its audio) by looking at the whole: where utterances begin, and the first frame at which
    one of the rules ends them."""
    found, at, free = [], 0, 0  # free: the first frame that no utterance has taken
    while at < len(levels):
        if levels[at] < LOUD:
            at += 1
            continue
        first, spoken, quiet, told = at, 0, 0, False
        speaking = True
        while at < len(levels):
            speaking = levels[at] == LOUD or (levels[at] == BETWEEN and speaking)
            spoken, quiet = spoken + speaking, 0 if speaking else quiet + 1
            at += 1
            if spoken >= least and not told:
                told = True
                found.append(("speech_start", first, 0))
            if quiet >= pause or at - first >= most:
                break
        if told:
            found.append(("speech_end", at, at - max(free, first - BEFORE)))
        free = at
    return found


def seen(events: list[VADEvent]) -> list[tuple[str, int, int]]:
    frames = [0 if event.audio is None else event.audio.size // SIZE for event in events]
    return [(e.event_type, round(e.timestamp * 100), n) for e, n in zip(events, frames, strict=True)]


@given(
    st.lists(st.sampled_from([LOUD, BETWEEN, QUIET]), max_size=60),
    st.integers(1, 4),
    st.integers(1, 6),
    st.integers(6, 30),
    st.lists(st.integers(0, 600), max_size=8),
)
def test_the_machine_is_the_model_in_any_blocks(
    levels: list[float], least: int, pause: int, most: int, cuts: list[int]
) -> None:
    settings = config(min_speech_duration=least, min_silence_duration=pause, max_speech_duration=most)
    detector, samples = VoiceActivityDetector(settings), sound(levels)
    events = [event for block in np.split(samples, sorted(cuts)) for event in detector.process_audio(block)]
    events += detector.flush()
    assert seen(events) == expected(levels, least, pause, most)
    starts = [event.event_type for event in events]
    assert starts == ["speech_start", "speech_end"] * (len(events) // 2)
    assert not detector.is_speaking and detector.state is VADState.SILENCE
    for event in events:
        if event.audio is not None:
            end = round(event.timestamp * 100) * SIZE
            assert np.array_equal(event.audio, samples[end - event.audio.size : end])
            assert event.duration == pytest.approx(event.audio.size / 1000)


def test_states_follow_the_sound() -> None:
    detector = VoiceActivityDetector(config())
    course = [(QUIET, "SILENCE"), (LOUD, "SPEECH"), (QUIET, "TRAILING"), (BETWEEN, "TRAILING"), (LOUD, "SPEECH")]
    course += [(BETWEEN, "SPEECH"), *[(QUIET, "TRAILING")] * 3, (QUIET, "SILENCE")]
    for level, state in course:
        detector.process_audio(sound([level]))
        assert detector.state is VADState[state]


def test_empty_silent_and_short_sound_tell_nothing() -> None:
    detector = VoiceActivityDetector()
    assert detector.process_audio(np.zeros(0, np.float32)) == [] == detector.flush()
    assert detector.process_audio(np.zeros(16000, np.float32)) == []
    click = np.concatenate([np.ones(400, np.float32), np.zeros(16000, np.float32)])
    assert detector.process_audio(click) == [] and detector.state is VADState.SILENCE


def test_sound_of_the_device_and_a_new_beginning() -> None:
    detector = VoiceActivityDetector()
    loud = np.ones(4800, np.float32)
    assert [e.event_type for e in detector.process_audio(gp.from_numpy(loud))] == ["speech_start"]
    assert detector.is_speaking
    detector.reset()
    assert not detector.is_speaking and detector.flush() == []
    assert detector.process_audio(loud)[0].timestamp == 0


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("silence_threshold", 0.02),
        ("silence_threshold", 0.0),
        ("silence_threshold", float("nan")),
        ("min_speech_duration", -1.0),
        ("min_silence_duration", float("nan")),
        ("max_speech_duration", 0.1),
        ("frame_duration_ms", 0),
    ],
)
def test_what_cannot_be_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(gp.InvalidSpecError, match=f"{field} is {value}"):
        VADConfig(**{field: value})


@pytest.mark.parametrize("bad", [np.ones(3, np.int16), np.ones((2, 3), np.float32), np.full(3, np.nan, np.float32)])
def test_no_sound_is_refused_and_nothing_changes(bad: Any) -> None:
    detector = VoiceActivityDetector(config())
    detector.process_audio(sound([LOUD, LOUD]))
    with pytest.raises(gp.InvalidSpecError):
        detector.process_audio(bad)
    assert seen(detector.process_audio(sound([LOUD]))) == [("speech_start", 0, 0)]
