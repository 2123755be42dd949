"""Partitions of isolation "process": faults cost the worker alone, and no process is left."""

from __future__ import annotations

import asyncio
import os
import signal
import struct
import subprocess
import sys
import textwrap
import threading
import weakref
from pathlib import Path
from typing import Any

import process_functions as work
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from interrupts import interrupt
from process_help import P, alive, children, kept, kill, process, with_process
from scheduler_help import PATIENCE_S, collected, wait_until

import pygpukit as gp
from pygpukit import _core
from pygpukit.core.errors import DriverError, TaskCancelledError
from pygpukit.scheduler import Scheduler
from pygpukit.worker import WorkerDiedError


@pytest.fixture
def own(scheduler: Scheduler) -> Scheduler:
    return with_process(scheduler)


def test_one_task_at_a_time_and_the_default_partition(own: Scheduler) -> None:
    own.partitions.set_default("p")
    first, second = own.submit(work.pid), own.submit(work.pid)
    assert first.partition == "p" and own.partitions.get("p").usage.unfinished_tasks == 2
    assert first.result(PATIENCE_S) == second.result(PATIENCE_S) == process(own).pid


def test_a_task_can_be_awaited_and_stepped(own: Scheduler) -> None:
    task = own.submit(work.echo, 7, **P)
    assert own.step() is task and task.result(PATIENCE_S) == 7

    async def main() -> list[Any]:
        return await asyncio.gather(*(own.submit(work.echo, i, **P) for i in range(4)))

    assert asyncio.run(main()) == [0, 1, 2, 3]


# ---- faults ----


@pytest.mark.parametrize("kernel", ["wild", "trapped"])
def test_a_fault_costs_the_worker_and_its_task_alone(own: Scheduler, kernel: str) -> None:
    since = own.snapshot()["next_sequence"]
    x = gp.ones(100)
    first = own.submit(work.pid, **P).result(PATIENCE_S)
    bad = own.submit(work.fault, kernel, **P, memory="40MB")
    queued = own.submit(work.scale, x, 3.0, **P, memory="40MB")
    elsewhere = own.submit(lambda: os.getpid())
    with pytest.raises(DriverError, match=f"fault faulted in the worker of partition 'p': .*kernel {kernel}"):
        bad.result(PATIENCE_S)
    assert (bad.phase, bad.reason) == ("Failed", "StickyDeviceError")
    assert elsewhere.result(PATIENCE_S) == os.getpid()
    assert queued.result(PATIENCE_S) is None and float(x.to_numpy().sum()) == 300
    assert float(gp.add(x, x).to_numpy()[0]) == 6
    record = process(own)
    assert record.pid != first and not alive(first)
    assert (record.starts, record.losses) == (2, 1) and f"kernel {kernel}" in record.cause
    assert worker_events(since) == [("ready", True), ("lost", False), ("ready", True)]
    wait_until(lambda: kept(own))


def worker_events(since: int) -> list[tuple[str, bool]]:
    """What the event ring says of workers: what, and whether it took time."""
    return [(("ready", "lost")[r[8]], r[9] > 0) for r in ring(since) if r[2] == 33]


def ring(since: int) -> list[tuple[int, ...]]:
    return list(struct.iter_unpack("<QQHHIIIQQQII", _core.ring_read(since)[0]))


def test_an_idempotent_task_starts_over_once(own: Scheduler, tmp_path: Path) -> None:
    marker = str(tmp_path / "marker")
    task = own.submit(work.fault_the_first_time, marker, **P, idempotent=True)
    assert task.result(PATIENCE_S) == "the second time" and task.execution_count == 2
    twice = own.submit(work.leave, 7, **P, idempotent=True)
    with pytest.raises(WorkerDiedError, match=r"leave: .* ended with exit code 7"):
        twice.result(PATIENCE_S)
    assert (twice.execution_count, twice.reason, process(own).losses) == (2, "WorkerLost", 3)
    (tmp_path / "marker").unlink()
    once = own.submit(work.fault_the_first_time, marker, **P)
    with pytest.raises(DriverError):
        once.result(PATIENCE_S)
    assert once.execution_count == 1


