"""Whether drafts pay: by tokens and seconds of steps that a test makes up."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
    return kinds, tokens * plain / seconds


@settings(max_examples=30)
@given(
    step=st.floats(1.0, 2.0),
    drafts=st.floats(0.0, 7.0),
    count=st.integers(1, 16),
    plain=st.floats(1e-4, 0.1),
    noise=st.floats(0.0, 0.1),
    seed=st.integers(0, 9),
)
def test_drafts_that_are_never_right_cost_less_than_two_hundredths(
    step: float, drafts: float, count: int, plain: float, noise: float, seed: int
) -> None:
    """Of 1000 tokens, whatever a step with drafts costs, and the drafts themselves."""
    gain, draw, tried, took = Gain(count), random.Random(seed), 0, 0.0
    for _ in range(1000):
        drafting = gain.drafts > 0
        tried += drafting
        cost = step + drafts if drafting else 1.0
        took += cost
        gain.note(drafting, 1, plain * cost * draw.uniform(1 - noise, 1 + noise))
    assert took < 1020 and tried > 0


@pytest.mark.parametrize(("cost", "first", "most"), [(1.12, 16, 100), (1.63, 3, 20), (3.63, 1, 4)])
def test_the_more_they_cost_the_fewer_are_tried(cost: float, first: int, most: int) -> None:
    """The third: a step of 1.63 behind drafts by half of the layers."""
    kinds, rate = answered(Gain(4), 1000, (1.0, cost))
    assert kinds[: first + 4] == [False] * 3 + [True] * first + [False]
    assert sum(kinds) <= most and rate > 0.98
    kinds, rate = answered(Gain(4), 200, (1.0, cost))
    assert rate > 0.98


def test_drafts_that_are_right_and_cost_too_much_are_left_out() -> None:
    kinds, rate = answered(Gain(4), 2000, (2.0, 2.5))
    assert sum(kinds) <= 48 and rate > 0.98


def test_drafts_that_pay_go_on() -> None:
    kinds, rate = answered(Gain(4), 2000, (3.0, 1.2))
    assert sum(kinds) > 0.97 * len(kinds) and rate > 2.4


def test_what_changes_is_found_out() -> None:
    gain = Gain(4)
    assert sum(answered(gain, 300, (3.0, 1.2))[0]) > 280
    assert sum(answered(gain, 300, (1.0, 1.2))[0][20:]) < 30
    assert sum(answered(gain, 3000, (3.0, 1.2))[0][500:]) > 2300


def test_a_step_that_is_held_up_once_decides_nothing() -> None:
    """As the first one that captures its graph, and another in a good time."""
    gain, kinds = Gain(4), []
    for index in range(400):
        drafting = gain.drafts > 0
        kinds.append(drafting)
        gain.note(drafting, 3 if drafting else 1, 50.0 if index in (3, 20) else 1.6 if drafting else 1.0)
    assert sum(kinds[:20]) == 17 and sum(kinds[300:]) > 90


def test_before_there_is_something_to_compare_with_none_is_tried() -> None:
    assert answered(Gain(3), 4, (3.0, 1.2))[0] == [False] * 3 + [True]


def test_always_is_always() -> None:
    gain = Gain(3, always=True)
    assert gain.drafts == 3 and all(answered(gain, 500, (1.0, 9.0))[0])


def test_a_clock_that_stands_still_fails_nothing() -> None:
    gain = Gain(4)
    for _ in range(100):
        gain.note(gain.drafts > 0, 1, 0.0)
