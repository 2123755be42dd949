"""Records the small trace that tests and the notebook replay: `python tools/record_trace.py FILE.pgktrace`

On the simulated device: named arrays, tasks of three QoS classes that queue, run, are refused and cancelled, an
eviction and a restore.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

os.environ.setdefault("PYGPUKIT_BACKEND", "sim")

import pygpukit as gp
from pygpukit import _core
from pygpukit._core import native
from pygpukit.scheduler import Scheduler
from pygpukit.telemetry import cell_figures

MIB = 1 << 20
STEP_S = 0.1
KERNEL_ELEMENTS = 1 << 21  # one to read and one to write fit the guaranteed task's limit
FRAMES_MIB = 6


def work(steps: int, busy: float) -> None:
    """About `steps` times STEP_S, launching in so much of the time."""
    x = gp.ones(KERNEL_ELEMENTS)
    for _ in range(steps):
        begun = time.perf_counter()
        while time.perf_counter() - begun < busy * STEP_S:
            gp.sqrt(x).to_numpy()
        time.sleep(max(0.0, STEP_S - (time.perf_counter() - begun)))


def cells(held: list[Any]) -> None:
    """Three cells, each with an array that it names."""
    for count, (name, mebibytes) in enumerate([("weights", 40), ("table", 10), ("frames", FRAMES_MIB)], 1):
        begun, cell = cell_figures.mark(), _core.intern(f"cell-{count}")
        source = f"# {name}\narray = gp.zeros({mebibytes * MIB // 4}) + 1\n"
        native.set_cell(cell, f"cell-{count}")
        _core.ring_push(64, cell=cell, a=count)
        start_ns = _core.now_ns()
        scope: dict[str, Any] = {"gp": gp}
        exec(compile(source, f"cell-{count}", "exec"), scope)
        scope["array"].name = name
        held.append(scope["array"])
        wall_ns = _core.now_ns() - start_ns
        _core.ring_push(65, cell=cell, a=count, b=wall_ns)
        cell_figures.ledger.add(cell_figures.measure(begun, cell, count, wall_ns))
        time.sleep(STEP_S)
    native.set_cell(0, None)


def main(path: str) -> None:
    gp.ones(1)
    held: list[Any] = []
    scheduler = Scheduler(total_memory="64MB", workers=3)
    with gp.dashboard.record(path) as recorder:
        cells(held)
        scheduler.start()
        scheduler.create_partition("online", memory="20MB", bandwidth=0.35)
        scheduler.submit(work, 110, 0.5, name="train", memory="24MB", bandwidth=0.5, policy="guaranteed")
        online: dict[str, Any] = {"memory": "16MB", "bandwidth": 0.3, "partition": "online", "priority": 5}
        scheduler.submit(work, 110, 0.2, name="inference", **online)
        export = scheduler.submit(work, 25, 0.2, name="export")
        scheduler.submit(work, 60, 0.15, name="fine-tuning", memory="16MB", bandwidth=0.1)
        scheduler.submit(work, 2, 0.2, name="probe", memory="24MB")
        scheduler.submit(work, 1, 0.2, name="too big", memory="1GB")
        dropped = scheduler.submit(work, 9, 0.2, name="dropped", memory="40MB")
        time.sleep(15 * STEP_S)
        scheduler.cancel(dropped)
        blocks = [block for block in _core.pool_blocks(0) if block[2] == FRAMES_MIB * MIB]
        _core.pool_evict(0, blocks[0][0])
        time.sleep(5 * STEP_S)
        held[2].to_numpy()  # restores it
        export.result()
        time.sleep(60 * STEP_S)
    # What still runs is how the recording ends: promises are of tasks that run.
    scheduler._shut(0.0)
    print(f"{recorder.path}: {recorder.entries} entries, {recorder.path.stat().st_size} bytes")


if __name__ == "__main__":
    main(sys.argv[1])
