"""Faults around the scheduler: threads, event loops, forks, signals and ends of the interpreter, at any moment."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import sys
import threading
import time
import warnings
import weakref

import pytest
from interrupts import interrupt
from scheduler_help import PATIENCE_S, collected, each_exit, run, wait_until

import pygpukit as gp
from pygpukit.core.errors import GPUError, InvalidSpecError, TaskCancelledError, TaskRejectedError


def drained(scheduler):
    """Whether nothing is unfinished or reserved, and every task ended once."""
    totals = scheduler.global_stats()
    ended = sum(totals[phase] for phase in ("succeeded", "failed", "cancelled", "rejected", "expired"))
    return ended == totals["submitted"] and totals["reserved_memory"] == totals["reserved_share_ppm"] == 0


# ---- threads ----


def test_64_threads_submit_cancel_resize_and_watch(scheduler):
    scheduler.create_partition("a", memory="40MB", borrow_memory="20MB")
    scheduler.start()
    outcomes, errors = [], []

    def client(seed):
        rng = random.Random(seed)
        try:
            for _ in range(12):
                task = scheduler.submit(
                    (lambda: 1 // 0) if rng.random() < 0.1 else (lambda: seed),
                    memory=rng.randrange(1, 50 << 20),
                    priority=rng.randrange(3),
                    partition=rng.choice([None, "a"]),
                    retry=rng.choice([None, 1]),
                )
                if rng.random() < 0.3:
                    task.cancel()
                elif rng.random() < 0.2:
                    scheduler.resize_partition("a", memory="40MB", borrow_memory=f"{rng.randrange(10, 30)}MB")
                elif rng.random() < 0.2:
                    assert scheduler.snapshot()["totals"]["reserved_memory"] <= 100 << 20
                outcomes.append(task)
        except Exception as error:
            errors.append(error)

    clients = [threading.Thread(target=client, args=(seed,)) for seed in range(64)]
    for thread in clients:
        thread.start()
    for thread in clients:
        thread.join()
    assert not errors and len(outcomes) == 64 * 12
    for task in outcomes:
        try:
            task.result(PATIENCE_S)
        except (TaskCancelledError, TaskRejectedError, ZeroDivisionError):
            assert task.phase in ("Cancelled", "Rejected", "Failed")
    wait_until(lambda: drained(scheduler))


def test_many_threads_wait_for_one_task(scheduler):
    """Whoever waits first makes what all wait on, just as the task ends."""
    for _ in range(50):
        task, found = scheduler.submit(lambda: "value"), []

        def wait(task=task, found=found):
            found.append(task.result(PATIENCE_S))

        waiters = [threading.Thread(target=wait) for _ in range(2)]
        for thread in waiters:
            thread.start()
        for thread in waiters:
            thread.join(PATIENCE_S)
        assert found == ["value", "value"]


def test_one_id_taken_by_many_threads_at_once_is_one_task(scheduler):
    barrier, taken, refused = threading.Barrier(16), [], []

    def client():
        barrier.wait()
        try:
            taken.append(scheduler.submit(lambda: None, task_id="same"))
        except InvalidSpecError as error:
            refused.append(error.field)

    clients = [threading.Thread(target=client) for _ in range(16)]
    for thread in clients:
        thread.start()
    for thread in clients:
        thread.join()
    assert (len(taken), refused, scheduler.task_count) == (1, ["task_id"] * 15, 1)


def test_a_submission_that_is_interrupted_at_once_leaves_nothing_to_wait_for(scheduler, monkeypatch):
    class Interrupted(dict):
        def setdefault(self, key, value):
            super().setdefault(key, value)
            raise KeyboardInterrupt

    tasks = Interrupted()
    with monkeypatch.context() as patch:
        patch.setattr(scheduler._desk, "tasks", tasks)
        with pytest.raises(KeyboardInterrupt):
            scheduler.submit(int)
    assert not tasks, "close() waits for what is there"


def test_a_taken_id_stays_its_owners(scheduler):
    first = scheduler.submit(int, task_id="same")
    with pytest.raises(InvalidSpecError, match="'same' is taken"):
        scheduler.submit(int, task_id="same")
    assert scheduler.get_task("same") is first and first.result(PATIENCE_S) == 0


def test_an_older_record_does_not_replace_the_outcome(scheduler, monkeypatch):
    """The task ends between the core's answer to one thread and that thread's next step."""
    task, core = scheduler.submit(lambda: "value"), scheduler.core
    ran = []

    class Slow:
        def get(self, task_id):
            record = core.get(task_id)
            if record.phase == "Admitted":  # not while it runs, which asks, too
                ran.append(scheduler.step())
            return record

    with monkeypatch.context() as patch:
        patch.setattr(scheduler, "core", Slow())
        assert task.phase == "Admitted"
    assert ran == [task] and task.result() == "value"


def test_a_task_that_ends_while_it_is_looked_up_has_ended(scheduler, monkeypatch):
    """It ends, and its object goes, between the core's answer and the look for the object."""
    scheduler.submit(lambda: "value", task_id="brief")
    core = scheduler.core

    class Slow:
        def get(self, task_id):
            record = core.get(task_id)
            if record.phase == "Admitted":
                scheduler.step()
            return record

    with monkeypatch.context() as patch:
        patch.setattr(scheduler, "core", Slow())
        again = scheduler.get_task("brief")
    with pytest.raises(GPUError, match="went with the object that submit"):
        again.result(PATIENCE_S)


