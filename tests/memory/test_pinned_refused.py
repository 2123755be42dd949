"""Where the system pins no more host memory: eviction and transfers go on in pageable memory, say so and count it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from mock_cuda import build

REFUSES = {"MOCK_CUDA_FAIL": "cuMemHostAlloc:2"}
PRELUDE = """
import os, warnings
import numpy as np
import pygpukit as gp
from pygpukit import _core
from pygpukit.memory import TransferEngine, is_pinned, pinned_empty, set_limit, stats
from pygpukit.scheduler import Scheduler

MIB = 1 << 20
warnings.simplefilter("error")
warnings.simplefilter("always", gp.PageableMemoryWarning)

def patterned(nbytes, seed=0):
    return np.random.default_rng(seed).integers(0, 256, nbytes, dtype="uint8")

def evict(array):
    _core.pool_evict(array.device, array.block)
"""


def run(code: str, **settings: str) -> None:
    """Run Python code after the prelude in a process on the mock device."""
    base = {key: value for key, value in os.environ.items() if key not in ("CUDA_VISIBLE_DEVICES", "PYGPUKIT_BACKEND")}
    environment = base | {"LD_LIBRARY_PATH": str(build() / "mock"), **settings}
    command = [sys.executable, "-c", PRELUDE + code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr + done.stdout


@pytest.mark.parametrize("status", [2, 304])
def test_what_is_evicted_goes_to_pageable_memory_and_comes_back_byte_for_byte(status: int) -> None:
    code = """
expected = {nbytes: patterned(nbytes) for nbytes in (1000, 3 * MIB, 40 * MIB)}
arrays = {nbytes: gp.from_numpy(values) for nbytes, values in expected.items()}
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for array in arrays.values():
        evict(array)
assert [w.category for w in caught] == [gp.PageableMemoryWarning], caught
told = str(caught[0].message)
assert "1024 bytes of device 0" in told and "cuMemHostAlloc" in told and "ulimit -l" in told, told
assert caught[0].filename == "<string>", caught[0].filename
counted = stats()
assert counted["pageable"] == counted["evicted"] >= sum(expected) and counted["pageable_eviction_count"] == 3, counted
assert _core.counters()["pageable_buffers"] == 3 and _core.counters()["pageable_bytes"] == counted["pageable"]
with Scheduler(total_memory=MIB) as scheduler:
    lines = scheduler.prometheus().splitlines()
assert "pygpukit_pageable_buffers_total 3" in lines and f"pygpukit_pageable_bytes_total {counted['pageable']}" in lines
for nbytes, array in arrays.items():
    assert (array.to_numpy() == expected[nbytes]).all(), nbytes
    assert array.resident
assert stats()["pageable"] == 0 and stats()["pageable_eviction_count"] == 3
os.environ["MOCK_CUDA_FAIL"] = ""
evict(arrays[3 * MIB])
assert (stats()["pageable"], stats()["evicted"]) == (0, 3 * MIB), "pinned again"
assert (arrays[3 * MIB].to_numpy() == expected[3 * MIB]).all()
"""
    run(code, MOCK_CUDA_FAIL=f"cuMemHostAlloc:{status}")


def test_pressure_evicts_all_the_same() -> None:
    code = """
set_limit(8 * MIB)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    arrays = [gp.from_numpy(patterned(3 * MIB, seed)) for seed in range(5)]
    found = [array.to_numpy() for array in arrays]
assert [w.category for w in caught] == [gp.PageableMemoryWarning], caught
assert all((values == patterned(3 * MIB, seed)).all() for seed, values in enumerate(found))
assert stats()["pageable_eviction_count"] >= 3
"""
    run(code, **REFUSES)


def test_where_warnings_are_errors_nothing_is_lost() -> None:
    code = """
import sys
warnings.simplefilter("error")
lost = []
sys.unraisablehook = lost.append
array = gp.from_numpy(patterned(MIB))
evict(array)
assert not array.resident and (array.to_numpy() == patterned(MIB)).all()
assert [one.exc_type for one in lost] == [gp.PageableMemoryWarning]
"""
    run(code, **REFUSES)


@pytest.mark.parametrize("settings", [REFUSES, {}], ids=["pins nothing", "pins what there is"])
def test_where_the_host_has_no_memory_left_all_stays_on_the_device(settings: dict[str, str]) -> None:
    code = """
import resource
from pygpukit import scheduler

NBYTES = 48 * MIB

def leave_host_memory(nbytes):
    with open("/proc/self/statm") as sizes:
        used = int(sizes.read().split()[0]) * resource.getpagesize()
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (hard if nbytes is None else used + nbytes, hard))

