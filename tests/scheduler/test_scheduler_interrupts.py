"""Ctrl-C at every line of the code that hands outcomes to tasks: none is lost."""

from __future__ import annotations

import linecache
import sys
import threading
import time

import pytest
from scheduler_help import PATIENCE_S

from pygpukit.core.errors import TaskCancelledError
from pygpukit.scheduler import Scheduler
from pygpukit.scheduler.desk import Desk
from pygpukit.scheduler.task import Task

CODES = {function.__code__ for function in (Desk.settle, Desk._settle, Task._settle, Task._complete)}


def interrupted_at(number, call):
    """Call, and raise KeyboardInterrupt at the line of that number, counted from 1. False when there are fewer."""
    left = number

    def trace(frame, event, _argument):
        nonlocal left
        if frame.f_code not in CODES:
            return None
        # The end of a with-statement counts as its first line. No signal is looked at there: its __exit__ is called.
        if event == "line" and not linecache.getline(frame.f_code.co_filename, frame.f_lineno).lstrip().startswith(
            "with"
        ):
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def every_line(act):
    """Act with the numbers of all lines, one after the other. act(number): whether there was such a line."""
    number = 1
    while act(number):
        number += 1
    assert number > 10, "most of what is looked at has run"


@pytest.mark.parametrize("waited_for", [False, True])
def test_a_step_that_is_interrupted_loses_no_outcome(waited_for):
    def act(number):
        with Scheduler() as scheduler:
            scheduler.stop()
            first = scheduler.submit(lambda: 1)
            if waited_for:
                assert not first._future.done()
            there = interrupted_at(number, scheduler.step)
            second = scheduler.submit(lambda: 2)
            assert first.result(PATIENCE_S) == 1
            assert second.result(PATIENCE_S) == 2
            assert scheduler._desk.find(first.id) is first
        assert scheduler._desk.tasks == {} and scheduler._desk._read[1] == ()
        return there

    every_line(act)


def test_who_waits_in_another_thread_is_told_although_the_end_was_interrupted():
    def act(number):
        told = []
        with Scheduler() as scheduler:
            scheduler.stop()  # so that it is this thread that tells
            waits = scheduler.submit(lambda: 1)

            def wait():
                try:
                    told.append(waits._future.result(PATIENCE_S))
                except TaskCancelledError as error:
                    told.append(error)

            waiter = threading.Thread(target=wait)
            waiter.start()
            there = interrupted_at(number, lambda: scheduler.cancel(waits))
            scheduler.start()
            waiter.join(PATIENCE_S)
        assert isinstance(told[0], TaskCancelledError)
        return there

    every_line(act)


def test_a_wake_that_comes_just_before_the_watcher_waits_is_heard():
    class Core:
        """The scheduler's, where another thread's interrupt always comes between the watcher's look and its wait."""

        def __init__(self, core, desk, stopping):
            self.core, self.desk, self.stopping = core, desk, stopping

        def __getattr__(self, name):
            return getattr(self.core, name)

        def finished(self, since, timeout_s, woken=None):
            self.desk._interrupted = True
            self.core.wake()
            self.stopping.set()
            return self.core.finished(since, min(timeout_s, PATIENCE_S), woken)

    with Scheduler() as scheduler:
        scheduler.stop()
        desk, stopping, began_s = scheduler._desk, threading.Event(), time.monotonic()
        core = desk._core
        desk._core = Core(core, desk, stopping)
        try:
            desk._watch(stopping)
        finally:
            desk._core = core
        assert time.monotonic() - began_s < PATIENCE_S
