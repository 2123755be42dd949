"""Eviction under load: ten thousand times to the host and back to the same address, among launches, byte for byte."""

from __future__ import annotations

import contextlib
import gc
import os
import random
import secrets
import threading

import numpy as np
import pytest
from alone import alone

import pygpukit as gp
from pygpukit import _core
from pygpukit.memory import set_limit, stats
from pygpukit.scheduler import Scheduler

SEED = int(os.environ.get("PYGPUKIT_EVICTION_SEED") or secrets.randbits(32))
CYCLES = 10_000
STEP = """
extern "C" __global__ void step(unsigned *x, unsigned factor, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = x[i] * factor + i;
}
"""
MOST = (64, 1000, 1024, 5000, 20_000, 270_000)  # elements: most share a segment, some of the largest have their own


class Mirror:
    """An array of a random size on a stream of its own, and what it must hold."""

    def __init__(self, rng: random.Random, least: int, most: int) -> None:
        self.stream = gp.Stream()
        values = np.random.default_rng(rng.getrandbits(32))
        self.expected = values.integers(0, 2**32, rng.randint(least, most), dtype="uint32")
        with self.stream:
            self.array = gp.from_numpy(self.expected)
        self.address = self.array.device_ptr
        self.index = np.arange(self.expected.size, dtype="uint32")

    def launch(self, kernel: gp.JITKernel, factor: int) -> None:
        blocks = -(-self.expected.size // 256)
        kernel.launcher(blocks, 256, stream=self.stream)(self.array, factor, self.expected.size)
        self.expected = self.expected * np.uint32(factor) + self.index

    def evict(self) -> None:
        _core.pool_evict(self.array.device, self.array.block)

    def check(self) -> None:
        with self.stream:
            found = self.array.to_numpy()
        assert found.tobytes() == self.expected.tobytes(), f"PYGPUKIT_EVICTION_SEED={SEED}"


@pytest.fixture(scope="module")
def kernel() -> gp.JITKernel:
    return gp.jit(STEP, name="step.cu")


def test_ten_thousand_cycles(kernel: gp.JITKernel, backend_name: str) -> None:
    rng = random.Random(SEED)
    mirrors = [Mirror(rng, most // 2, most) for most in MOST for _ in range(2)]
    weights = [8 if most < 100_000 else 1 for most in MOST for _ in range(2)]
    before = _core.pool_stats(0)
    for cycle in range(CYCLES):
        (mirror,) = rng.choices(mirrors, weights)
        for other in rng.choices(mirrors, weights, k=rng.randrange(2)):
            other.launch(kernel, rng.randrange(1, 1000))
        mirror.evict()
        assert not mirror.array.resident
        if rng.random() < 0.2:
            mirror.check()  # read where it is, on the host
        if rng.random() < 0.5:
            mirror.launch(kernel, rng.randrange(1, 1000))  # brings it back
        assert mirror.array.device_ptr == mirror.address and mirror.array.resident
        if cycle % 4 == 0:
            mirror.check()
        if rng.random() < 0.002:  # another one, most likely of another size, elsewhere
            at = mirrors.index(mirror)
            mirrors[at] = Mirror(rng, MOST[at // 2] // 2, MOST[at // 2])
    for mirror in mirrors:
        mirror.check()
    after = _core.pool_stats(0)
    assert after.eviction_count - before.eviction_count >= CYCLES
    assert after.restore_count - before.restore_count >= CYCLES


def test_large_blocks_through_the_staging_buffer(kernel: gp.JITKernel, backend_name: str) -> None:
    """Of 32 MiB and more, whose ends take another way: every byte arrives, and trim() leaves no buffer behind."""
    gc.collect()  # what earlier tests left is not collected meanwhile
    _core.pool_trim(0)
    before = _core.pool_stats(0)
    rng = random.Random(SEED)
    mirrors = [Mirror(rng, 32 << 18, 34 << 18) for _ in range(2)]
    for mirror in mirrors:
        mirror.launch(kernel, 3)
        mirror.evict()
    for mirror in mirrors:
        assert mirror.array.device_ptr == mirror.address
        mirror.check()
    del mirror, mirrors
    _core.pool_trim(0)
    after = _core.pool_stats(0)
    assert (after.reserved, after.segment_count) == (before.reserved, before.segment_count)


@pytest.mark.parametrize("guaranteed", [True, False])
def test_pressure_leaves_what_a_task_was_guaranteed(backend_name: str, guaranteed: bool) -> None:
    """Its array is the oldest of those on the device, and goes first where nothing was promised."""
    alone(__file__, "pressure", str(int(guaranteed)))  # what leaves is counted: nothing of other tests may


def pressure(promised: str) -> None:
    guaranteed = promised == "1"
    elements = 1 << 20
    older = gp.ones(elements)  # as other tests may hold some
    gc.collect()
    gp.synchronize()
    for row in _core.pool_blocks():
        if row[7]:
            with contextlib.suppress(RuntimeError):  # pinned: no victim either
                _core.pool_evict(0, row[0])
    assert not older.resident
    asks = {"memory": 5 << 20, "bandwidth": 0.1, "policy": "guaranteed"} if guaranteed else {}
    holds, let_go = threading.Event(), threading.Event()

    def resident(array: gp.GPUArray) -> bool:
        return next(bool(row[7]) for row in _core.pool_blocks(array.device) if row[0] == array.block)

    def hold() -> tuple[bool, bool]:
        mine = gp.ones(elements)
        gp.synchronize()
        holds.set()
        assert let_go.wait(60)
        stayed = resident(mine)
        return stayed, bool((mine.to_numpy() == 1).all())

    set_limit(stats()["used"] + (12 << 20))
    try:
        with Scheduler() as scheduler:
            task = scheduler.submit(hold, **asks)
            assert holds.wait(60), task
            others = [gp.zeros(elements) for _ in range(4)]
            gone = [resident(array) for array in others].count(False)
            let_go.set()
            assert task.result(60) == (guaranteed, True)
            assert gone == 4 - (2 if guaranteed else 3)
    finally:
        let_go.set()
        set_limit(None)


@pytest.mark.parametrize(("first", "then"), [(0, 5), (5, 0)])
def test_a_new_priority_counts_from_the_next_run_or_at_once(backend_name: str, first: int, then: int) -> None:
    """Of a task that begins without one, from its next run on. Its array is older than the others: without a priority
    it goes first."""
    alone(__file__, "new_priority", str(first), str(then))  # what leaves is counted: nothing of other tests may


def new_priority(before: str, after: str) -> None:
    first, then = int(before), int(after)
    elements = 1 << 20
    runs: list[int] = []
    holds, let_go = threading.Event(), threading.Event()

    def hold() -> bool:
        runs.append(len(runs))
        if first == 0 and len(runs) == 1:
            scheduler.set_priority(task, then)
            raise RuntimeError("once more")
        mine = gp.ones(elements)
        gp.synchronize()
        if first != 0:
            scheduler.set_priority(task, then)
        holds.set()
        assert let_go.wait(60)
        return any(bool(row[7]) for row in _core.pool_blocks(mine.device) if row[0] == mine.block)

    gc.collect()
    set_limit(stats()["used"] + (12 << 20))
    try:
        with Scheduler() as scheduler:
            scheduler.stop()
            task = scheduler.submit(hold, priority=first, retry=1)
            scheduler.start()
            assert holds.wait(60), task
            others = [gp.zeros(elements) for _ in range(3)]
            let_go.set()
            assert task.result(60) == (then > 0)
            assert [array.resident for array in others] == [then == 0, True, True]
    finally:
        let_go.set()
        set_limit(None)