def test_a_worker_that_is_killed_is_replaced(own: Scheduler) -> None:
    own.submit(work.pid, **P).result(PATIENCE_S)
    for number in range(3):  # at once: the process may still look alive
        kill(own)
        assert own.submit(work.echo, number, **P).result(PATIENCE_S) == number
    task = own.submit(work.sleep, 300, **P)
    wait_until(lambda: process(own).state == "busy")
    kill(own)
    with pytest.raises(WorkerDiedError, match="signal 9") as caught:
        task.result(PATIENCE_S)
    assert caught.value.exit_code == -signal.SIGKILL and task.reason == "WorkerLost"
    assert own.submit(work.echo, 2, **P).result(PATIENCE_S) == 2


@pytest.mark.parametrize("how", ["cancel", "deadline", "asyncio"])
def test_what_runs_is_really_ended(own: Scheduler, how: str) -> None:
    own.submit(work.pid, **P).result(PATIENCE_S)
    first = process(own).pid
    deadline = 5.0 if how == "deadline" else None  # it is to run by then, on a loaded machine, too
    task = own.submit(work.spin_for_ever, **P, memory="40MB", deadline=deadline)
    queued = own.submit(work.echo, "next", **P, memory="40MB")
    wait_until(lambda: process(own).state == "busy")
    if how == "cancel":
        assert task.cancel()
    elif how == "asyncio":

        async def give_up() -> None:
            await asyncio.wait_for(task, 0.2)

        with pytest.raises(asyncio.TimeoutError):
            asyncio.run(give_up())
    with pytest.raises(TaskCancelledError):
        task.result(PATIENCE_S)
    assert task.phase == ("Expired" if how == "deadline" else "Cancelled")
    assert queued.result(PATIENCE_S) == "next"
    assert not alive(first) and process(own).losses == 1
    wait_until(lambda: kept(own))


def test_ctrl_c_ends_the_wait_or_the_step_and_nothing_else(own: Scheduler, tmp_path: Path) -> None:
    def busy() -> bool:
        return process(own).state == "busy"

    own.submit(work.pid, **P)
    own.step()
    first = process(own).pid
    stepped = own.submit(work.sleep, 300, **P)
    interrupt(own.step, busy)
    assert stepped.phase == "Cancelled" and not alive(first)
    over = tmp_path / "over"
    waited = own.submit(work.wait_for, str(over), **P)
    interrupt(lambda: waited.result(PATIENCE_S), busy)
    over.touch()
    assert waited.result(PATIENCE_S) == "waited", "Ctrl-C interrupts the wait, not the task"
    wait_until(lambda: kept(own))


def test_a_worker_that_is_started_ahead_is_not_busy(own: Scheduler) -> None:
    states: list[str] = []
    worker = own._desk.processes.worker("p")

    class Watched(type(worker)):
        def __setattr__(self, name: str, value: Any) -> None:
            if name == "_state":
                states.append(value)
            super().__setattr__(name, value)

    worker.__class__ = Watched
    worker._replace()
    assert states == ["starting", "ready"]


# ---- ends ----


@pytest.mark.parametrize("how", ["close", "delete", "drop", "shut"])
def test_no_process_is_left(how: str) -> None:
    scheduler = with_process(Scheduler(total_memory="100MB", start=False))
    scheduler.submit(work.pid, **P).result(PATIENCE_S)
    pid = process(scheduler).pid
    if how == "close":
        scheduler.close()
    elif how == "delete":
        wait_until(lambda: kept(scheduler))
        scheduler.delete_partition("p")
        scheduler.create_partition("p", memory="40MB", isolation="process")
        assert scheduler.submit(work.pid, **P).result(PATIENCE_S) != pid
        scheduler.close()
    elif how == "shut":
        task = scheduler.submit(work.spin_for_ever, **P)
        wait_until(lambda: process(scheduler).state == "busy")
        scheduler._shut(PATIENCE_S)
        assert task.phase == "Cancelled"
    else:
        held = weakref.ref(scheduler)
        del scheduler
        wait_until(lambda: collected(held))
    wait_until(lambda: not alive(pid))


