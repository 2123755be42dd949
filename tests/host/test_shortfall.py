"""Why a share is below its promise: one rule over measured times, and what stats and a notebook say of it."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest
from scheduler_help import PATIENCE_S

from pygpukit.core import host_time
from pygpukit.core.shortfall import Had, Shortfall, shortfall
from pygpukit.scheduler import Scheduler
from pygpukit.telemetry.late import Late

S = 1_000_000_000


@pytest.mark.parametrize(
    ("promised", "had", "why"),
    [
        (0.5, Had(10 * S, 5 * S, 5 * S, 0), Shortfall.NONE),
        (0.5, Had(10 * S, int(4.6 * S), 5 * S, 0), Shortfall.NONE),  # a tenth less: turns come to that
        (0.0, Had(10 * S, 0, 10 * S, 0), Shortfall.NONE),
        (0.5, Had(0, 0, 0, 0), Shortfall.NONE),
        (0.5, Had(10 * S, 2 * S, 0, 0), Shortfall.NOT_ASKED_FOR),
        (0.5, Had(10 * S, 2 * S, S, 0, 0), Shortfall.NOT_ASKED_FOR),
        (0.5, Had(10 * S, 2 * S, S, 0, 7 * S), Shortfall.HOST_TOO_SLOW),
        (0.5, Had(10 * S, 2 * S, 7 * S, 0, 9 * S), Shortfall.BROKEN),
        (0.5, Had(10 * S, 2 * S, S, 6 * S), Shortfall.HELD_BY_LIMIT),
        (0.5, Had(10 * S, 0, 10 * S, 0), Shortfall.BROKEN),
    ],
)
def test_the_rule(promised: float, had: Had, why: Shortfall) -> None:
    assert shortfall(promised, had) is why


def test_the_last_seconds_count_not_the_life_before_them() -> None:
    late, told = Late(), []
    for second in range(1, 40):  # ten seconds of work, then nothing to do
        gpu_ns = min(second, 10) * S
        context = SimpleNamespace(
            number=1, share=0.5, gpu_ns=gpu_ns, waited_ns=0, created_ns=1, ended_ns=second * S + 1
        )
        told.append(late.of_context(context))  # type: ignore[arg-type]
    assert set(told[:14]) == {Shortfall.NONE} and set(told[16:]) == {Shortfall.NOT_ASKED_FOR}


def test_a_thread_that_works_is_told_from_one_that_sleeps() -> None:
    host_time.begin(1)
    if host_time.of(1) is None:
        pytest.skip("this system does not tell what a thread did")
    began = time.thread_time_ns()
    while time.thread_time_ns() - began < 30_000_000:
        pass
    worked = host_time.of(1)
    time.sleep(0.05)
    after = host_time.of(1)
    host_time.end(1)
    assert worked is not None and worked >= 25_000_000
    assert after is not None and after - worked < 40_000_000 and (host_time.of(1) or 0) >= after


class _Printed:
    text_so_far = ""

    def text(self, text: str) -> None:
        self.text_so_far += text


def shown(task: Any) -> str:
    printer = _Printed()
    task._repr_pretty_(printer, False)
    return printer.text_so_far


def test_stats_and_the_notebook_say_why() -> None:
    with Scheduler(total_memory="1GB") as scheduler:
        idle = scheduler.submit(time.sleep, 0.02, memory="1MB", bandwidth=0.5, policy="guaranteed")
        free = scheduler.submit(int)
        for task in (idle, free):
            task.result(PATIENCE_S)
        assert idle.stats().shortfall == "not asked for" and free.stats().shortfall == ""
        assert shown(idle) == f"{idle!r}, 0% of the device, promised 50%: not asked for"
        assert shown(free) == repr(free)
