"""The scheduler from Python: threads that come and go, cancelling, waiting, asyncio, and what outlives what."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import signal
import subprocess
import sys
import threading
import time
import weakref
from functools import partial
from pathlib import Path

import pytest
from interrupts import interrupt
from scheduler_help import PATIENCE_S, Gate, collected, wait_until, when

import pygpukit as gp
from pygpukit._core import native
from pygpukit.core.errors import (
    GPUError,
    InvalidSpecError,
    TaskCancelledError,
    TaskDeadlockError,
    TaskRejectedError,
)
from pygpukit.scheduler import MB, Scheduler, TaskState, all_schedulers, live_cores

# ---- threads ----


def test_the_context_manager_runs_everything():
    ran = []
    with Scheduler(total_memory="1GB", workers=2) as scheduler:
        for i in range(50):
            scheduler.submit(ran.append, i, memory="300MB")
    assert sorted(ran) == list(range(50)) and scheduler.closed
    with pytest.raises(RuntimeError, match="closed"):
        scheduler.start()
    with pytest.raises(RuntimeError, match="closed; make a new one"):
        scheduler.submit(int)
    assert scheduler.task_count == 50


def test_a_scheduler_starts_with_its_first_task():
    ran = threading.Event()
    scheduler = Scheduler(total_memory="1GB", workers=1)
    try:
        assert not scheduler.started
        scheduler.submit(ran.set)
        assert scheduler.started and ran.wait(PATIENCE_S)
        scheduler.stop()
        left = scheduler.submit(int)
        assert not scheduler.started and left.phase == "Admitted", "who stopped it starts it again"
        assert left.result(PATIENCE_S) == 0
    finally:
        scheduler.close()


def test_a_scheduler_can_be_filled_first():
    ran: list[int] = []
    scheduler = Scheduler(total_memory="1GB", workers=1, start=False)
    tasks = [scheduler.submit(ran.append, i, priority=i) for i in range(5)]
    assert not scheduler.started and ran == []
    scheduler.start()
    for task in tasks:
        task.result(PATIENCE_S)
    assert ran == [4, 3, 2, 1, 0]
    scheduler.close()


def test_an_exception_in_the_context_manager_cancels_what_is_left():
    gate = Gate()
    with pytest.raises(ZeroDivisionError), Scheduler(total_memory="1GB", workers=1) as scheduler:
        running = scheduler.submit(gate)
        queued = scheduler.submit(int)
        assert gate.entered.wait(PATIENCE_S)
        when(lambda: running.phase == "Cancelled", gate.open.set)
        1 // 0
    assert (running.phase, queued.phase) == ("Cancelled", "Cancelled")


def test_close_without_start_cancels(scheduler):
    task = scheduler.submit(int)
    scheduler.close()
    assert task.phase == "Cancelled"
    with pytest.raises(TaskCancelledError, match="was cancelled"):
        task.result()


def test_stop_and_start_again(scheduler):
    gate = Gate()
    running = scheduler.submit(gate, memory="100MB")
    waiting = scheduler.submit(lambda: "later", memory="100MB")
    scheduler.start()
    assert gate.entered.wait(PATIENCE_S)
    threads = list(scheduler._desk._threads)
    when(lambda: sum(thread.is_alive() for thread in threads) == 1, gate.open.set)  # the others have gone
    scheduler.stop()
    assert (running.phase, waiting.phase) == ("Succeeded", "Admitted")
    assert waiting.result(PATIENCE_S) == "later"


def test_tasks_run_at_the_same_time_within_their_memory(scheduler):
    lock, inside, most, pair = threading.Lock(), 0, 0, threading.Barrier(2)

    def work():
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        pair.wait(PATIENCE_S)
        time.sleep(0.002)
        with lock:
            inside -= 1

    tasks = [scheduler.submit(work, memory="40MB") for _ in range(20)]
    for task in tasks:
        task.result(PATIENCE_S)
    assert most == 2
    assert scheduler.reserved_memory == 0


def test_many_threads_submit_and_cancel(scheduler):
    submitted = []

    def client():
        mine = [scheduler.submit(lambda: None, memory="1MB") for _ in range(100)]
        for task in mine[::3]:
            task.cancel()
        submitted.extend(mine)

    scheduler.start()
    clients = [threading.Thread(target=client) for _ in range(8)]
    for thread in clients:
        thread.start()
    for thread in clients:
        thread.join()
    for task in submitted:
        try:
            task.result(PATIENCE_S)
        except TaskCancelledError:
            assert task.phase == "Cancelled"
        except TaskRejectedError:
            assert task.reason == "QueueFull"
    wait_until(lambda: scheduler.reserved_memory == 0)  # a cancelled function may still be on its way out
    totals = scheduler.global_stats()
    ended = totals["succeeded"] + totals["cancelled"] + totals["rejected"]
    assert (ended, totals["queued"], totals["admitted"], totals["running"]) == (800, 0, 0, 0)


def test_system_exit_in_a_task_ends_only_the_task(scheduler):
    task = scheduler.submit(sys.exit, 3)
    with pytest.raises(SystemExit):
        task.result(PATIENCE_S)
    assert scheduler.submit(lambda: "still here").result(PATIENCE_S) == "still here"
    with pytest.raises(SystemExit):
        by_hand = Scheduler(total_memory=1, start=False)
        by_hand.submit(sys.exit, 3)
        by_hand.step()


def test_a_task_may_submit_and_wait(scheduler):
    def outer():
        return scheduler.submit(lambda: 20).result(PATIENCE_S) + 1

    assert scheduler.submit(outer).result(PATIENCE_S) == 21
    closing = scheduler.submit(scheduler.close)
    with pytest.raises(RuntimeError, match="wait for its own scheduler"):
        closing.result(PATIENCE_S)


# ---- cancelling and deadlines ----


def test_cancel_before_and_while_it_runs(scheduler):
    queued = scheduler.submit(int)
    assert queued.cancel() and not queued.cancel() and queued.fn is None
    gate, seen = Gate(), []

    def work():
        ones = gp.ones(10)
        gate()
        try:
            ones + ones
        except TaskCancelledError as error:
            seen.append(error)
            raise

    running = scheduler.submit(work, memory="60MB")
    scheduler.start()
    gate.entered.wait(PATIENCE_S)
    assert scheduler.cancel(running.id)
    with pytest.raises(TaskCancelledError, match="was cancelled"):
        running.result(PATIENCE_S)
    assert scheduler.reserved_memory == 60 * MB, "its function is still inside"
    gate.open.set()
    wait_until(lambda: scheduler.reserved_memory == 0)
    assert len(seen) == 1 and running.phase == "Cancelled"


def test_a_deadline_passes_without_anyone_asking(scheduler):
    gate = Gate()
    running = scheduler.submit(gate, deadline=0.05)
    queued = scheduler.submit(int, depends_on=running)
    scheduler.start()
    with pytest.raises(TaskCancelledError, match="deadline"):
        running.result(PATIENCE_S)
    with pytest.raises(GPUError, match="ended Expired"):
        queued.result(PATIENCE_S)
    assert (running.state, queued.reason) == (TaskState.EXPIRED, "DependencyFailed")
    gate.open.set()


def test_a_deadline_behind_the_workers_is_refused_with_its_numbers():
    with Scheduler(total_memory="1GB", workers=1) as scheduler:
        gate = Gate()
        for _ in range(2):  # the first is running when the deadline is judged
            scheduler.submit(gate, estimate=3600)
            assert gate.entered.wait(PATIENCE_S)
        fits = scheduler.submit(int, deadline=3 * 3600, estimate=1)
        late = scheduler.submit(int, deadline=3600, estimate=1)
        assert (fits.phase, late.phase, late.reason) == ("Admitted", "Rejected", "DeadlineUnmeetable")
        assert late.detail["asked"] > 1.5 * 3600e9 and late.detail["available"] <= 3600e9
        urgent = scheduler.submit(int, deadline=3700, estimate=1, priority=1)
        assert urgent.phase == "Admitted", "it goes before those that have not started"
        gate.open.set()


# ---- tasks that wait for tasks ----


def test_a_task_that_waits_in_vain_for_a_worker_fails_and_the_other_goes_on():
    with Scheduler(total_memory="1GB", workers=2) as scheduler:
        both = threading.Barrier(2)

        def wait_for_another():
            both.wait(PATIENCE_S)
            child = scheduler.submit(int, name="child")
            return child, child.result()

        parents = [scheduler.submit(wait_for_another) for _ in range(2)]
        errors = [task._future.exception(PATIENCE_S) for task in parents]
        failed = [error for error in errors if error is not None]
        assert len(failed) == 1 and isinstance(failed[0], TaskDeadlockError)
        assert re.search(r"'child' .* is Admitted and cannot end: no worker of 2 .* depends_on=", str(failed[0]))
        child, value = parents[errors.index(None)].result(PATIENCE_S)
        assert (child.phase, value) == ("Succeeded", 0)


def test_tasks_that_wait_for_each_other_fail():
    with Scheduler(total_memory="1GB", workers=4) as scheduler:
        tasks, told = [], threading.Event()

        def wait_for(index):
            assert told.wait(PATIENCE_S)
            return tasks[index].result()

        tasks += [scheduler.submit(wait_for, index) for index in (1, 0, 0)]
        told.set()
        errors = [task._future.exception(PATIENCE_S) for task in tasks]
        assert all(isinstance(error, TaskDeadlockError) for error in errors), "whoever waits gets the error of the one"


def test_a_task_that_waits_for_a_worker_that_will_be_free_goes_on():
    with Scheduler(total_memory="1GB", workers=2) as scheduler:
        gate = Gate()
        scheduler.submit(gate)
        parent = scheduler.submit(lambda: scheduler.submit(lambda: 5).result())
        wait_until(lambda: scheduler._desk._waits and gate.entered.is_set())
        assert scheduler._desk._stuck() == set()
        gate.open.set()
        assert parent.result(PATIENCE_S) == 5


def test_who_waits_looks_once_for_a_deadlock(monkeypatch):
    with Scheduler(total_memory="1GB", workers=2) as scheduler:
        looks, stuck = [], scheduler._desk._stuck
        monkeypatch.setattr(scheduler._desk, "_stuck", lambda: looks.append(None) or stuck())
        gate = Gate()
        slow = scheduler.submit(gate)
        waiting = scheduler.submit(slow.result)
        wait_until(lambda: scheduler._desk._waits)
        time.sleep(0.2)  # who looks now and then would look again
        gate.open.set()
        waiting.result(PATIENCE_S)
        assert len(looks) == 1


def test_a_task_that_runs_again_may_be_the_one_that_waits_in_vain():
    with Scheduler(total_memory="1GB", workers=2) as scheduler:
        runs = []

        def wait_at_last():
            runs.append(None)
            if len(runs) == 1:
                wait_until(lambda: scheduler._desk._waits)
                raise ValueError("once")
            return scheduler.submit(int, name="child").result()

        again = scheduler.submit(wait_at_last, retry=1)
        parent = scheduler.submit(again.result)
        for task in (again, parent):
            with pytest.raises(TaskDeadlockError, match="'child'"):
                task.result(PATIENCE_S)
        assert len(runs) == 2


def test_workers_that_are_yet_to_be_started_count(monkeypatch):
    begun = threading.Event()

    class Slow(threading.Thread):
        def start(self):
            super().start()
            if "_dispatch" in self.name:
                assert begun.wait(PATIENCE_S)
                time.sleep(0.05)

    def wait_at_once():
        begun.set()
        return scheduler.submit(lambda: 5).result()

    scheduler = Scheduler(total_memory="1GB", workers=2, start=False)
    parent = scheduler.submit(wait_at_once)
    with monkeypatch.context() as patch:
        patch.setattr(threading, "Thread", Slow)
        scheduler.start()
    assert parent.result(PATIENCE_S) == 5
    scheduler.close()


@pytest.mark.parametrize("taken_in", [True, False])
def test_a_task_is_not_found_before_its_submission_is_through(scheduler, monkeypatch, taken_in):
    """Nobody may wait for one that is refused in the end."""
    core, found = scheduler.core, []

    class Slow:
        def __getattr__(self, name):
            return getattr(core, name)

        def submit(self, *args, **options):
            found.append(scheduler.get_task("late"))
            if not taken_in:
                raise InvalidSpecError("refused", "memory")
            return core.submit(*args, **options)

    monkeypatch.setattr(scheduler, "core", Slow())
    if taken_in:
        late = scheduler.submit(int, task_id="late")
        assert scheduler.get_task("late") is late
    else:
        with pytest.raises(InvalidSpecError):
            scheduler.submit(int, task_id="late")
        assert scheduler.get_task("late") is None
    assert found == [None]


def test_a_wait_with_a_timeout_is_no_deadlock():
    with Scheduler(total_memory="1GB", workers=1) as scheduler:

        def wait_shortly():
            child = scheduler.submit(lambda: 5)
            with pytest.raises(TimeoutError):
                child.result(0.2)
            return child

        assert scheduler.submit(wait_shortly).result(PATIENCE_S).result(PATIENCE_S) == 5


def test_ctrl_c_interrupts_the_wait_and_not_the_task(scheduler):
    gate = Gate()
    task = scheduler.submit(gate)
    scheduler.start()
    assert gate.entered.wait(PATIENCE_S)
    for timeout in (None, 10 * PATIENCE_S):
        assert interrupt(partial(task.result, timeout)) < PATIENCE_S
    assert task.phase == "Running"
    gate.open.set()
    assert task.result(PATIENCE_S) == "out"


def test_ctrl_c_in_a_step_cancels_the_task(scheduler):
    def interrupted():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(PATIENCE_S)

    task = scheduler.submit(interrupted, memory="1MB")
    with pytest.raises(KeyboardInterrupt):
        scheduler.step()
    assert (task.phase, scheduler.reserved_memory) == ("Cancelled", 0)


# ---- asyncio ----


def test_await(scheduler):
    async def main():
        results = await asyncio.gather(*(scheduler.submit(lambda i=i: i * i) for i in range(10)))
        with pytest.raises(ZeroDivisionError):
            await scheduler.submit(lambda: 1 // 0)
        done = scheduler.submit(lambda: "done")
        done.result(PATIENCE_S)
        return results, await done, await done

    assert asyncio.run(main()) == ([i * i for i in range(10)], "done", "done")


def test_cancelling_the_await_cancels_the_task(scheduler):
    gate = Gate()

    async def main():
        task = scheduler.submit(gate)
        scheduler.start()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(task, 0.05)
        return task

    task = asyncio.run(main())
    assert task.phase == "Cancelled"
    gate.open.set()


# ---- lifetimes ----


def test_results_go_with_their_handle(scheduler):
    class Big:
        pass

    task = scheduler.submit(Big, task_id="kept by its handle")
    held = weakref.ref(task.result(PATIENCE_S))
    del task
    wait_until(lambda: collected(held))
    again = scheduler.get_task("kept by its handle")
    assert again.phase == "Succeeded" and scheduler.stats("kept by its handle").phase == "Succeeded"
    with pytest.raises(GPUError, match="went with the object that submit"):
        again.result()


def test_a_task_nobody_holds_still_runs(scheduler):
    ran = threading.Event()
    scheduler.start()
    scheduler.submit(ran.set)
    gc.collect()
    assert ran.wait(PATIENCE_S)


def test_a_dropped_scheduler_takes_its_threads_with_it():
    scheduler = Scheduler(total_memory=1, start=False)
    assert all_schedulers()[-1] is scheduler and live_cores()[-1] is scheduler.core
    scheduler.submit(int).result(PATIENCE_S)
    threads = list(scheduler._desk._threads)
    assert len(threads) == 5 and all(thread.is_alive() for thread in threads)
    held, core = weakref.ref(scheduler), scheduler.core
    del scheduler
    wait_until(lambda: collected(held))
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    assert core not in live_cores()


def test_total_memory_defaults_to_the_device():
    assert Scheduler().total_memory == native.memory_info()[1]


def test_prints_go_where_the_submitters_go(scheduler):
    import contextvars

    cell = contextvars.ContextVar("cell", default=None)
    cell.set("submitter")
    task = scheduler.submit(cell.get)
    cell.set("later")
    assert task.result(PATIENCE_S) == "submitter"


@pytest.mark.parametrize("last", ["pass", "raise SystemExit(0)", "scheduler.close()"])
def test_the_interpreter_ends_cleanly_while_tasks_run(last, tmp_path):
    script = tmp_path / "ends.py"
    script.write_text(
        "import threading, time\n"
        "from pygpukit.scheduler import Scheduler\n"
        "scheduler = Scheduler(total_memory=1 << 20, start=False)\n"
        "entered = threading.Event()\n"
        "def work():\n    entered.set()\n    time.sleep(0.3)\n"
        "tasks = [scheduler.submit(work) for _ in range(8)]\n"
        "scheduler.start()\n"
        "entered.wait()\n" + last + "\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(gp.__file__).parent.parent)}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=110, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
