"""The course of a transcription, answered by scripts: windows, prompts, fallback, silence, endless repetition."""

from __future__ import annotations

import pytest
from asr.scripted import FIRST_TIME, Decode, Decoded, Tokens, answered, at, said

from pygpukit.asr.transcript import Window, compression, split

HOUR = 360000  # frames


def test_two_timestamps_that_meet_end_a_segment_and_the_next_window_begins_there() -> None:
    answers = iter([said(at(0), 1, 2, at(2), at(2.5), 3, at(4), at(4)), said(at(0), 4, at(1))])
    segments, asked = answered(3200, lambda ask: next(answers))
    assert [(one.text, one.start, one.end) for one in segments] == [
        (" w1 w2", 0, 2),
        (" w3", 2.5, 4),
        (" w4", 4, 5),
    ]
    assert [ask.window for ask in asked] == [Window(0, 3000), Window(400, 2800)]
    assert asked[1].prompt == [Tokens.previous, at(0), 1, 2, at(2), at(2.5), 3, at(4), Tokens.sot]


def test_a_single_timestamp_at_the_end_means_that_nothing_follows_in_the_window() -> None:
    parts, step = split([at(0), 1, at(2), at(2), 2, at(3)], Window(100, 3000), FIRST_TIME)
    assert [(one.start, one.end) for one in parts] == [(1, 3), (3, 4)]
    assert step == 3000
    parts, step = split([at(0), 1, 2], Window(0, 700), FIRST_TIME)
    assert [(one.start, one.end) for one in parts] == [(0, 7)]
    assert step == 700
    parts, step = split([at(0), 1, at(5.5)], Window(0, 700), FIRST_TIME)
    assert [(one.start, one.end) for one in parts] == [(0, 5.5)]
    assert split([at(0), at(0)], Window(0, 3000), FIRST_TIME)[1] == 3000  # never again from where it was


def test_a_window_that_repeats_itself_or_is_improbable_is_tried_again_hotter() -> None:
    repeated = [at(0), *[1, 2] * 40, at(2)]
    assert compression(Tokens().decode(repeated)) > 2.4

    def answer(ask: Decode) -> Decoded:
        if ask.temperature < 0.3:
            return said(*repeated)
        return said(at(0), 3, at(2), average=-1.5 if ask.temperature < 0.5 else -0.4)

    segments, asked = answered(3000, answer)
    assert [ask.temperature for ask in asked] == [0, 0.2, 0.4, 0.6]
    assert [ask.attempt for ask in asked] == [0, 1, 2, 3]
    assert [(one.text, one.temperature) for one in segments] == [(" w3", 0.6)]


def test_where_nothing_is_good_the_most_probable_that_does_not_repeat_itself_is_kept() -> None:
    def answer(ask: Decode) -> Decoded:
        if ask.temperature == 0.4:
            return said(at(0), 7, at(2), average=-1.2)
        return said(at(0), *[1, 2] * 40, at(2), average=-0.1)

    segments, _ = answered(3000, answer)
    assert [(one.text, one.temperature) for one in segments] == [(" w7", 1.0)]


def test_hot_text_is_no_prompt() -> None:
    def answer(ask: Decode) -> Decoded:
        return said(at(0), 1, at(2), average=-2 if ask.temperature < 0.8 else -0.5)

    _, asked = answered(6000, answer)
    assert asked[-1].prompt == [Tokens.sot]
    _, asked = answered(6000, lambda ask: said(at(0), 1, at(2)), condition_on_previous_text=False)
    assert asked[-1].prompt == [Tokens.sot]


def test_silence_is_left_out_without_another_try() -> None:
    segments, asked = answered(6000, lambda ask: said(at(0), 1, at(2), average=-1.4, no_speech=0.9))
    assert not segments
    assert [ask.temperature for ask in asked] == [0, 0]
    segments, _ = answered(3000, lambda ask: said(at(0), 1, at(2), average=-0.4, no_speech=0.9))
    assert len(segments) == 1  # probable enough


def test_the_prompt_is_bounded_and_may_begin_with_a_text() -> None:
    long = [index % 19 for index in range(150)]
    _, asked = answered(
        12000, lambda ask: said(at(0), *long, at(2)), compression_ratio_threshold=None, initial_prompt="w5 w6"
    )
    assert asked[0].prompt == [Tokens.previous, 5, 6, Tokens.sot]
    assert [len(ask.prompt) for ask in asked] == [4, 2 + 154, 2 + 223, 2 + 223]


def test_ten_hours_end() -> None:
    """A model that says a little again and again, one that says nothing, and one that repeats a word for ever."""
    segments, asked = answered(10 * HOUR, lambda ask: said(at(0), 1, at(10), at(10)), temperature=0.0)
    assert len(asked) == 3600
    assert segments[-1].end == pytest.approx(36000, abs=0.1)
    segments, asked = answered(10 * HOUR, lambda ask: said(at(0), at(0)), temperature=0.0)
    assert len(asked) == 1200 and not segments
    segments, asked = answered(10 * HOUR, lambda ask: said(*[1] * 224), temperature=0.0)
    assert len(asked) == 1200


def test_no_frames_ask_nothing() -> None:
    assert answered(0, lambda ask: said(1)) == ([], [])