@pytest.mark.parametrize("end", ["sys.exit(0)", "os._exit(0)", "os.kill(os.getpid(), 9)"])
def test_it_dies_with_its_parent(end: str) -> None:
    code = f"""
        import os, sys, time
        sys.path.insert(0, {str(Path(work.__file__).parent)!r})
        import process_functions as work
        from pygpukit.scheduler import Scheduler
        scheduler = Scheduler(total_memory="100MB", start=False)
        scheduler.create_partition("p", isolation="process")
        print(scheduler.submit(work.pid, partition="p").result(60), flush=True)
        task = scheduler.submit(work.spin_for_ever, partition="p")
        while scheduler.worker_processes()[0].state != "busy":
            time.sleep(0.01)
        {end}
    """
    environment = {**os.environ, "PYTHONPATH": str(Path(gp.__file__).parent.parent)}
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=110, env=environment)
    pid = int(done.stdout)
    wait_until(lambda: not alive(pid))


# ---- all of it, in any order ----

TERMINAL = (1, 6, 7, 8, 9)  # phases, docs/seams.md
KINDS = ("ok", "raise", "fault", "die", "cancel")


@settings(
    max_examples=5,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],  # an example takes seconds: there is no time to look for a shorter one
    suppress_health_check=list(HealthCheck),
)
@given(st.lists(st.tuples(st.sampled_from(KINDS), st.booleans(), st.booleans()), min_size=4, max_size=10))
def test_every_task_ends_once_and_as_it_must(steps: list[tuple[str, bool, bool]]) -> None:
    """Random tasks over a partition with a process and one without, some of them idempotent."""
    expected = {"ok": "Succeeded", "raise": "Failed", "fault": "Failed", "die": "Failed", "cancel": "Cancelled"}
    since = _core.ring_head()
    before = children()
    scheduler = with_process(Scheduler(total_memory="100MB", start=False))
    scheduler.create_partition("q", memory="40MB", bandwidth=0.2)
    most = 0
    tasks = []
    with scheduler:
        for kind, in_process, idempotent in steps:
            if not in_process and kind in ("fault", "die"):
                continue  # these would cost this process
            cancelled = threading.Event()
            endless: Any = work.sleep if in_process else cancelled.wait
            function: Any = {"ok": work.pid, "raise": work.fail, "fault": work.fault, "die": work.leave}.get(kind)
            args: tuple[Any, ...] = {"raise": ("no",), "die": (1,), "cancel": (300,)}.get(kind, ())
            request: dict[str, Any] = {"partition": "p" if in_process else "q", "memory": "30MB", "bandwidth": 0.2}
            task = scheduler.submit(function or endless, *args, **request, idempotent=idempotent)
            tasks.append((kind, in_process, idempotent, task))
            if kind == "cancel":
                assert task.cancel()
                cancelled.set()
            most = max(most, len(children() - before))
        for kind, in_process, idempotent, task in tasks:
            try:
                value = task.result(PATIENCE_S)
                assert (value != os.getpid()) == in_process
            except (LookupError, DriverError, WorkerDiedError, TaskCancelledError):
                pass
            assert task.phase == expected[kind]
            if kind in ("fault", "die"):
                assert task.execution_count == 1 + idempotent
            most = max(most, len(children() - before))
        wait_until(lambda: kept(scheduler))
    assert most <= 1, "one worker, whatever happens"
    wait_until(lambda: not children() - before)
    transitions = [(r[7], r[8] & 255) for r in ring(since) if r[2] == 32]
    ended = [number for number, to in transitions if number >> 32 == scheduler.core.ordinal and to in TERMINAL]
    assert sorted(ended) == sorted(task.record.number for *_, task in tasks)
