"""What tests of the scheduler share: patience, waits for a condition, a function that runs until told to return,
programs in processes of their own."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pygpukit as gp

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


def run(code, *, returncode=0, timeout_s=110):
    """Run a program in a process of its own; its standard error."""
    environment = {**os.environ, "PYTHONPATH": str(Path(gp.__file__).parent.parent)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=timeout_s, env=environment)
    assert done.returncode == returncode, done.stderr
    return done.stderr
