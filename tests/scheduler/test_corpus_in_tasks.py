"""The kernel suite in tasks: held to turns, cut by the gate, evicted, and all at once gives the bits of a plain launch.

Nobody asks for parts here: the gate cuts, as its own measurement of a kernel tells it to. `corpus.spread` makes the
suite's launches long enough for that.
"""

from __future__ import annotations

import functools
import os
import secrets
import threading
import time
from collections.abc import Iterator

import pytest
from corpus.case import Case
from corpus.cases import CASES
from corpus.slices import REFUSED
from corpus.spread import Spread

import pygpukit as gp
from pygpukit import _core
from pygpukit.scheduler import Scheduler, Task, slicer

SEED = int(os.environ.get("PYGPUKIT_CORPUS_SEED") or secrets.randbits(32))
PATIENCE_S = 60
SUITE = [case for case in CASES if not case.cooperative]  # a cooperative launch is one piece by its nature
EACH = pytest.mark.parametrize("case", SUITE, ids=[case.name for case in SUITE])
RIVAL = 'extern "C" __global__ void rival(float *out) { out[threadIdx.x] += 1.0f; }'
pytestmark = pytest.mark.usefixtures("backend_name")


def stays_whole(case: Case) -> bool:
    """The simulated device cuts any kernel."""
    return case.name in REFUSED and gp.backend() == "cuda"


@functools.cache
def spread(name: str) -> Spread:
    return Spread(next(case for case in SUITE if case.name == name))


def evict(array: gp.GPUArray) -> None:
    _core.pool_evict(array.device, array.block)
    assert not array.resident


def launch(case: Case, evicted: bool = False) -> dict[str, bytes]:
    """The bytes of every array after one launch. evicted: each is on the host when the launch comes, and again when it
    was submitted."""
    one = spread(case.name)
    taken, kept = case.placed(case.arguments(SEED))
    arrays = [value for value in taken.values() if isinstance(value, gp.GPUArray)] if evicted else []
    for array in arrays:
        evict(array)
    one.launch(taken)
    for array in arrays:
        assert array.resident  # the launch brought it back
        evict(array)
    return {name: values.tobytes() for name, values in one.found(kept).items()}


@functools.cache
def plain(name: str) -> dict[str, bytes]:
    """Without any task; and it is what NumPy says."""
    one = spread(name)
    arguments = one.case.arguments(SEED)
    taken, kept = one.case.placed(arguments)
    one.launch(taken)
    found = one.found(kept)
    wrong = one.case.difference(found, one.case.expected(arguments))
    assert not wrong, f"{name}: {wrong}, PYGPUKIT_CORPUS_SEED={SEED}"
    return {name: values.tobytes() for name, values in found.items()}


def check(case: Case, task: Task) -> None:
    found, expected = task.result(PATIENCE_S), plain(case.name)
    differing = [name for name, value in expected.items() if found[name] != value]
    assert not differing and found.keys() == expected.keys(), f"{case.name}, PYGPUKIT_CORPUS_SEED={SEED}: {differing}"


@pytest.fixture(scope="module")
def alone() -> Iterator[Scheduler]:
    with Scheduler(workers=1) as scheduler:
        yield scheduler


@pytest.fixture(scope="module")
def contended() -> Iterator[Scheduler]:
    """Beside a tenant that may come with something short at any moment."""
    stop = threading.Event()

    def rival() -> None:
        launcher, out = gp.jit(RIVAL, func="rival")[1, 32], gp.zeros(32)
        while not stop.wait(0.005):
            launcher(out)

    with Scheduler(workers=2) as scheduler:
        task = scheduler.submit(rival, name="rival", bandwidth=0.25)
        try:
            yield scheduler
            assert task.phase == "Running" and task.record.launches > 0, "there was no contest"
        finally:
            stop.set()


@EACH
def test_alone_in_a_task(case: Case, alone: Scheduler) -> None:
    check(case, alone.submit(launch, case, bandwidth=0.5))


@EACH
def test_evicted_in_a_task(case: Case, alone: Scheduler) -> None:
    check(case, alone.submit(launch, case, evicted=True, memory="64MB", bandwidth=0.5, policy="guaranteed"))


@pytest.mark.parametrize("evicted", [False, True], ids=["cut", "cut and evicted"])
@EACH
def test_cut_by_the_gate(case: Case, evicted: bool, contended: Scheduler) -> None:
    """As soon as the gate has measured the kernel and its variant is there; before, it is launched whole."""
    plain(case.name)
    end, slices = time.monotonic() + PATIENCE_S, 0
    while slices == 0 and time.monotonic() < end:
        task = contended.submit(launch, case, evicted, bandwidth=0.5)
        check(case, task)
        slices = task.record.slices
        if stays_whole(case) and slicer.report().get(spread(case.name).kernel.name) is not None:
            break
    if stays_whole(case):
        assert slices == 0
    else:
        assert 2 <= slices <= spread(case.name).waves, slicer.report()


def test_fifty_kernels_of_sixty_are_cut_between_their_own_blocks() -> None:
    """Of those that test_cut_by_the_gate sees cut; the others have one block, or are refused by name."""
    cut = [case for case in SUITE if not stays_whole(case) and spread(case.name).case_blocks > 1]
    assert len(cut) >= 50 and len(cut) * 60 >= len(CASES) * 50
