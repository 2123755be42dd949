"""Kernels launched in slices: the bits of the whole launch at every size, on one stream, and what is refused."""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Callable

import numpy as np
import pytest
from corpus.case import Array, Case
from corpus.cases import CASES
from corpus.slices import REFUSED

import pygpukit as gp
from pygpukit import _core
from pygpukit.core.errors import KernelArgumentError, UnsliceableError

SEED = int(os.environ.get("PYGPUKIT_CORPUS_SEED") or secrets.randbits(32))
SIZES = (1, 2, 3, 7, 13, None)  # blocks of a slice; None: one wave


def runnable(case: Case) -> bool:
    """Cooperative launches are refused everywhere; the simulation slices the rest."""
    return not case.cooperative and (case.name not in REFUSED or gp.backend() == "sim")


def run(case: Case, launch: Callable[..., None], arguments: dict[str, object]) -> dict[str, Array]:
    taken, kept = case.placed(arguments)
    launch(*taken.values())
    return case.normalised({name: array.to_numpy() for name, array in kept.items()})


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_slices_give_the_bits_of_the_whole(case: Case, backend_name: str) -> None:
    kernel = gp.jit(case.source, func=case.kernel, options=case.options, defines=case.defines, name=case.file)
    if not runnable(case):
        with pytest.raises(UnsliceableError) as refused:
            kernel.sliced(1).launcher(case.grid, case.block, cooperative=case.cooperative)
        assert refused.value.reason == REFUSED[case.name]
        return
    total, arguments = math.prod(case.grid) if isinstance(case.grid, tuple) else case.grid, case.arguments(SEED)
    whole = run(case, kernel.launcher(case.grid, case.block, shared_bytes=case.shared_bytes), arguments)
    assert not case.difference(whole, case.expected(arguments)), f"PYGPUKIT_CORPUS_SEED={SEED}"
    for blocks in SIZES:
        launcher = kernel.sliced(blocks).launcher(case.grid, case.block, shared_bytes=case.shared_bytes)
        before = _core.counters()["launches"]
        part = run(case, launcher, arguments)
        if blocks is not None:
            assert _core.counters()["launches"] - before >= -(-total // blocks), f"{blocks} blocks"
        for name, value in whole.items():
            assert part[name].tobytes() == value.tobytes(), f"{name}, {blocks} blocks, PYGPUKIT_CORPUS_SEED={SEED}"


def test_fifty_kernels_run_in_more_than_one_slice() -> None:
    """At least fifty of sixty: those that slice on a device, and have more than one block to cut between."""
    cut = [case for case in CASES if case.name not in REFUSED and case.grid not in (1, (1,), (1, 1), (1, 1, 1))]
    assert len(cut) >= 50 and len(cut) * 60 >= len(CASES) * 50


PLACE = """
__device__ __noinline__ unsigned number() {
  return (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
}
extern "C" __global__ void place(unsigned *out, unsigned step) {
  unsigned *at = out + 7 * number();
  if (threadIdx.x == 0) {
    at[0] = blockIdx.x; at[1] = blockIdx.y; at[2] = blockIdx.z;
    at[3] = gridDim.x; at[4] = gridDim.y; at[5] = gridDim.z;
    atomicAdd(at + 6, step);
  }
}
"""


@pytest.fixture(scope="module")
def place() -> gp.JITKernel:
    return gp.jit(PLACE, name="place.cu")


@pytest.mark.parametrize("grid", [1, 7, (3, 5), (4, 3, 2), (1, 1, 9), (17, 1, 3)])
@pytest.mark.parametrize("blocks", [1, 2, 3, 7, 12, 1000, None])
def test_every_block_runs_once_and_sees_the_whole_grid(
    place: gp.JITKernel, grid: int | tuple[int, ...], blocks: int | None, backend_name: str
) -> None:
    x, y, z = (*(grid if isinstance(grid, tuple) else (grid,)), 1, 1)[:3]
    out = gp.zeros(x * y * z * 7, dtype="uint32")
    launcher = place.sliced(blocks)[grid, 32]
    launcher(out, step=1)
    expected = [[i, j, k, x, y, z, 1] for k in range(z) for j in range(y) for i in range(x)]
    assert out.to_numpy().reshape(-1, 7).tolist() == expected
    assert len(launcher) == len(launcher.slices) >= (-(-x * y * z // blocks) if blocks else 1)


def test_an_inferred_grid_is_sliced(backend_name: str) -> None:
    kernel = gp.jit('extern "C" __global__ void twice(float *x, int n) {'
                    " int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 2; }")  # fmt: skip
    values = np.random.default_rng(SEED).standard_normal(1001).astype("float32")
    x = gp.from_numpy(values)
    sliced = kernel.sliced(3)
    sliced(x, n=1001)
    sliced(x, 1001, grid_size=4)
    np.testing.assert_array_equal(x.to_numpy(), values * 4)


def test_slices_stay_on_their_stream_and_in_graphs(place: gp.JITKernel, backend_name: str) -> None:
    stream = gp.Stream()
    out = gp.zeros(5 * 7, dtype="uint32")
    gp.synchronize()
    launcher = place.sliced(2).launcher(5, 32, stream=stream)
    with stream.capture() as graph:
        launcher(out, 1)
    graph.launch()
    graph.launch()
    stream.synchronize()
    assert out.to_numpy().reshape(-1, 7)[:, 6].tolist() == [2] * 5
    assert out.to_numpy().reshape(-1, 7)[:, 0].tolist() == [0, 1, 2, 3, 4]


def test_arguments_are_refused_before_the_first_slice(place: gp.JITKernel, backend_name: str) -> None:
    out = gp.zeros(5 * 7, dtype="uint32")
    launcher = place.sliced(2)[5, 32]
    for arguments, named in (
        ((out,), {}), ((out, 1, 2), {}), ((out, "x"), {}), ((out,), {"other": 1}), ((out, 1), {"step": 1}),
    ):  # fmt: skip
        with pytest.raises(KernelArgumentError):
            launcher(*arguments, **named)
    with pytest.raises(KernelArgumentError, match="takes 2 arguments, got 3"):
        launcher(out, 1, 2)
    with pytest.raises(KernelArgumentError, match="'step': missing"):
        launcher(out)
    gp.synchronize()
    assert not out.to_numpy().any()


@pytest.mark.parametrize("blocks", [0, -1, 1.5, "2"])
def test_bad_sizes_are_refused(place: gp.JITKernel, blocks: object, backend_name: str) -> None:
    with pytest.raises(KernelArgumentError) as refused:
        place.sliced(blocks)  # type: ignore[arg-type]
    assert refused.value.parameter == "blocks"


def test_too_many_slices_are_refused(place: gp.JITKernel, backend_name: str) -> None:
    with pytest.raises(KernelArgumentError, match="give more blocks a slice"):
        place.sliced(1)[1 << 22, 32]


def test_blocks_that_run_together_are_not_sliced(place: gp.JITKernel, backend_name: str) -> None:
    sliced = place.sliced(2)
    for settings, reason in (({"cooperative": True}, "GridSync"), ({"cluster": 2}, "Cluster")):
        with pytest.raises(UnsliceableError) as refused:
            sliced.launcher(4, 32, **settings)  # type: ignore[arg-type]
        assert refused.value.reason == reason
    clusters = gp.jit('extern "C" __global__ void __cluster_dims__(2, 1, 1) k(int *x) { x[0] = 1; }')
    with pytest.raises(UnsliceableError) as refused:
        clusters.sliced()
    assert refused.value.reason == "Cluster"
