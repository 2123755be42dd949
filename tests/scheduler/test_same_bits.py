"""The kernel suite gives the same bits whatever the scheduler, slicing and eviction do about it."""

from __future__ import annotations

import functools
import os
import secrets
import threading
from collections.abc import Callable

import pytest
from corpus.case import Array, Case
from corpus.cases import CASES
from corpus.slices import REFUSED

import pygpukit as gp
from pygpukit import _core
from pygpukit.scheduler import Scheduler

SEED = int(os.environ.get("PYGPUKIT_CORPUS_SEED") or secrets.randbits(32))
BLOCKS = 3  # of a slice
EACH = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
RIVAL = """
extern "C" __global__ void NAME(float *out, int rounds) {
    float x = threadIdx.x;
    for (int i = 0; i < rounds; ++i) x = fmaf(x, 0.999f, 1.0f);
    if (x == -1.0f) out[0] = x;
}
"""


def launch(
    case: Case, blocks: int | None = None, between: Callable[[list[gp.GPUArray]], None] | None = None
) -> dict[str, bytes]:
    """The bytes of every array after one launch. blocks: in slices of so many; between: called before and after it."""
    kernel = gp.jit(case.source, func=case.kernel, options=case.options, defines=case.defines, name=case.file)
    whole_or_parts = kernel if blocks is None else kernel.sliced(blocks)
    bound = whole_or_parts.launcher(case.grid, case.block, shared_bytes=case.shared_bytes, cooperative=case.cooperative)
    taken, kept = case.placed(case.arguments(SEED))
    arrays = [value for value in kept.values() if isinstance(value, gp.GPUArray)]
    for step in (between, lambda _: bound(*taken.values()), between):
        if step is not None:
            step(arrays)
    found: dict[str, Array] = case.normalised({name: array.to_numpy() for name, array in kept.items()})
    return {name: values.tobytes() for name, values in found.items()}


@functools.cache
def plain(name: str) -> dict[str, bytes]:
    return launch(next(case for case in CASES if case.name == name))


def same(case: Case, found: dict[str, bytes]) -> None:
    expected = plain(case.name)
    differing = [name for name, value in expected.items() if found[name] != value]
    assert not differing and found.keys() == expected.keys(), f"{case.name}, PYGPUKIT_CORPUS_SEED={SEED}: {differing}"


def evict(arrays: list[gp.GPUArray]) -> None:
    for array in arrays:
        address = array.device_ptr
        _core.pool_evict(array.device, array.block)
        assert not array.resident
        assert array.device_ptr == address and array.resident  # it comes back to where it was
        _core.pool_evict(array.device, array.block)


@EACH
def test_a_launch_between_evictions(case: Case, backend_name: str) -> None:
    same(case, launch(case, between=evict))


@EACH
def test_slices_between_evictions(case: Case, backend_name: str) -> None:
    if case.cooperative or (case.name in REFUSED and gp.backend() == "cuda"):
        pytest.skip(f"refused: {REFUSED[case.name]}")
    same(case, launch(case, blocks=BLOCKS, between=evict))


def test_scheduled_beside_two_tenants(backend_name: str) -> None:
    """Each kernel in a task of its own, whole and in slices, while two others launch all the time."""
    expected = [case for case in CASES if plain(case.name)]  # all, and before there are rivals
    stop = threading.Event()

    def rival(name: str) -> None:
        kernel = gp.jit(RIVAL.replace("NAME", name), func=name)
        bound, out = kernel[1, 32], gp.zeros(1)
        while not stop.is_set():
            bound(out, 500)

    held_back = 0
    with Scheduler(workers=3) as scheduler:
        rivals = [scheduler.submit(rival, name, bandwidth=0.25, name=name) for name in ("first", "second")]
        try:
            for case in expected:
                sliceable = not case.cooperative and (case.name not in REFUSED or gp.backend() == "sim")
                for blocks in (None, BLOCKS) if sliceable else (None,):
                    task = scheduler.submit(launch, case, blocks, evict, bandwidth=0.5)
                    same(case, task.result(timeout=60))
                    held_back += task.stats().waited_ns > 0
        finally:
            stop.set()
        assert all(task.result(timeout=60) is None and task.stats().launches > 0 for task in rivals)
    assert held_back > 0, "no launch waited for a turn: there was no contest"
