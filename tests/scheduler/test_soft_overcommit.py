"""Memory limits that add up to more than the pool has: burstable tasks take turns on the device, one task stays."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections import Counter

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import _core
from pygpukit.core.errors import OutOfMemoryError
from pygpukit.memory import set_limit, stats
from pygpukit.scheduler import MB, MemoryEvent, Scheduler

PATIENCE_S = 240  # tasks that take turns with memory on a busy machine take a minute
BURSTABLE = 4
LIMIT = 8 * MB  # of each task, the guaranteed one too
ROOM = 3 * LIMIT  # for five of them
ARRAYS, ROUNDS = 4, 3
WORDS = LIMIT // ARRAYS // 4
STEP = """
extern "C" __global__ void step(unsigned *x, unsigned factor, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = x[i] * factor + i;
}
"""


def test_limits_beyond_the_pool_cost_evictions_and_no_bytes(backend_name: str) -> None:
    kernel, index = gp.jit(STEP, name="step.cu"), np.arange(WORDS, dtype="uint32")
    together = threading.Barrier(1 + BURSTABLE, timeout=PATIENCE_S)

    def work(seed: int) -> tuple[int, int, list[bool]]:
        values, right = np.random.default_rng(seed), []
        expected = [values.integers(0, 2**32, WORDS, dtype="uint32") for _ in range(ARRAYS)]
        arrays = [gp.from_numpy(data) for data in expected]
        with pytest.raises(OutOfMemoryError) as caught:
            gp.empty(1)
        for factor in range(3, 3 + ROUNDS):
            together.wait()  # each holds all that it may
            for at, array in enumerate(arrays):
                kernel[-(-WORDS // 256), 256](array, factor, WORDS)
                expected[at] = expected[at] * np.uint32(factor) + index
        for array, data in zip(arrays, expected, strict=True):
            right.append(array.to_numpy().tobytes() == data.tobytes())
        together.wait()  # nobody makes room for the others before
        return caught.value.used, caught.value.limit, right

    gc.collect()
    gp.synchronize()
    for row in _core.pool_blocks():
        if row[7]:
            with contextlib.suppress(RuntimeError):  # pinned: it stays, and is no room for anybody
                _core.pool_evict(0, row[0])
    start = _core.ring_head()
    set_limit(stats()["used"] + ROOM)
    try:
        with Scheduler(workers=1 + BURSTABLE) as scheduler:
            tasks = [scheduler.submit(work, 0, name="kept", policy="guaranteed", memory=LIMIT, bandwidth=0.5)]
            for seed in range(1, 1 + BURSTABLE):
                tasks.append(scheduler.submit(work, seed, name="burstable", memory=MB, memory_limit=LIMIT))
            for task in tasks:
                assert task.result(PATIENCE_S) == (LIMIT, LIMIT, [True] * ARRAYS), task
            events, _, lost = scheduler.events(start, kinds=["memory"])
    finally:
        set_limit(None)
    assert lost == 0
    moved: Counter[tuple[str, str]] = Counter()
    for event in events:
        assert isinstance(event, MemoryEvent)
        moved[event.name, event.action] += event.bytes
    assert moved["kept", "evicted"] == 0
    assert moved["burstable", "evicted"] >= (1 + BURSTABLE) * LIMIT - ROOM
    assert moved["burstable", "restored"] >= LIMIT
