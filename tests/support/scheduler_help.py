"""What tests of the scheduler share: patience, waits for a condition, a function that runs until told to return,
programs in processes of their own."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import pygpukit as gp

PATIENCE_S = 60
EXITS = int(os.environ.get("PYGPUKIT_EXITS") or 1)  # 1000 by hand
each_exit = pytest.mark.parametrize("_number", range(EXITS))  # of tests that end processes


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
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=timeout_s, env=environment
    )
    assert done.returncode == returncode, done.stderr
    return done.stderr


LABEL = r'(\w+)="((?:[^"\\\n]|\\[\\"n])*)"'
SAMPLE = re.compile(rf"(pygpukit_\w+)(?:\{{({LABEL}(?:,{LABEL})*)\}})? (\d+(?:\.\d+)?(?:e-?\d+)?)")


def samples(text):
    """(name, label values) to number. Every line must be of Prometheus' text format, under its HELP and TYPE."""
    found, kinds, helps = {}, {}, set()
    assert text.endswith("\n")
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            helps.add(line.split(" ")[2])
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert kind in ("counter", "gauge") and name not in kinds and name in helps
            assert (kind == "counter") == name.endswith("_total")
            kinds[name] = kind
        else:
            match = SAMPLE.fullmatch(line)
            assert match and match[1] == list(kinds)[-1], line
            values = [value for _, value in re.findall(LABEL, match[2] or "")]
            plain = (re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), value) for value in values)
            key = (match[1], *plain)
            assert key not in found
            found[key] = float(match[len(match.groups())])
    return found
