"""Timing: kernels by device events, host code by batches, fresh interpreters by what they print."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from statistics import median, pstdev
from typing import Any

PAUSE_S = 0.5


def simulated() -> bool:
    """True where this process has the simulated device; opens the device."""
    from ..core.backend import ensure, is_sim

    ensure()
    return is_sim()


def device_times_us(fn: Callable[[], object], warmup: int, iterations: int) -> list[float]:
    """Device time of each call of fn in microseconds, between two events on the current stream."""
    from .._core import native
    from ..core.backend import ensure

    ensure()
    for _ in range(warmup):
        fn()
    pairs = [(native.Event(), native.Event()) for _ in range(iterations)]
    native.synchronize()
    stream = native.current_stream()
    for start, end in pairs:
        start.record(stream)
        fn()
        end.record(stream)
    native.synchronize()
    return [start.elapsed_ms(end) * 1e3 for start, end in pairs]


def measure_kernel(
    fn: Callable[[], object], warmup: int = 10, iterations: int = 50, sync_fn: Callable[[], object] | None = None
) -> tuple[float, float, float, float]:
    """(median, min, max, standard deviation) of fn in microseconds.

    Timed by device events; with `sync_fn`, by the host's clock from before fn to after sync_fn.
    """
    if iterations < 1:
        raise ValueError(f"iterations is {iterations}; at least 1 is needed")
    if sync_fn is None:
        samples = device_times_us(fn, warmup, iterations)
    else:
        for _ in range(warmup):
            fn()
        sync_fn()
        samples = []
        for _ in range(iterations):
            begin = time.perf_counter_ns()
            fn()
            sync_fn()
            samples.append((time.perf_counter_ns() - begin) * 1e-3)
    return median(samples), min(samples), max(samples), pstdev(samples)


def host_ns(
    fn: Callable[[], object], calls: int, batches: int, between: Callable[[], object] | None = None
) -> list[float]:
    """Nanoseconds a call, one sample a batch of `calls`, loop included; `between` runs untimed after each batch."""
    rounds = range(calls)
    samples = []
    for batch in range(batches + 1):
        begin = time.perf_counter_ns()
        for _ in rounds:
            fn()
        elapsed = time.perf_counter_ns() - begin
        if between is not None:
            between()
        if batch:  # the first batch warms up
            samples.append(elapsed / calls)
    return samples


def apart(samples: int, quick: bool) -> Iterator[int]:
    """The numbers of so many samples, half a second apart unless quick.

    For what takes nanoseconds of the processor, and milliseconds to measure: others on the same machine make it slower
    for as long as that, and longer.
    """
    for sample in range(samples):
        if sample and not quick:
            time.sleep(PAUSE_S)
        yield sample


@cache
def _bytecode() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="pygpukit-bytecode-")


def _environment() -> dict[str, str]:
    """That of a fresh interpreter, which has bytecode from its second run on, as an installed package has."""
    environment = dict(os.environ)
    if environment.pop("PYTHONDONTWRITEBYTECODE", ""):
        environment["PYTHONPYCACHEPREFIX"] = _bytecode().name
    return environment


def interpreter_json(code: str, *arguments: str, timeout_s: float = 300) -> Any:
    """The JSON that code prints as its last line in a fresh interpreter. Raises RuntimeError when it fails."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
        env=_environment(),
    )
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        raise RuntimeError(f"a fresh interpreter failed: {done.stderr.strip()[-400:]}")
    return json.loads(lines[-1])
