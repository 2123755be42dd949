"""Turns: contexts that wait for the result of each step share the device as promised, by the gate's own figures."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
from context_help import no_context_is_left as no_context_is_left

import pygpukit as gp
from pygpukit.core.event import Event
from pygpukit.core.turns import Turn, turn, turn_ahead
from pygpukit.scheduler import ExecutionContext, create_context
from pygpukit.scheduler.execution import current_context

STEPS = 100
# A step takes milliseconds, as a token's does: a thread comes back in less, on a busy host too.
SIDES, PRODUCTS = {"sim": 1024, "cuda": 2048}, {"sim": 1, "cuda": 4}


def launch(x: gp.GPUArray) -> gp.GPUArray:
    for _ in range(PRODUCTS[str(gp.backend())] - 1):
        x @ x
    return x @ x


def step(x: gp.GPUArray) -> None:
    """Some work whose result is waited for, as a token's is."""
    with turn():
        launch(x)[0].to_numpy()


class Steps:
    """Steps of which one is launched before the one before it has ended, as a model's are."""

    def __init__(self) -> None:
        self._begun = deque[tuple[Event, Callable[[], None]]]()

    def step(self, x: gp.GPUArray) -> None:
        if not self._begun:
            with turn() as own:
                self._launch(x, own)
        if len(self._begun) < 2 and (ahead := turn_ahead()) is not None:
            with ahead:
                self._launch(x, ahead)
        end, ended = self._begun.popleft()
        end.synchronize()
        ended()

    def _launch(self, x: gp.GPUArray, own: Turn) -> None:
        launch(x)
        end = Event(timing=False)
        end.record()
        self._begun.append((end, own.go_on()))


class Worker:
    """Steps in a context on a thread of its own, with a pause after each, until stop() or an error."""

    def __init__(
        self, context: ExecutionContext, pause_s: float = 0.0, side: int | None = None, ahead: bool = False
    ) -> None:
        self.context, self.steps, self.error = context, 0, None
        self._step = Steps().step if ahead else step
        self._side = side or SIDES[str(gp.backend())]
        self._pause_s, self._stop = pause_s, threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            with self.context:
                x = gp.ones((self._side, self._side))
                while not self._stop.is_set():
                    self._step(x)
                    self.steps += 1
                    time.sleep(self._pause_s)
        except Exception as error:
            self.error: Any = error

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(30)
        assert not self._thread.is_alive()


def until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not done():
        assert time.monotonic() < end, "it did not come to that within a minute"
        time.sleep(0.005)


def used(workers: list[Worker]) -> list[int]:
    return [stats.gpu_ns for worker in workers if (stats := worker.context.stats)]


def come_to(workers: list[Worker], shares: list[float], within: float) -> None:
    """Until the workers have the device by these shares over a hundred steps.

    Not over the first hundred: whoever the host keeps from coming back in time loses what was kept for it, by design.
    """

    def done() -> bool:
        before, steps = used(workers), sum(worker.steps for worker in workers)
        until(lambda: sum(worker.steps for worker in workers) > steps + STEPS)
        got = [now - then for now, then in zip(used(workers), before, strict=True)]
        return [each / sum(got) for each in got] == pytest.approx(shares, abs=within)

    until(done)


@pytest.mark.parametrize("ahead", [False, True])
def test_two_that_step_get_what_they_were_promised(ahead: bool) -> None:
    workers = [Worker(create_context(f"turns-{share}", share=share), ahead=ahead) for share in (0.75, 0.25)]
    until(lambda: all(worker.steps > 20 for worker in workers))
    come_to(workers, [0.75, 0.25], 0.08)
    for worker in workers:
        worker.stop()


def test_a_share_that_changes_counts_from_then_on() -> None:
    first, second = create_context("turns-a", share=0.8), create_context("turns-b", share=0.2)
    workers = [Worker(first), Worker(second)]
    until(lambda: all(worker.steps > 20 for worker in workers))
    first.resize(share=0.2)
    second.resize(share=0.8)
    come_to(workers, [0.2, 0.8], 0.1)
    for worker in workers:
        worker.stop()


def test_one_that_pauses_for_longer_than_its_steps_take_holds_the_other_up_for_no_longer_than_one() -> None:
    # Small steps: a pause takes longer than one on a busy host too.
    slow, quick = (
        Worker(create_context("turns-slow", share=0.9), 0.05, side=256),
        Worker(create_context("turns-quick", share=0.1), side=256),
    )
    until(lambda: slow.steps > 5 and quick.steps > 5)
    before = quick.steps, slow.steps
    until(lambda: slow.steps >= before[1] + 20)
    assert quick.steps - before[0] >= 20  # a tenth of the device would be some two
    slow.stop()
    steps = quick.steps
    until(lambda: quick.steps > steps + 20)  # and none is waited for that is gone
    quick.stop()


def test_nobody_waits_outside_of_contexts_or_for_a_context_that_is_destroyed() -> None:
    context, other = create_context("turns-gone", share=0.9), Worker(create_context("turns-there", share=0.1))
    gone = Worker(context)
    until(lambda: gone.steps > 5)
    context.destroy()
    until(lambda: gone.error is not None)
    assert isinstance(gone.error, gp.ContextDestroyedError)
    steps = other.steps
    until(lambda: other.steps > steps + 20)
    step(gp.ones((8, 8)))
    other.stop()


def test_an_error_in_a_step_ends_its_turn() -> None:
    context = create_context("turns-error", share=0.5)
    with context:
        with pytest.raises(ZeroDivisionError), turn():
            raise ZeroDivisionError
        step(gp.ones((8, 8)))


def test_the_context_that_code_is_in_is_the_innermost() -> None:
    outer, inner = create_context("turns-outer"), create_context("turns-inner")
    assert current_context() is None
    with outer:
        with inner:
            assert current_context() is inner
        assert current_context() is outer
    assert current_context() is None