def books():
    account = context.stats
    return stats(), _core.pool_traffic(), _core.counters(), account.used_vram, account.buffer_count

def refused(error, words, ask):
    try:
        ask()
    except error as told:
        assert words in str(told), told
    else:
        raise SystemExit(f"it was not refused: {words}")

context = scheduler.create_context("own", max_vram=NBYTES)
expected = [patterned(NBYTES, seed) for seed in range(3)]
with context:
    arrays = [gp.from_numpy(expected[0])]
arrays += map(gp.from_numpy, expected[1:])
gp.synchronize()
before, addresses = books(), [array.device_ptr for array in arrays]
leave_host_memory(16 * MIB)
for array in arrays:
    why = f"block {array.block} cannot leave the device now: host memory is exhausted"
    refused(RuntimeError, why, lambda: evict(array))
refused(gp.OutOfMemoryError, "out of GPU memory", lambda: set_limit(2 * NBYTES))
set_limit(3 * NBYTES)
refused(gp.OutOfMemoryError, "out of GPU memory", lambda: gp.empty(NBYTES, "uint8"))
set_limit(None)
assert all(array.resident for array in arrays) and books() == before, (before, books())
heads = [array[:1000].to_numpy() for array in arrays]
leave_host_memory(None)
assert all((head == values[:1000]).all() for head, values in zip(heads, expected))
assert all((array.to_numpy() == values).all() for array, values in zip(arrays, expected))
with warnings.catch_warnings():
    warnings.simplefilter("ignore", gp.PageableMemoryWarning)
    for array in arrays:
        evict(array)
    assert not any(array.resident for array in arrays) and stats()["evicted"] == 3 * NBYTES
    assert context.stats.used_vram == NBYTES and ("own", NBYTES, 0) in _core.pool_traffic()
    assert all((array.to_numpy() == values).all() for array, values in zip(arrays, expected))
assert [array.device_ptr for array in arrays] == addresses and stats()["evicted"] == 0
"""
    run(code, **settings)


def test_a_new_target_of_a_transfer_is_pageable() -> None:
    code = """
array = gp.from_numpy(patterned(MIB))
with TransferEngine() as engine, warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(2):
        target = engine.to_host(array).wait()
        assert (target == patterned(MIB)).all() and not is_pinned(target)
assert [w.category for w in caught] == [gp.PageableMemoryWarning], caught
told = str(caught[0].message)
assert f"{MIB} bytes" in told and "ulimit -l" in told and "cuMemHostAlloc" in told, told
assert (_core.counters()["pageable_buffers"], _core.counters()["pageable_bytes"]) == (2, 2 * MIB)
"""
    run(code, **REFUSES)


def test_pinned_memory_asked_for_by_name_is_refused_with_the_remedy() -> None:
    code = """
import _pygpukit_rust as rust
manager = rust.PinnedMemoryManager()
for ask in (lambda: pinned_empty(MIB, "uint8"), lambda: manager.allocate(MIB)):
    try:
        ask()
    except gp.OutOfMemoryError as error:
        assert error.requested == MIB and f"pin {MIB} bytes" in str(error) and "ulimit -l" in str(error), error
    else:
        raise SystemExit("it was not refused")
assert manager.stats().current_used == 0 and _core.counters()["pageable_buffers"] == 0
os.environ["MOCK_CUDA_FAIL"] = ""
assert is_pinned(pinned_empty(MIB, "uint8")) and manager.allocate(MIB)[1] == MIB
"""
    run(code, **REFUSES)


def test_other_failures_are_told() -> None:
    code = """
array = gp.from_numpy(patterned(MIB))
for ask in (lambda: evict(array), lambda: pinned_empty(MIB, "uint8")):
    try:
        ask()
    except gp.DriverError as error:
        assert error.code == 1, error
    else:
        raise SystemExit("it was not refused")
assert array.resident and (array.to_numpy() == patterned(MIB)).all() and stats()["pageable_eviction_count"] == 0
"""
    run(code, MOCK_CUDA_FAIL="cuMemHostAlloc:1")


def test_a_small_limit_of_locked_memory_is_used_up_first() -> None:
    code = """
import resource
resource.setrlimit(resource.RLIMIT_MEMLOCK, (2 * MIB, 2 * MIB))
arrays = [gp.from_numpy(patterned(MIB, seed)) for seed in range(4)]
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for array in arrays:
        evict(array)
assert len(caught) == 1 and (stats()["evicted"], stats()["pageable"]) == (4 * MIB, 2 * MIB)
assert all((array.to_numpy() == patterned(MIB, seed)).all() for seed, array in enumerate(arrays))
assert stats()["pageable"] == 0
"""
    run(code, MOCK_CUDA_MEMLOCK="1")
