"""One compile at a time for each key: processes and threads that need the same kernels compile each of them once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from interrupts import interrupt
from scheduler_help import wait_until

from pygpukit.jit.cache.flight import single_flight
from pygpukit.jit.compile.simulator import find_compiler

PROCESSES = 20
KERNELS = 50

# Counts every compile by the constant in its source, then compiles.
COMPILER = """#!/bin/sh
for word; do
    case $word in */kernel.cpp) sed -n 's/.*= \\(7[0-9]*\\);.*/\\1/p' "$word" >> "$COUNTS" ;; esac
done
exec {compiler} "$@"
"""
CHILD = """
import random, sys
from pygpukit.jit import compile_source
numbers = list(range(7000, 7000 + int(sys.argv[1])))
random.Random(int(sys.argv[2])).shuffle(numbers)
for number in numbers:
    image = compile_source(f"__global__ void k{number}(int* x) {{ x[0] = {number}; }}", arch="sim")
    assert f"k{number}".encode() in image.image, f"another image for kernel {number}"
    for other in (number - 1, number + 1):
        assert f"k{other}".encode() not in image.image, f"another image for kernel {number}"
"""


@pytest.fixture
def counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that the counting compiler writes to; processes started from now on use it and share a cache."""
    program = tmp_path / "counting"
    program.write_text(COMPILER.format(compiler=" ".join(find_compiler())))
    program.chmod(0o755)
    monkeypatch.setenv("PYGPUKIT_SIM_CXX", str(program))
    monkeypatch.setenv("PYGPUKIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("COUNTS", str(tmp_path / "counts"))
    return tmp_path / "counts"


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.turns(5)
def test_twenty_processes_compile_fifty_kernels_once_each(counts: Path) -> None:
    racers = [start(CHILD, KERNELS, seed) for seed in range(PROCESSES)]
    for racer in racers:
        _, errors = racer.communicate(timeout=110)
        assert racer.returncode == 0, errors
    assert Counter(counts.read_text().split()) == {str(number): 1 for number in range(7000, 7000 + KERNELS)}


HOLDER = """
import pathlib, sys, time
from pygpukit.jit.cache.flight import single_flight
with single_flight(pathlib.Path(sys.argv[1]), b"k" * 32):
    print("held", flush=True)
    time.sleep(300)
"""


def test_a_holder_that_is_killed_holds_up_nobody(tmp_path: Path) -> None:
    with start(HOLDER, tmp_path) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        lock = next(tmp_path.iterdir())
        order: list[str] = []

        def wait() -> None:
            with single_flight(tmp_path, b"k" * 32):
                order.append("entered")

        waiting = threading.Thread(target=wait)
        waiting.start()
        with single_flight(tmp_path, b"other".ljust(32)):  # another key waits for nothing
            time.sleep(0.1)
            order.append("killed")
        os.kill(holder.pid, signal.SIGKILL)
        waiting.join(60)
        assert order == ["killed", "entered"]
    assert not lock.exists() and list(tmp_path.iterdir()) == []


def test_a_compile_that_is_killed_is_done_by_another(counts: Path) -> None:
    slow = Path(os.environ["PYGPUKIT_SIM_CXX"])
    slow.write_text(slow.read_text().replace("exec", 'case "$*" in *kernel.cpp*) sleep ${DELAY:-0} ;; esac; exec'))
    os.environ["DELAY"] = "100"
    try:
        first = start(CHILD, 1, 0)
        wait_until(lambda: counts.exists() and counts.read_text() == "7000\n")
    finally:
        del os.environ["DELAY"]
    second = start(CHILD, 1, 0)
    time.sleep(0.5)
    assert second.poll() is None, "it waits for the first"
    first.kill()
    first.communicate()
    _, errors = second.communicate(timeout=60)
    assert second.returncode == 0, errors
    assert counts.read_text().split() == ["7000", "7000"]


def test_threads_take_turns(tmp_path: Path) -> None:
    inside: list[int] = []
    most: list[int] = []

    def work() -> None:
        for _ in range(20):
            with single_flight(tmp_path / "locks", b"k" * 32):
                inside.append(1)
                most.append(len(inside))
                time.sleep(0.0005)
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) == 1 and len(most) == 100


def test_a_folder_without_locks_does_without(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with single_flight(tmp_path / "file" / "locks", b"k" * 32):
        pass
    planted = tmp_path / "locks"
    planted.mkdir()
    (planted / f"{(b'k' * 16).hex()}.lock").symlink_to(tmp_path / "victim")
    with single_flight(planted, b"k" * 32):
        assert not (tmp_path / "victim").exists()


def test_an_interrupt_ends_the_wait(tmp_path: Path) -> None:
    with start(HOLDER, tmp_path) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"

        def wait() -> None:
            with single_flight(tmp_path, b"k" * 32):
                pytest.fail("the lock is held")

        interrupt(wait)
        holder.kill()
