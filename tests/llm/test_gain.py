"""Whether drafts pay: by tokens and seconds of steps that a test makes up."""

from __future__ import annotations

import random

import pytest

from pygpukit.llm.engine.gain import Gain


def answered(gain: Gain, steps: int, drafted: tuple[float, float], plain: float = 1.0) -> tuple[list[bool], float]:
    """The kind of each step, and the rate beside one without drafts. drafted: tokens on average, and seconds."""
    draw = random.Random(1)
    kinds, tokens, seconds = [], 0, 0.0
    for _ in range(steps):
        drafting = gain.drafts > 0
        got = 1 + (draw.random() < drafted[0] - 1 if drafted[0] < 2 else int(drafted[0]) - 1) if drafting else 1
        took = drafted[1] if drafting else plain
        gain.note(drafting, got, took)
        kinds.append(drafting)
        tokens += got
        seconds += took
    return kinds, tokens / seconds


def test_drafts_that_are_never_right_are_left_out_after_four_steps_and_tried_less_and_less() -> None:
    kinds, rate = answered(Gain(4), 2000, (1.0, 1.12))
    assert kinds[:5] == [True] * 4 + [False]
    assert sum(kinds) <= 4 * 6 and rate > 0.99


def test_drafts_that_are_right_and_cost_too_much_are_left_out() -> None:
    kinds, rate = answered(Gain(4), 2000, (2.0, 2.5))
    assert sum(kinds) <= 8 * 6 and rate > 0.98


def test_drafts_that_pay_go_on() -> None:
    kinds, rate = answered(Gain(4), 2000, (3.0, 1.2))
    assert sum(kinds) > 0.9 * len(kinds) and rate > 2.2


def test_what_changes_is_found_out() -> None:
    gain = Gain(4)
    answered(gain, 300, (3.0, 1.2))
    assert gain.pays
    kinds, _ = answered(gain, 300, (1.0, 1.2))
    assert sum(kinds[150:]) < 30 and not gain.pays
    kinds, _ = answered(gain, 3000, (3.0, 1.2))
    assert sum(kinds[1500:]) > 1000


@pytest.mark.parametrize("always", [False, True])
def test_before_there_is_something_to_compare_with_they_are_tried(always: bool) -> None:
    gain = Gain(3, always)
    assert gain.drafts == 3 and gain.pays is None
    kinds, _ = answered(gain, 500, (1.0, 9.0))
    assert all(kinds) == always


def test_steps_that_were_begun_before_do_not_count() -> None:
    gain = Gain(4)
    for _ in range(100):
        gain.note(False, 1, 1.0)
    assert gain.drafts == 4
