"""Suite `overcommit`: tenants whose arrays together exceed the memory limit, so that the pool moves them out and back.

Each tenant is a context with as much memory of its own as its arrays take. It visits them at random: kernels check
every word that the visit before left and write the next; now and then it frees an array, makes another, and asks for
more than it may have, which must be refused with the exact numbers. The same without overcommit, in the same run, is
what the work kept is a part of. In the end the host checks every byte of every array, wherever it lies.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any

from pygpukit.benchmark.result import BenchmarkResult, Unavailable

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.jit import JITKernel
    from pygpukit.scheduler import ExecutionContext

CATEGORY = "overcommit"
MIB = 1 << 20
TENANTS = 4
ARRAYS = 8  # of each tenant
CHURN = 8  # visits from one array made anew to the next
TICK_S = 0.05
MIN_VISITS = 40  # of all tenants: a contest goes on until then
ARRAY_BYTES = {"cuda": 64 * MIB, "sim": 2 * MIB}
PASSES = {"cuda": 32, "sim": 1}  # kernels of a visit: about a millisecond on either
MULTIPLIER = 2654435761
VISIT = """
extern "C" __global__ void visit(unsigned *x, unsigned was, unsigned next, unsigned *wrong, unsigned n) {
    unsigned bad = 0;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned pattern = i * 2654435761u, differs = x[i] ^ pattern ^ was;
        for (; differs; differs >>= 8) bad += (differs & 255u) != 0;
        x[i] = pattern ^ next;
    }
    if (bad) atomicAdd(wrong, bad);
}
"""
FILL = """
extern "C" __global__ void fill(unsigned *x, unsigned next, unsigned n) {
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        x[i] = (i * 2654435761u) ^ next;
}
"""


@dataclass
class Kernels:
    """The kernels that all tenants launch, and on which grid."""

    fill: JITKernel
    visit: JITKernel
    grid: tuple[int, int]
    passes: int
    words: int


@dataclass
class Churner:
    """One tenant: its arrays, by what each holds, and what has become of its requests."""

    context: ExecutionContext
    kernels: Kernels
    rng: random.Random
    arrays: list[GPUArray] = field(default_factory=list)
    seeds: list[int] = field(default_factory=list)
    visits: int = 0
    asked_too_much: int = 0
    refused_exactly: int = 0
    refused_wrongly: int = 0  # what was within its quota
    wrong: GPUArray | None = None
    failure: BaseException | None = None

    def fill(self) -> None:
        """Make all arrays."""
        import pygpukit as gp

        with self.context:
            self.wrong = gp.zeros(1, dtype="uint32")
            for _ in range(ARRAYS):
                self._make()
            self.context.synchronize()

    def loop(self, stop: threading.Event) -> None:
        """Visit arrays until told to stop, each visit waited for."""
        try:
            with self.context:
                while not stop.is_set():
                    self._visit(self.rng.randrange(ARRAYS))
                    self.visits += 1
                    if self.visits % CHURN == 0:
                        self._ask_too_much()
                        at = self.rng.randrange(ARRAYS)
                        del self.arrays[at], self.seeds[at]
                        self._make()
        except BaseException as error:
            self.failure = error
            stop.set()

    def wrong_bytes(self) -> int:
        """The number of wrong bytes that the kernels found on the device, and the host finds now."""
        import numpy as np

        pattern = np.arange(self.kernels.words, dtype=np.uint32) * np.uint32(MULTIPLIER)
        assert self.wrong is not None
        with self.context:
            count = int(self.wrong.to_numpy()[0])
            for array, seed in zip(self.arrays, self.seeds, strict=True):
                differs = array.to_numpy()
                differs ^= pattern
                differs ^= np.uint32(seed)
                if differs.any():
                    count += int(np.count_nonzero(differs.view(np.uint8)))
        return count

    def _make(self) -> None:
        import pygpukit as gp

        try:
            array = gp.empty(self.kernels.words, dtype="uint32")
        except MemoryError:
            self.refused_wrongly += 1
            raise
        seed = self.rng.getrandbits(32)
        self.kernels.fill[self.kernels.grid](array, seed, self.kernels.words)
        self.arrays.append(array)
        self.seeds.append(seed)

    def _visit(self, at: int) -> None:
        visit = self.kernels.visit[self.kernels.grid]
        for _ in range(self.kernels.passes):
            following = self.rng.getrandbits(32)
            visit(self.arrays[at], self.seeds[at], following, self.wrong, self.kernels.words)
            self.seeds[at] = following
        self.context.synchronize()

    def _ask_too_much(self) -> None:
        import pygpukit as gp

        stats = self.context.stats
        assert stats is not None
        self.asked_too_much += 1
        nbytes = 4 * self.kernels.words
        try:
            gp.empty(self.kernels.words, dtype="uint32")
        except gp.OutOfMemoryError as error:
            refusal = (error.tenant, error.requested, error.used, error.limit)
            expected = (self.context.llm_id, nbytes, stats.used_vram, self.context.max_vram)
            self.refused_exactly += refusal == expected


def _kernels(backend: str) -> Kernels:
    import pygpukit as gp
    from pygpukit._core import native

    multiprocessors = int(native.device_info(native.current_device())["multiprocessor_count"])
    grid = (8 * multiprocessors, 256) if backend == "cuda" else (8, 64)
    words = ARRAY_BYTES[backend] // 4
    return Kernels(gp.jit(FILL, func="fill"), gp.jit(VISIT, func="visit"), grid, PASSES[backend], words)


def contest(kernels: Kernels, overcommit: float, seconds: float) -> Iterator[BenchmarkResult]:
    """The rows of one contest; the first is the work. overcommit: bytes of all arrays over what the pool may hold; 1
    lifts the limit."""
    from pygpukit.memory import pool
    from pygpukit.scheduler.contexts import Contexts

    nbytes = 4 * kernels.words
    quota = ARRAYS * nbytes + 256  # and the counter
    total = TENANTS * quota
    before = pool.stats()["quota"]
    _move_out()
    pool.trim()
    contexts = Contexts()
    contexts.initialize(total_vram_budget=total)
    tenants = [
        Churner(contexts.create(f"churner {i}", quota, 1 / TENANTS, 0, 64, "low"), kernels, random.Random(i))
        for i in range(TENANTS)
    ]
    try:
        if overcommit > 1:
            stats = pool.stats()  # what is left in others' segments is room, too
            pool.set_limit(stats["reserved"] - stats["cached"] + int(TENANTS * ARRAYS * nbytes / overcommit))
        for tenant in tenants:
            tenant.fill()
        yield from _rows(tenants, {"overcommit": overcommit}, seconds)
    finally:
        for tenant in tenants:
            tenant.arrays.clear()
            tenant.wrong = None
        contexts.reset()
        pool.set_limit(before)
        pool.trim()


def _move_out() -> None:
    """Evict all that was there before: else the tenants would get their room from arrays that nobody uses."""
    from pygpukit import _core

    device = _core.native.current_device()
    for block, *_, resident in _core.pool_blocks(device):
        if resident:
            with suppress(RuntimeError):  # pinned, or exported to another process: stays, and counts in the limit
                _core.pool_evict(device, block)


def _rows(tenants: list[Churner], params: dict[str, Any], seconds: float) -> Iterator[BenchmarkResult]:
    nbytes = 4 * tenants[0].kernels.words
    series = _watched(tenants, seconds)
    for tenant in tenants:
        if tenant.failure is not None:
            raise tenant.failure
    took_s = series["t_us"][-1] * 1e-6
    visits, evictions, restores = (series[key][-1] for key in ("visits", "evictions", "restores"))

    def count(name: str, value: float) -> BenchmarkResult:
        return BenchmarkResult(name, CATEGORY, params, value=value, unit="count")

    yield BenchmarkResult(
        "work", CATEGORY, params, value=visits / took_s, unit="visits/s", better="higher", series=series
    )
    yield count("evictions", evictions)
    yield count("restores", restores)
    for name, moves in (("evicted", evictions), ("restored", restores)):
        value = moves * nbytes / took_s * 1e-9
        yield BenchmarkResult(name, CATEGORY, params, value=value, unit="GB/s", better="higher")
    yield count("wrong bytes", sum(tenant.wrong_bytes() for tenant in tenants))
    asked = sum(tenant.asked_too_much for tenant in tenants)
    yield count("requests over a quota", asked)
    yield count("not refused with the exact numbers", asked - sum(tenant.refused_exactly for tenant in tenants))
    yield count("refused within a quota", sum(tenant.refused_wrongly for tenant in tenants))


def _watched(tenants: list[Churner], seconds: float) -> dict[str, list[float]]:
    """Visits, evictions and restores since the start, every 50 ms while all tenants are at work."""
    from pygpukit.memory import pool

    stop = threading.Event()
    threads = [threading.Thread(target=tenant.loop, args=(stop,)) for tenant in tenants]
    before, start = pool.stats(), time.perf_counter()
    columns: dict[str, list[float]] = {"t_us": [], "visits": [], "evictions": [], "restores": []}

    def tick() -> None:
        now = pool.stats()
        columns["t_us"].append(round((time.perf_counter() - start) * 1e6))
        columns["visits"].append(sum(tenant.visits for tenant in tenants))
        columns["evictions"].append(now["eviction_count"] - before["eviction_count"])
        columns["restores"].append(now["restore_count"] - before["restore_count"])

    for thread in threads:
        thread.start()
    try:
        tick()
        while not stop.is_set() and (time.perf_counter() - start < seconds or columns["visits"][-1] < MIN_VISITS):
            time.sleep(TICK_S)
            tick()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    return columns


def plain_rates(nbytes: int) -> tuple[float, float]:
    """GB/s of a plain pinned copy of so many bytes to the host and to the device."""
    from pygpukit import _core

    rounds = _core.eviction_ns(0, nbytes, 5)
    return median(nbytes / r[0] for r in rounds), median(nbytes / r[3] for r in rounds)


def rows(quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    from pygpukit._core import native
    from pygpukit.core.backend import ensure

    ensure()
    kernels = _kernels(str(native.backend_name()))
    nbytes = 4 * kernels.words
    out, back = plain_rates(nbytes)
    for side, rate in (("host", out), ("device", back)):
        name = f"plain pinned copy to the {side}"
        yield BenchmarkResult(name, CATEGORY, {"MiB": nbytes // MIB}, value=rate, unit="GB/s", better="higher")
    alone_s = 0.0  # of a visit, in a contest without overcommit
    for overcommit in (1, 2) if quick else (1, 1.5, 2):
        measurements = list(contest(kernels, overcommit, 0.5 if quick else 2.5))
        yield from measurements
        figures = {row.name: row.value or 0.0 for row in measurements}
        if overcommit == 1:
            alone_s = 1 / figures["work"]
            continue
        params = {"overcommit": overcommit}
        kept = 100 * figures["work"] * alone_s
        yield BenchmarkResult("work kept", CATEGORY, params, value=kept, unit="%", better="higher")
        copying = 100 * (figures["evicted"] / out + figures["restored"] / back)
        yield BenchmarkResult("time that plain copies of as many bytes take", CATEGORY, params, value=copying, unit="%")