def test_an_outcome_that_is_seen_leaves_no_function(scheduler, monkeypatch):
    """Whoever comes between the steps of settling a task."""
    task, seen = scheduler.submit(int), []

    class Watched:
        def __enter__(self):
            pass

        def __exit__(self, *_):
            seen.append((task._ended is not None, task.fn))

    with monkeypatch.context() as patch:
        patch.setattr("pygpukit.scheduler.task._settling", Watched())
        scheduler.step()
    assert seen == [(True, None)]


# ---- bad input changes nothing ----


def test_a_refused_submission_leaves_nothing_behind(scheduler):
    kept = scheduler.submit(int, task_id="kept")
    for arguments in ({"task_id": "kept"}, {"task_id": "new", "depends_on": ["nobody"]}, {"task_id": "n" * 300}):
        with pytest.raises(InvalidSpecError):
            scheduler.submit(int, **arguments)
    assert scheduler.get_task("kept") is kept and kept.result() == 0
    assert scheduler.get_task("new") is None and scheduler.submit(int, task_id="new").result() == 0
    scheduler.close()  # waits for what is on the desk
    assert drained(scheduler)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"memory": "lots"}, "memory"),
        ({"bandwidth": 1.5}, "bandwidth"),
        ({"depends_on": ["never"]}, "depends_on"),
        ({"task_id": "me", "depends_on": ["me"]}, "depends_on"),
        ({"partition": "nowhere"}, "partition"),
        ({"policy": "guaranteed", "memory": "1MB"}, "bandwidth"),
        ({"policy": "best_effort", "memory": "1MB"}, "memory"),
        ({"memory": "2MB", "memory_limit": "1MB"}, "memory_limit"),
        ({"memory": -1}, "memory"),
        ({"memory_limit": "lots"}, "memory_limit"),
        ({"bandwidth": float("nan")}, "bandwidth"),
        ({"bandwidth_limit": 2}, "bandwidth_limit"),
        ({"policy": "best"}, "policy"),
        ({"priority": 2**70}, "priority"),
        ({"deadline": -1}, "deadline"),
        ({"retry": -1}, "retry"),
    ],
)
def test_bad_requests_name_the_field_and_reserve_nothing(scheduler, arguments, field):
    before = scheduler.core.stats()
    with pytest.raises(InvalidSpecError) as raised:
        scheduler.submit(lambda: None, **arguments)
    assert raised.value.field == field and field in str(raised.value)
    assert scheduler.core.stats() == before
    assert scheduler.step() is None


# ---- event loops ----


