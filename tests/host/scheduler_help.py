"""What tests of the scheduler share: patience, waits for a condition, a function that runs until told to return."""

from __future__ import annotations

import gc
import threading
import time

PATIENCE_S = 60


def when(condition, call):
    """Call it, on a thread of its own, as soon as the condition holds."""

    def wait():
        wait_until(condition)
        call()

    threading.Thread(target=wait).start()


def collected(reference):
    """Whether nothing holds the object any more. A dispatcher may do so for a moment after the task has ended."""
    gc.collect()
    return reference() is None


def wait_until(condition):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.001)


class Gate:
    """A function that runs until it is told to return."""

    def __init__(self):
        self.entered, self.open = threading.Event(), threading.Event()

    def __call__(self):
        self.entered.set()
        assert self.open.wait(PATIENCE_S)
        return "out"
