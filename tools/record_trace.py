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
from pygpukit.dashboard import cell_figures
from pygpukit.scheduler import Scheduler

MIB = 1 << 20
STEP_S = 0.12


def work(steps: int) -> None:
    """Launches for about `steps` times STEP_S."""
    x = gp.ones(1 << 18)
    for _ in range(steps):
        for _ in range(4):
            x = gp.sqrt(x + x)
        time.sleep(STEP_S)


def main(path: str) -> None:
    gp.ones(1)
    with gp.dashboard.record(path) as recorder:
        held: list[Any] = []
        for count, (name, mebibytes) in enumerate([("weights", 12), ("table", 5), ("frames", 3)], 1):
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
        with Scheduler(total_memory="64MB", workers=3) as scheduler:
            tasks = [
                scheduler.submit(work, 9, name="train", memory="24MB", bandwidth=0.5, policy="guaranteed"),
                scheduler.submit(work, 6, name="serve", memory="16MB", bandwidth=0.3, policy="burstable", priority=5),
                scheduler.submit(work, 4, name="export"),
                scheduler.submit(work, 3, name="train", memory="24MB", bandwidth=0.2, policy="guaranteed"),
                scheduler.submit(work, 2, name="probe", memory="48MB"),
            ]
            scheduler.submit(work, 1, name="too big", memory="1GB")
            dropped = scheduler.submit(work, 9, name="dropped", memory="60MB")
            time.sleep(4 * STEP_S)
            scheduler.cancel(dropped)
            blocks = [block for block in _core.pool_blocks(0) if block[2] == 3 * MIB]
            _core.pool_evict(0, blocks[0][0])
            time.sleep(2 * STEP_S)
            held[2].to_numpy()  # restores it
            for task in tasks:
                task.result()
        time.sleep(2 * STEP_S)
    print(f"{recorder.path}: {recorder.entries} entries, {recorder.path.stat().st_size} bytes")


if __name__ == "__main__":
    main(sys.argv[1])
