"""Pausing one task, from Python: what waits is not admitted, what runs launches nothing, others go on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from scheduler_help import PATIENCE_S, Gate, wait_until

import pygpukit as gp
from pygpukit._core import native
from pygpukit.core.errors import TaskCancelledError
from pygpukit.scheduler import Scheduler, adjustments

MB = 1 << 20


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    made = Scheduler(total_memory=100 * MB, workers=2, start=False)
    yield made
    made._shut()


def test_one_that_waits_is_passed_and_comes_back_to_its_place(scheduler: Scheduler) -> None:
    order: list[str] = []
    tasks = {name: scheduler.submit(order.append, name, name=name, memory="60MB") for name in "abc"}
    before = adjustments()
    assert tasks["a"].pause() and tasks["b"].pause() and not scheduler.pause(tasks["b"].id)
    assert adjustments() == before + 2, "dashboards look again, once for each"
    assert [tasks[name].phase for name in "abc"] == ["Queued", "Queued", "Admitted"]
    assert (tasks["a"].paused, tasks["a"].reason, tasks["a"].stats().paused) == (True, "WaitingForResume", True)
    assert scheduler.step() is tasks["c"] and scheduler.step() is None
    assert scheduler.resume(tasks["b"]) and not scheduler.resume(tasks["b"])
    assert scheduler.step() is tasks["b"] and scheduler.step() is None
    tasks["a"].resume()
    assert scheduler.step() is tasks["a"]
    assert order == ["c", "b", "a"]
    assert [record["paused"] for record in scheduler.snapshot()["tasks"]] == [False] * 3


KERNEL = """extern "C" __global__ void add_one(float* x) { x[threadIdx.x] += 1; }"""


@pytest.fixture(params=["built-in", "copy out", "copy in", "many", "jit"])
def launch(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    """Something for the gate: what is built in, which on the simulated device runs on the host, a copy, or a kernel."""
    if request.param == "built-in":
        return lambda x: gp.add(x, x)
    if request.param == "copy out":
        return lambda x: x.to_numpy()
    if request.param == "copy in":
        return lambda x: gp.from_numpy(np.ones(4, np.float32))
    if request.param == "many":
        bound = gp.jit(KERNEL, func="add_one")[1, 4]
        return lambda x: native.launch_many(bound, (x,), 500)
    kernel = gp.jit(KERNEL, func="add_one")
    return lambda x: kernel[1, 4](x)


def test_one_that_runs_is_held_at_its_next_launch(scheduler: Scheduler, launch: Callable[[Any], Any]) -> None:
    launched, go, done = threading.Event(), threading.Event(), threading.Event()

    def body() -> str:
        x = gp.ones(4)
        launch(x)
        gp.synchronize()  # what it launched before goes on
        launched.set()
        assert go.wait(PATIENCE_S)
        launch(x)
        done.set()
        return "out"

    task = scheduler.submit(body, name="held", memory="60MB", bandwidth=0.4)
    scheduler.start()
    assert launched.wait(PATIENCE_S)
    assert task.pause()
    assert (task.phase, task.paused) == ("Suspended", True)
    launches = task.record.launches
    go.set()
    assert not done.wait(0.2), "it got past the gate"
    other = scheduler.submit(lambda: gp.add(gp.ones(4), gp.ones(4)).to_numpy().tolist())
    assert other.result(PATIENCE_S) == [2.0] * 4, "others go on"
    assert task.record.launches == launches
    totals = scheduler.global_stats()
    assert (totals["suspended"], totals["reserved_memory"], totals["reserved_share_ppm"]) == (1, 60 * MB, 400_000)
    assert task.resume()
    assert task.result(PATIENCE_S) == "out"
    phases = [(event.source, event.target) for event in scheduler.events().events if event.number == task.record.number]
    assert phases[-3:] == [("Running", "Suspended"), ("Suspended", "Running"), ("Running", "Succeeded")]


def test_one_that_is_held_can_be_cancelled(scheduler: Scheduler) -> None:
    launching = threading.Event()
    raised: list[BaseException] = []

    def body() -> None:
        x = gp.ones(4)
        try:
            while True:
                launching.set()
                x = gp.add(x, x)
        except BaseException as error:
            raised.append(error)
            raise

    task = scheduler.submit(body)
    scheduler.start()
    assert launching.wait(PATIENCE_S)
    task.pause()
    before = -1
    while before != task.record.launches:  # until it is held
        before = task.record.launches
        time.sleep(0.05)
    assert not raised
    task.cancel()
    with pytest.raises(TaskCancelledError):
        task.result(PATIENCE_S)
    wait_until(lambda: raised)
    assert isinstance(raised[0], TaskCancelledError)


def test_ctrl_c_reaches_a_step_that_is_held(scheduler: Scheduler) -> None:
    """A task on the calling thread waits with an eye on signals."""
    import os
    import signal

    def body() -> None:
        task.pause()
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        gp.add(gp.ones(4), gp.ones(4))

    task = scheduler.submit(body)
    with pytest.raises(KeyboardInterrupt):
        scheduler.step()
    assert task.phase == "Cancelled"


def test_what_cannot_be_paused_is_refused_and_nothing_changes(scheduler: Scheduler) -> None:
    gate = Gate()
    task = scheduler.submit(gate)
    for call in (scheduler.pause, scheduler.resume):
        with pytest.raises(KeyError):
            call("nobody")
    scheduler.start()
    gate.open.set()
    task.result(PATIENCE_S)
    for call in (scheduler.pause, scheduler.resume):
        with pytest.raises(RuntimeError, match="has ended"):
            call(task)
    assert not task.paused
