"""The gate cuts long kernels while others wait: the same bits, more turns, and never where blocks must run together."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit._core import native
from pygpukit.core.errors import UnsliceableError
from pygpukit.jit.cache.image import Image
from pygpukit.jit.launch import slicing
from pygpukit.jit.launch.kernel import JITKernel
from pygpukit.ops import host
from pygpukit.scheduler import Scheduler, slicer

LONG = """
extern "C" __global__ void NAME(float *out, int rounds) {
    const int i = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    float x = i + threadIdx.x * 0.001f;
    for (int round = 0; round < rounds; ++round) x = fmaf(x, 0.999f, 1.0f + gridDim.x);
    out[i * blockDim.x + threadIdx.x] = x;
}
"""
SHORT = """
extern "C" __global__ void NAME(float *out) { out[threadIdx.x] = 1.0f; }
"""
BLOCK = 64
PATIENCE_S = 60
pytestmark = pytest.mark.usefixtures("backend_name")


def _waves(kernel: JITKernel, waves: int) -> int:
    """Blocks of so many waves."""
    return kernel.sliced().wave(BLOCK) * waves


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    with Scheduler(workers=2) as made:
        yield made


def _contest(
    scheduler: Scheduler, long: JITKernel, grid: tuple[int, ...], rounds: int
) -> tuple[dict[str, Any], np.ndarray]:
    """As _beside(), of launches of one kernel; and its output."""
    out = gp.zeros(int(np.prod(grid)) * BLOCK)
    figures = _beside(scheduler, lambda: long[grid, BLOCK](out, rounds), long.name)
    return figures, out.to_numpy()


def _beside(scheduler: Scheduler, launch: Callable[[], object], name: str) -> dict[str, Any]:
    """Long kernels beside short ones until the gate has cut one: the figures of their task. name: a part of the long
    kernel's."""
    short = gp.jit(SHORT.replace("NAME", "brief"), func="brief")
    little = gp.zeros(32)
    stop = threading.Event()
    figures: dict[str, Any] = {}

    def storm() -> None:
        while not stop.is_set():
            launch()

    def others() -> None:
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            for _ in range(8):
                short[1, 32](little)
            native.current_stream().synchronize()
            device = scheduler.snapshot()["devices"][0]["tasks"]
            figures.update(device.get(task.id, {}))
            if figures.get("slices", 0) >= 8 or any(name in kernel for kernel in refused()):
                break
        stop.set()

    def refused() -> dict[str, str | None]:
        return {kernel: why for kernel, why in slicer.report().items() if why is not None}

    task = scheduler.submit(storm, name="storm", bandwidth=0.1, policy="burstable")
    scheduler.submit(others, name="others", bandwidth=0.8, policy="burstable").result()
    task.result()
    return figures


