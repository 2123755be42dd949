"""Suite `promptness`: how soon Ctrl-C ends what waits, and a busy kernel answers; worst of so many.

Each wait is one that would not end by itself: for a kernel that spins until it is let go, for the result of a task that
runs such a kernel, and for a turn at the gate of a task whose limit holds its launches back. From the signal to the
exception, in a fresh interpreter, so that no signal can end the benchmark itself. A notebook's cell waits for the same
kernel: from the request to interrupt it to its end, and from a page's request to the answer.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from .measure import interpreter_json
from .promptness_lab import lab_samples, subshells
from .result import BenchmarkResult, Unavailable, from_samples
from .scheduler_load import SOURCE

CATEGORY = "promptness"
ROWS = {
    "kernel": "Ctrl-C in a wait for a kernel",
    "result": "Ctrl-C in a wait for a task's result",
    "gate": "Ctrl-C in a wait at the gate",
}
CELL_ROW = "Ctrl-C in a cell that waits for a kernel"
ANSWER_ROW = "answer to a page while a cell is busy"
SCRIPT = "import sys; from pygpukit.benchmark import promptness; promptness.measure(int(sys.argv[1]))"
SETTLE_S = 0.05  # from the wait's begin to the signal
PATIENCE_S = 10.0  # for what is waited for to begin
HOLD = 'extern "C" __global__ void hold(int *flag) { while (*(volatile int *)flag == 0) {} }'
# What `waiting` yields: the wait, and whether it is under way.
Wait = tuple[Callable[[], object], Callable[[], bool]]


def rows(quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    count = 3 if quick else 15
    samples = interpreter_json(SCRIPT, str(count), timeout_s=120)
    for what, name in ROWS.items():
        yield worst(name, samples[what])
    if not subshells():
        for name in (CELL_ROW, ANSWER_ROW):
            yield Unavailable(f"{CATEGORY}/{name}", "ipykernel 7 or newer is not installed")
        return
    ends, answers = lab_samples(count)
    yield worst(CELL_ROW, ends)
    yield worst(ANSWER_ROW, answers)


def worst(name: str, samples: list[float]) -> BenchmarkResult:
    row = from_samples(name, CATEGORY, samples, "ms")
    row.value = max(samples)
    return row


def measure(count: int) -> None:
    """Print as JSON the milliseconds of each interrupt, by wait. In the main thread of a process of its own."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    waits: dict[str, Callable[[], AbstractContextManager[Wait]]] = {
        "kernel": held_kernel(), "result": held_task(), "gate": limited_task()
    }  # fmt: skip
    found: dict[str, list[float]] = {what: [] for what in waits}
    for what, waiting in waits.items():
        for _ in range(count):
            with waiting() as (wait, begun):
                found[what].append(interrupt_ms(wait, begun))
    print(json.dumps(found))


def interrupt_ms(wait: Callable[[], object], begun: Callable[[], bool]) -> float:
    """Milliseconds from SIGINT, sent once the wait has begun, to KeyboardInterrupt. RuntimeError if it ended before."""
    ended, sent_s = threading.Event(), [0.0]

    def press() -> None:
        while not begun():
            if ended.wait(0.001):
                return
        if not ended.wait(SETTLE_S):
            sent_s[0] = time.perf_counter()
            os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=press)
    try:
        presser.start()
        wait()
    except KeyboardInterrupt:
        return (time.perf_counter() - sent_s[0]) * 1e3
    finally:
        ended.set()
        presser.join()
    raise RuntimeError("the wait ended before it was interrupted")


class Holder:
    """A kernel that spins until it is let go."""

    def __init__(self) -> None:
        import pygpukit as gp

        self.flag = gp.ones(1, "int32")
        self.kernel: Any = gp.jit(HOLD, func="hold")[1, 1]
        self.kernel(self.flag)  # loaded: a driver may load code only while nothing runs
        gp.synchronize()

    def hold(self) -> None:
        import pygpukit as gp

        self.flag.fill(0)
        gp.synchronize()
        self.kernel(self.flag)

    def let_go(self) -> None:
        import numpy as np

        import pygpukit as gp

        from .._core import native

        with gp.Stream():
            native.copy_from_host(self.flag, np.ones(1, np.int32))
        gp.synchronize()


def held_kernel() -> Callable[[], AbstractContextManager[Wait]]:
    import pygpukit as gp

    holder = Holder()

    @contextmanager
    def waiting() -> Iterator[Wait]:
        holder.hold()
        try:
            yield gp.synchronize, lambda: True
        finally:
            holder.let_go()

    return waiting


def held_task() -> Callable[[], AbstractContextManager[Wait]]:
    import pygpukit as gp
    from pygpukit.scheduler import Scheduler

    holder = Holder()

    def work(held: threading.Event) -> None:
        holder.hold()
        held.set()
        gp.synchronize()

    @contextmanager
    def waiting() -> Iterator[Wait]:
        with Scheduler(workers=1) as scheduler:
            held = threading.Event()
            task = scheduler.submit(work, held)
            try:
                yield task.result, held.is_set
            finally:
                holder.let_go()
                task.result(PATIENCE_S)

    return waiting


def limited_task() -> Callable[[], AbstractContextManager[Wait]]:
    import pygpukit as gp
    from pygpukit.scheduler import Scheduler

    from .._core import native

    on_cuda = native.backend_name() == "cuda"
    kernel = gp.jit(SOURCE.replace("NAME", "limited"), func="limited")
    launch: Any = kernel[64, 256] if on_cuda else kernel[1, 32]
    out, rounds = gp.zeros(1), 20_000 if on_cuda else 500  # some 100 us

    def work() -> None:
        while True:
            launch(out, rounds)

    @contextmanager
    def waiting() -> Iterator[Wait]:
        scheduler = Scheduler()
        # A launch of it has its turn each 50 ms, and its line holds one: it is full nearly always.
        task = scheduler.submit(work, bandwidth=0.002, memory="1MB", policy="guaranteed")

        def is_ahead() -> bool:
            stats = task.stats()
            return stats.pacing_delay_count >= 3 and stats.pacing_delay_count > stats.launches

        try:
            yield scheduler.step, is_ahead
        finally:
            scheduler.close()

    return waiting
