"""Why a share is below its promise: one rule over measured times, and what stats and a notebook say of it."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest
from scheduler_help import PATIENCE_S

import pygpukit as gp
from pygpukit.core import host_time
from pygpukit.core.shortfall import Had, Shortfall, shortfall
from pygpukit.scheduler import Scheduler
from pygpukit.telemetry.late import Late
from pygpukit.telemetry.rows import task_row

S = 1_000_000_000


@pytest.mark.parametrize(
    ("promised", "had", "why"),
    [
        # had, asked, others meanwhile, waited, throttled, host; of 10 s
        (0.5, (5, 10, 5, 5, 0), Shortfall.NONE),
        (0.5, (4.6, 10, 5, 5, 0), Shortfall.NONE),  # a tenth less: turns come to that
        (0.0, (0, 10, 10, 10, 0), Shortfall.NONE),
        (0.5, (2, 2, 0, 0, 0), Shortfall.NOT_ASKED_FOR),
        (0.5, (2, 3, 1, 1, 0, 0), Shortfall.NOT_ASKED_FOR),
        (0.5, (0.2, 3, 2.8, 2.8, 0, 0), Shortfall.NOT_ASKED_FOR),  # all of what it asked for had been too little
        (0.5, (2, 3, 1, 1, 0, 7), Shortfall.HOST_TOO_SLOW),
        (0.5, (2, 9, 7, 7, 0, 9), Shortfall.BROKEN),
        (0.5, (0, 10, 10, 10, 0), Shortfall.BROKEN),
        (0.5, (2, 9, 1, 1, 6), Shortfall.HELD_BY_LIMIT),
        (0.7, (4.2, 10, 1.8, 5.8, 0), Shortfall.HOST_TOO_SLOW),  # 70 % of what the device gave: nobody took the rest
        (0.7, (3, 10, 3, 7, 0), Shortfall.BROKEN),  # the device gave 60 %, and others had half of it
        (0.5, (2, 9, 0, 7, 0, 9), Shortfall.HOST_TOO_SLOW),  # it waited, and nobody had the device
        (0.5, (0, 10, 0, 10, 0), Shortfall.HOST_TOO_SLOW),
        (0.5, (3, 6, 3, 3, 0), Shortfall.NOT_ASKED_FOR),  # half of the device, for six of ten seconds
        (0.5, (3, 6, 3, 3, 0, 4), Shortfall.HOST_TOO_SLOW),
    ],
)
def test_the_rule(promised: float, had: tuple[float, ...], why: Shortfall) -> None:
    gpu, asked, others, waited, throttled, *host = (int(seconds * S) for seconds in had)
    assert shortfall(promised, Had(10 * S, gpu, asked, others, waited, throttled, *host)) is why


def test_nothing_is_said_of_no_time() -> None:
    assert shortfall(0.5, Had(0, 0, 0, 0, 0, 0)) is Shortfall.NONE


def test_the_last_seconds_count_not_the_life_before_them() -> None:
    late, told = Late(), []
    for second in range(1, 40):  # ten seconds of work, then nothing to do
        gpu_ns = min(second, 10) * S
        context = SimpleNamespace(number=1, share=0.5, had=Had(second * S, gpu_ns, gpu_ns, 0, 0, 0))
        told.append(late.of_context(context))  # type: ignore[arg-type]
    assert {one.shortfall for one in told[:14]} == {Shortfall.NONE} and {one.share for one in told[:10]} == {1.0}
    assert {one.shortfall for one in told[16:]} == {Shortfall.NOT_ASKED_FOR}
    # The share is of the same seconds as the reason: whoever says both says what fits together.
    assert all((one.share or 0) < 0.5 for one in told[16:]) and told[-1].share == 0


def test_tenants_of_a_busy_host_are_not_told_that_their_promise_is_broken() -> None:
    """Two that contend on the simulated device, where the host runs the kernels: each has its part of what is given."""
    rounds, out = 4000, gp.zeros(1)
    work = gp.jit(
        """extern "C" __global__ void work(float* out, int rounds) {
            float x = threadIdx.x;
            for (int i = 0; i < rounds; ++i) x = fmaf(x, 0.999f, 1.0f);
            if (x == -1.0f) out[0] = x;
        }""",
        "work",
    )
    launch, stop = work[1, 32], threading.Event()
    launch(out, rounds)

    def tenant() -> None:
        while not stop.is_set():
            launch(out, rounds)

    with Scheduler(workers=2) as scheduler:
        tasks = {share: scheduler.submit(tenant, bandwidth=share) for share in (0.7, 0.3)}
        began = time.monotonic()
        while time.monotonic() - began < PATIENCE_S and min(task.stats().gpu_ns for task in tasks.values()) < S // 8:
            time.sleep(0.05)
        figures = {share: task.stats() for share, task in tasks.items()}
        rows = {share: task_row(task.record) for share, task in tasks.items()}
        stop.set()
    used = sum(stats.gpu_ns for stats in figures.values())
    for share, stats in figures.items():
        if abs(stats.gpu_ns / used - share) < 0.1 * share:  # it had its part of what was used
            assert stats.shortfall != "promise broken" != rows[share]["shortfall"]
        assert stats.others_ns <= stats.asked_ns
        assert rows[share]["share"] == pytest.approx(stats.achieved_share, abs=0.1)
        assert (rows[share]["shortfall"] == "") == (rows[share]["share"] >= 0.9 * share)


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
        idle = scheduler.submit(time.sleep, 0.5, memory="1MB", bandwidth=0.5, policy="guaranteed")
        free = scheduler.submit(int)
        for task in (idle, free):
            task.result(PATIENCE_S)
        assert idle.stats().shortfall == "not asked for" and free.stats().shortfall == ""
        assert shown(idle) == f"{idle!r}, 0% of the device, promised 50%: not asked for"
        assert shown(free) == repr(free)