@pytest.mark.parametrize("shape", ["row", "plane"])
def test_a_long_kernel_is_cut_and_its_output_has_the_same_bits(scheduler: Scheduler, shape: str) -> None:
    long = gp.jit(LONG.replace("NAME", f"long_{shape}"), func=f"long_{shape}")
    blocks = _waves(long, 6)
    grid = (blocks, 1, 1) if shape == "row" else (7, blocks // 7 + 1, 2)
    rounds = 40 if native.backend_name() == "sim" else 200_000
    figures, out = _contest(scheduler, long, grid, rounds)
    assert figures["slices"] >= 8, slicer.report()
    assert slicer.report()[long.name] is None
    whole = gp.zeros(out.size)
    whole.fill(float("nan"))
    long[grid, BLOCK](whole, rounds)
    assert whole.to_numpy().tobytes() == out.tobytes()
    assert scheduler.snapshot()["kernels"][long.name] is None


def test_the_long_kernel_of_a_tenant_alone_can_be_cut_before_another_comes(scheduler: Scheduler) -> None:
    long = gp.jit(LONG.replace("NAME", "long_alone"), func="long_alone")
    out = gp.zeros(_waves(long, 6) * BLOCK)
    rounds = 40 if native.backend_name() == "sim" else 200_000

    def alone() -> None:
        until = time.monotonic() + 60
        while long.name not in slicer.report() and time.monotonic() < until:
            long[out.size // BLOCK, BLOCK](out, rounds)
            native.current_stream().synchronize()

    task = scheduler.submit(alone)
    task.result()
    assert slicer.report()[long.name] is None
    assert task.record.slices == 0


@gp.fuse
def gently_fused(x: gp.GPUArray) -> gp.GPUArray:
    return gp.exp(x * 0.5) + x


@pytest.mark.parametrize("how", ["built in", "fused"])
def test_a_kernel_of_the_package_is_cut_and_its_output_has_the_same_bits(scheduler: Scheduler, how: str) -> None:
    count = 1 << (21 if native.backend_name() == "sim" else 28)
    x = gp.from_numpy(np.random.default_rng(0).random(count, np.float32))
    name = "gently_fused" if how == "fused" else "Exp"
    operate = gently_fused if how == "fused" else gp.exp
    last: dict[str, gp.GPUArray] = {}
    with host.built_in_kernels():
        figures = _beside(scheduler, lambda: last.update(out=operate(x)), name)
        assert figures["slices"] >= 8, slicer.report()
        assert [why for kernel, why in slicer.report().items() if name in kernel] == [None]
        whole = operate(x)
    assert whole.to_numpy().tobytes() == last["out"].to_numpy().tobytes()


def test_a_kernel_of_one_wave_stays_whole(scheduler: Scheduler) -> None:
    """Its blocks may wait for each other."""
    long = gp.jit(LONG.replace("NAME", "long_wave"), func="long_wave")
    task = scheduler.submit(_few, long, (_waves(long, 1), 1, 1), name="wave", bandwidth=0.1, policy="burstable")
    beside = scheduler.submit(_few, long, (_waves(long, 1), 1, 1), name="beside", bandwidth=0.1, policy="burstable")
    task.result()
    beside.result()
    assert [task.record.slices, beside.record.slices] == [0, 0]
    assert task.record.launches > 0


def _few(kernel: JITKernel, grid: tuple[int, ...]) -> None:
    out = gp.zeros(grid[0] * BLOCK)
    for _ in range(30):
        kernel[grid, BLOCK](out, 40 if native.backend_name() == "sim" else 400_000)


def test_clusters_are_refused_by_name(scheduler: Scheduler) -> None:
    capability = gp.get_device_info().compute_capability
    if native.backend_name() == "cuda" and (capability is None or capability < (9, 0)):
        pytest.skip("clusters need compute capability 9.0")
    source = LONG.replace("__global__ void", "__global__ void __cluster_dims__(2, 1, 1)").replace(
        "NAME", "long_cluster"
    )
    plain = gp.jit(LONG.replace("NAME", "long_plain"), func="long_plain")
    long = gp.jit(source, func="long_cluster")
    rounds = 40 if native.backend_name() == "sim" else 200_000
    figures, _ = _contest(scheduler, long, (_waves(plain, 6) // 2 * 2, 1, 1), rounds)
    assert figures.get("slices", 0) == 0
    assert "__cluster_dims__" in str(slicer.report()[long.name])


def test_a_kernel_can_be_cut_however_many_were_loaded_since(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slicing, "_recipes", {})
    monkeypatch.setattr(slicing, "_with_ptx", {})
    gp.jit(SHORT.replace("NAME", "early"), func="early")[1, 32](gp.zeros(32))
    (handle,) = slicing._recipes

    def load(number: int) -> None:
        function: Any = SimpleNamespace(handle=-number)
        slicing.remember(function, f"other_{number}", lambda: (0, None))

    for number in range(1, 1001):
        load(number)
    found = slicing.recipe(handle)
    assert found is not None and found.make()[0] != 0
    held = [cell.cell_contents for cell in found.make.__closure__ or ()]
    held += [given for one in held for given in getattr(one, "args", ())]
    assert not any(isinstance(one, Image) and (one.image or one.ptx) for one in held), "what is kept is small"
    monkeypatch.setattr(slicing, "_KEPT", 1000)
    load(1001)
    gone = slicing.recipe(handle)
    assert gone is not None and gone.name == found.name
    with pytest.raises(UnsliceableError, match="its PTX is not kept any more: 1000 kernels were loaded since"):
        gone.make()


def test_a_variant_that_cannot_be_made_is_told_by_name_whatever_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def make() -> tuple[int, object]:
        raise RuntimeWarning("kernels are cached in memory only")

    told: list[tuple[int, int]] = []
    monkeypatch.setattr(native, "set_slices", lambda function, variant: told.append((function, variant)))
    monkeypatch.setattr(slicing, "_recipes", {77: slicing.Recipe("unlucky", native.current_device(), make)})
    monkeypatch.setattr(slicer, "_refused", {})
    slicer._make(77)
    why = "its variant could not be made: RuntimeWarning: kernels are cached in memory only"
    assert slicer.report()["unlucky"] == why
    assert told == [(77, 0)]