def test_a_failure_in_gather_leaves_the_others(scheduler):
    async def main():
        tasks = [scheduler.submit(lambda i=i: 6 // i) for i in range(4)]
        return await asyncio.gather(*tasks, return_exceptions=True)

    zero, *others = asyncio.run(main())
    assert isinstance(zero, ZeroDivisionError) and others == [6, 3, 2]
    wait_until(lambda: drained(scheduler))


def test_two_loops_in_two_threads_await_one_task(scheduler):
    entered, go = threading.Event(), threading.Event()

    def work():
        entered.set()
        assert go.wait(PATIENCE_S)
        return "both"

    task, found = scheduler.submit(work), []

    async def wait():
        return await task

    threads = [threading.Thread(target=lambda: found.append(asyncio.run(wait()))) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert entered.wait(PATIENCE_S)
    go.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert found == ["both", "both"]


def waited_for(scheduler):
    """A task that ends when it is let go, and a loop about to wait for it, with the wait and the events."""
    entered, go = threading.Event(), threading.Event()

    def work():
        entered.set()
        assert go.wait(PATIENCE_S)
        return "late"

    task = scheduler.submit(work)

    async def wait():
        return await task

    loop = asyncio.new_event_loop()
    waiting = loop.create_task(wait())
    return task, entered, go, loop, waiting


def test_a_loop_that_is_closed_under_a_wait_harms_nobody(scheduler):
    task, entered, go, loop, waiting = waited_for(scheduler)
    scheduler.start()
    loop.run_until_complete(asyncio.sleep(0.001))  # it waits now
    assert entered.wait(PATIENCE_S)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        loop.run_until_complete(waiting)
    loop.close()
    go.set()
    with pytest.raises(TaskCancelledError):
        task.result(PATIENCE_S)
    wait_until(lambda: drained(scheduler))
    assert scheduler.submit(lambda: "next").result(PATIENCE_S) == "next"


def test_a_task_outlives_the_loop_that_waits_for_it(scheduler):
    """The loop is closed with the wait in it: the task ends as any other, and whoever asks next is told."""
    task, entered, go, loop, waiting = waited_for(scheduler)
    loop.run_until_complete(asyncio.sleep(0.001))
    assert entered.wait(PATIENCE_S) and not waiting.done()
    waiting._log_destroy_pending = False  # asyncio would say so: what is wanted here
    loop.close()
    go.set()
    assert task.result(PATIENCE_S) == "late"
    assert scheduler.submit(lambda: "next").result(PATIENCE_S) == "next"
    wait_until(lambda: drained(scheduler))


def test_a_loop_in_a_thread_submits_and_waits(scheduler):
    async def main():
        return await asyncio.gather(*(scheduler.submit(lambda i=i: i + 1) for i in range(8)))

    found = []
    thread = threading.Thread(target=lambda: found.append(asyncio.run(main())))
    thread.start()
    thread.join(PATIENCE_S)
    assert found == [list(range(1, 9))]


def test_ctrl_c_in_an_await_cancels_its_task_alone(scheduler):
    entered, go = threading.Event(), threading.Event()

    def work():
        entered.set()
        assert go.wait(PATIENCE_S)

    task, other = scheduler.submit(work), scheduler.submit(lambda: go.wait(PATIENCE_S) and "other")

    async def main():
        await task

    interrupt(lambda: asyncio.run(main()), entered.is_set)
    assert task.phase == "Cancelled" and not other.done()
    go.set()
    assert other.result(PATIENCE_S) == "other"
    wait_until(lambda: drained(scheduler))


def test_awaits_dropped_at_any_moment_leak_nothing(scheduler):
    """Waits that time out while their task runs, waits or has just ended."""
    rng, kept = random.Random(3), []

    async def one():
        task = scheduler.submit(lambda: time.sleep(0.001), memory="40MB")
        kept.append(weakref.ref(task))
        with contextlib.suppress(asyncio.TimeoutError, TaskCancelledError):
            await asyncio.wait_for(task, rng.random() * 0.01)

    async def main():
        await asyncio.gather(*(one() for _ in range(60)))

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # never awaited, never retrieved
        asyncio.run(main())
        wait_until(lambda: drained(scheduler))
        wait_until(lambda: all(collected(ref) for ref in kept if ref() is not None))


# ---- ends ----


@each_exit
@pytest.mark.parametrize(
    ("last", "returncode"),
    [
        ("os._exit(5)", 5),
        ("atexit.register(sys.exit, 0)", 0),
        ("atexit.register(lambda: tasks[-1].cancel())", 0),
        ("atexit.register(scheduler.close)", 0),
        ("scheduler.stop(); scheduler.start()", 0),
        ("os.kill(os.getpid(), signal.SIGTERM); time.sleep(10)", -signal.SIGTERM),
    ],
)
def test_ends_with_tasks_under_way(last, returncode, _number):
    code = f"""
import atexit, os, signal, sys, threading, time
from pygpukit.scheduler import Scheduler
scheduler = Scheduler(total_memory=1 << 20, start=False)
entered = threading.Event()
def work():
    entered.set()
    time.sleep(0.1)
tasks = [scheduler.submit(work) for _ in range(6)]
scheduler.start()
entered.wait()
{last}
"""
    assert "Traceback" not in run(code, returncode=returncode)


SIGNALS = int(os.environ.get("PYGPUKIT_SIGNALS") or 300)  # 10000 by hand


def test_ctrl_c_at_any_moment_leaves_a_scheduler_that_works(scheduler, monkeypatch):
    """In a submission, a step, or an operation or a copy of a task's function. Python itself drops an interrupt that
    comes in a weak reference's callback: such a one is counted, and nothing else may be dropped."""
    rng, interrupted, dropped = random.Random(1), 0, []
    monkeypatch.setattr(sys, "unraisablehook", lambda told: dropped.append(told.exc_type))
    ones = gp.ones(100)

    def work():
        return gp.add(ones, ones).to_numpy().sum()

    assert work() == 200  # what is imported at the first use is
    for _ in range(SIGNALS):
        timer, before = threading.Timer(rng.random() * 0.01, os.kill, (os.getpid(), signal.SIGINT)), len(dropped)
        end = time.monotonic() + PATIENCE_S
        try:
            timer.start()
            while time.monotonic() < end and len(dropped) == before:
                scheduler.submit(work, memory="1MB")
                done = scheduler.step()
                assert done is None or done.result(PATIENCE_S) == 200
        except KeyboardInterrupt:
            interrupted += 1
        finally:
            timer.join()
    assert set(dropped) <= {KeyboardInterrupt}
    assert interrupted + len(dropped) == SIGNALS and interrupted > SIGNALS * 0.8
    wait_until(lambda: scheduler.step() is None and drained(scheduler))
    assert scheduler.submit(work).result(PATIENCE_S) == 200
