"""Suite `promptness`: how soon Ctrl-C ends what waits, and a busy kernel answers; worst of so many.

What waits: for a kernel of 0.5 s, for the result of a task that runs one, and for a turn at the gate of a task whose
limit holds its launches back. From the signal to the exception, in a fresh interpreter, so that no signal can end the
benchmark itself; a wait that ends before its signal is an error. A notebook's cell waits for the same kernel: from the
request to interrupt it to its end, and from a page's request to the answer.
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

from pygpukit.benchmark.measure import interpreter_json
from pygpukit.benchmark.result import BenchmarkResult, Unavailable, from_samples

from .promptness_lab import lab_samples, subshells
from .scheduler_load import SOURCE

CATEGORY = "promptness"
ROWS = {
    "kernel": "Ctrl-C in a wait for a kernel",
    "result": "Ctrl-C in a wait for a task's result",
    "gate": "Ctrl-C in a wait at the gate",
}
CELL_ROW = "Ctrl-C in a cell that waits for a kernel"
ANSWER_ROW = "answer to a page while a cell is busy"
SCRIPT = "import sys; from bench import promptness; promptness.measure(int(sys.argv[1]))"
SETTLE_S = 0.05  # from the wait's begin to the signal
PATIENCE_S = 10.0  # for a task's end
LONG_S = 0.5  # a kernel: far longer than from its launch to the end of a wait that is interrupted in time
# What `waiting` yields: the wait, and whether it is under way.
Wait = tuple[Callable[[], object], Callable[[], bool]]


def rows(quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    count = 3 if quick else 5
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
        "kernel": long_kernel(), "result": long_task(), "gate": limited_task()
    }  # fmt: skip
    times: dict[str, list[float]] = {what: [] for what in waits}
    for what, waiting in waits.items():
        for _ in range(count):
            with waiting() as (wait, begun):
                times[what].append(interrupt_ms(wait, begun))
    print(json.dumps(times))


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


class LongKernel:
    """A kernel of one thread that takes about LONG_S."""

    def __init__(self) -> None:
        import pygpukit as gp

        self.out, self.rounds = gp.zeros(1), 1_000_000
        self.kernel: Any = gp.jit(SOURCE.replace("NAME", "long_kernel"), func="long_kernel")[1, 1]
        took_s = []
        for _ in range(5):
            begin_s = time.perf_counter()
            self.launch()
            gp.synchronize()
            took_s.append(time.perf_counter() - begin_s)
        self.rounds = int(self.rounds * LONG_S / min(took_s))

    def launch(self) -> None:
        self.kernel(self.out, self.rounds, 0)


def long_kernel() -> Callable[[], AbstractContextManager[Wait]]:
    import pygpukit as gp

    kernel = LongKernel()

    @contextmanager
    def waiting() -> Iterator[Wait]:
        kernel.launch()
        yield gp.synchronize, lambda: True
        gp.synchronize()  # a GPU's kernels run on

    return waiting


def long_task() -> Callable[[], AbstractContextManager[Wait]]:
    import pygpukit as gp
    from pygpukit.scheduler import Scheduler

    kernel = LongKernel()

    def work(begun: threading.Event) -> None:
        kernel.launch()
        begun.set()
        gp.synchronize()

    @contextmanager
    def waiting() -> Iterator[Wait]:
        with Scheduler(workers=1) as scheduler:
            begun = threading.Event()
            task = scheduler.submit(work, begun)
            yield task.result, begun.is_set
            task.result(PATIENCE_S)

    return waiting


def limited_task() -> Callable[[], AbstractContextManager[Wait]]:
    import pygpukit as gp
    from pygpukit._core import native
    from pygpukit.scheduler import Scheduler

    on_cuda = native.backend_name() == "cuda"
    kernel = gp.jit(SOURCE.replace("NAME", "limited"), func="limited")
    launch: Any = kernel[64, 256] if on_cuda else kernel[1, 32]
    out, rounds = gp.zeros(1), 20_000 if on_cuda else 500  # some 100 us

    def work() -> None:
        while True:
            launch(out, rounds, 0)

    @contextmanager
    def waiting() -> Iterator[Wait]:
        scheduler = Scheduler(start=False)
        # Once some were held back, a launch has its turn 50 ms after the last: the next nearly always waits for room.
        task = scheduler.submit(work, bandwidth=0.002, memory="1MB", policy="guaranteed")

        try:
            yield scheduler.step, lambda: task.stats().pacing_delay_count >= 3
        finally:
            scheduler.close()

    return waiting
