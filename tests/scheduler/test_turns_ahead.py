"""Turns in virtual time: steps that are launched before the one before them has ended, and those that cannot be."""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from pygpukit.scheduler.turns import Line

SECONDS = 5.0


class Core:
    """What the gate has measured of a context."""

    def __init__(self, share: float) -> None:
        self.share_ppm, self.ns = round(share * 1e6), 0

    def work(self) -> list[int]:
        return [0, 0, self.ns]


class Stepper:
    """A context whose steps take as long on the device; between two of them its host looks at tokens for gap_s. ahead:
    a step may be launched before the one before it has ended. late: steps whose time is not measured yet."""

    def __init__(self, share: float, step_s: float, gap_s: float, ahead: bool = True, late: int = 0) -> None:
        self.core, self.step_s, self.gap_s, self.ahead = Core(share), step_s, gap_s, ahead
        self.begun = deque[tuple[float, float]]()  # when it was launched, and when it ends
        self.late, self.unseen = late, deque[int]()
        self.place: Any = None
        self.steps = 0


class World:
    """One device, which does one step at a time in the order of their launch, and hosts."""

    def __init__(self, steppers: list[Stepper]) -> None:
        self.now, self.idle_from, self.busy_s = 0.0, 0.0, 0.0
        self.line, self.steppers = Line(lambda: self.now), steppers
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._waiting: list[Stepper] = []

    def at(self, when: float, what: Callable[[], None]) -> None:
        heapq.heappush(self._events, (max(when, self.now), next(self._numbers), what))

    def run(self, seconds: float = SECONDS) -> None:
        for stepper in self.steppers:
            self.at(0.0, lambda stepper=stepper: self.lead(stepper))  # type: ignore[misc]
        while self._events and self._events[0][0] <= seconds:
            self.now, _, what = heapq.heappop(self._events)
            what()
            self.look()

    def lead(self, stepper: Stepper) -> None:
        """As a loop does whose client wants a token."""
        if not stepper.begun:
            stepper.place = self.line._come(stepper)  # type: ignore[arg-type]
            self._waiting.append(stepper)
        else:
            self.go_ahead(stepper)
            self.at(stepper.begun[0][1], lambda: self.end(stepper))

    def look(self) -> None:
        """Whoever waits and is the next one launches."""
        for stepper in list(self._waiting):
            if self.line._is_next(stepper.place):
                self._waiting.remove(stepper)
                stepper.place.waiting -= 1
                self.launch(stepper)
                self.lead(stepper)
            elif (wait_s := self.line._until(stepper.place)) is not None:
                self.at(self.now + wait_s + 1e-9, lambda: None)

    def launch(self, stepper: Stepper) -> None:
        start = max(self.now, self.idle_from)
        self.idle_from = start + stepper.step_s
        self.busy_s += stepper.step_s
        stepper.begun.append((self.now, self.idle_from))
        self.line.launched(stepper.place)

    def go_ahead(self, stepper: Stepper) -> None:
        if stepper.ahead and len(stepper.begun) < 2:
            place = self.line.take(stepper)  # type: ignore[arg-type]
            if place is not None:
                self.launch(stepper)

    def end(self, stepper: Stepper) -> None:
        began, _ = stepper.begun.popleft()
        stepper.unseen.append(round(stepper.step_s * 1e9))
        if len(stepper.unseen) > stepper.late:
            stepper.core.ns += stepper.unseen.popleft()
        stepper.steps += 1
        self.line.ended(stepper, stepper.place, began, alone=False)  # type: ignore[arg-type]
        self.at(self.now + stepper.gap_s, lambda: self.lead(stepper))


def shares(steppers: list[Stepper]) -> list[float]:
    used = [stepper.steps * stepper.step_s for stepper in steppers]
    return [each / sum(used) for each in used]


@pytest.mark.parametrize("late", [0, 1])
@pytest.mark.parametrize(
    ("promised", "steps_s"),
    [
        ([0.7, 0.3], [0.0006, 0.0006]),
        ([0.7, 0.3], [0.001, 0.004]),
        ([0.3, 0.7], [0.001, 0.004]),
        ([0.5, 0.3, 0.2], [0.001, 0.0015, 0.0007]),
        ([0.9, 0.1], [0.03, 0.05]),
    ],
)
def test_those_that_go_ahead_have_their_shares_to_a_point_and_the_device_stands_still_for_no_twentieth(
    promised: list[float], steps_s: list[float], late: int
) -> None:
    gap_s = min(steps_s) / 3
    steppers = [Stepper(share, step_s, gap_s, late=late) for share, step_s in zip(promised, steps_s, strict=True)]
    world = World(steppers)
    world.run()
    assert shares(steppers) == pytest.approx(promised, abs=0.01 + max(steps_s) / SECONDS)
    assert world.busy_s >= 0.95 * SECONDS


@pytest.mark.parametrize(
    ("promised", "second_s", "ahead", "late"),
    [
        (0.7, 0.001, False, 0),
        (0.7, 0.001, True, 1),
        (0.3, 0.004, False, 0),
        (0.9, 0.0007, False, 0),
    ],
)
def test_those_that_cannot_go_ahead_have_their_shares_of_the_work_though_the_device_waits_for_them(
    promised: float, second_s: float, ahead: bool, late: int
) -> None:
    """A host's gap of up to a third of a step, as beside prompts, with logprobs and behind drafts."""
    for part in (0.1, 0.33):
        gap_s = part * min(0.001, second_s)
        first = Stepper(promised, 0.001, gap_s, ahead=False, late=late)
        second = Stepper(1 - promised, second_s, gap_s, ahead=ahead, late=late)
        world = World([first, second])
        world.run(1.0)
        assert shares([first, second])[0] == pytest.approx(promised, abs=0.012)
        steps = promised / 0.001 + (1 - promised) / second_s  # of a second of work, with a gap behind each at most
        assert world.busy_s >= 0.99 / (1 + gap_s * steps)


def test_one_that_needs_nearly_a_step_to_come_back_pays_for_what_the_device_waits_for_longer() -> None:
    found = []
    for gap_s in (0.0004, 0.0007, 0.0009):
        steppers = [Stepper(0.7, 0.001, gap_s, ahead=False), Stepper(0.3, 0.001, gap_s, ahead=False)]
        World(steppers).run(1.0)
        found.append(shares(steppers)[0])
    assert found[0] == pytest.approx(0.7, abs=0.01) and 0.7 > found[1] > found[2] > 0.6


def test_one_alone_goes_ahead_all_the_time_and_one_that_comes_later_has_saved_nothing_up() -> None:
    early, later = Stepper(0.5, 0.001, 0.0003), Stepper(0.5, 0.001, 0.0003)
    world = World([early])
    world.at(2.0, lambda: world.lead(later))
    world.run()
    assert world.busy_s >= 0.98 * SECONDS
    assert early.steps == pytest.approx(3500, abs=50) and later.steps == pytest.approx(1500, abs=50)


def test_one_whose_client_stopped_reading_holds_nobody_up() -> None:
    """It has launched a step that nobody asks after."""
    reader, other = Stepper(0.9, 0.001, 0.0003), Stepper(0.1, 0.001, 0.0003)
    world = World([reader, other])

    def stop() -> None:
        reader.gap_s = 1e9

    world.at(1.0, stop)
    world.run()
    assert other.steps > 3900
