"""What tests of the scheduler share: patience, a wait for a condition, a function that runs until told to return."""

from __future__ import annotations

import threading
import time

PATIENCE_S = 30


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
