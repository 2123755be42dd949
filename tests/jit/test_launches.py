"""Every way to configure a launch: grids of each rank, streams, dynamic shared memory, null pointers, structures by
value, launchers; on both backends."""

from __future__ import annotations

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import _core
from pygpukit._core import native
from pygpukit.core.errors import KernelArgumentError
from pygpukit.jit import JITKernel, jit

pytestmark = pytest.mark.usefixtures("backend_name")

INDEX = """
__global__ void where(int* out) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    int width = gridDim.x * blockDim.x, height = gridDim.y * blockDim.y;
    out[(z * height + y) * width + x] = x + 100 * y + 10000 * z;
}
"""
# Writes a whole block's dynamic shared memory and reads it back the other way round.
REVERSE = """
__global__ void reverse(const int* in, int* out, int n) {
    extern __shared__ int buffer[];
    for (int i = threadIdx.x; i < n; i += blockDim.x) buffer[i] = in[i];
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = buffer[n - 1 - i];
}
"""


@pytest.fixture
def reverse() -> JITKernel:
    return jit(REVERSE)


def launches() -> int:
    return int(_core.counters()["launches"])


def expected(z: int, y: int, x: int) -> np.ndarray:
    at = np.indices((z, y, x))
    return at[2] + 100 * at[1] + 10000 * at[0]


@pytest.mark.parametrize(
    ("grid", "block", "shape"),
    [
        (3, 32, (1, 1, 96)),
        ((3,), (32,), (1, 1, 96)),
        ((3, 2), (16, 4), (1, 8, 48)),
        ((2, 3, 4), (8, 4, 2), (8, 12, 16)),
        ((1, 1, 5), (1, 1, 64), (320, 1, 1)),
    ],
)
def test_grids_and_blocks_of_each_rank(grid: object, block: object, shape: tuple[int, int, int]) -> None:
    where, out = jit(INDEX), gp.zeros(shape, dtype="int32")
    where[grid, block](out)
    np.testing.assert_array_equal(out.to_numpy(), expected(*shape))
    again = gp.zeros(shape, dtype="int32")
    where.launcher(grid, block)(again)
    np.testing.assert_array_equal(again.to_numpy(), out.to_numpy())


def test_a_launcher_stays_on_its_stream() -> None:
    where, stream, out = jit(INDEX), gp.Stream(), gp.zeros(64, dtype="int32")
    gp.synchronize()
    before = _core.ring_head()
    bound = where.launcher(2, 32, stream=stream)
    bound(out)
    with gp.Stream():
        bound(out)
    stream.synchronize()
    data, _, _ = _core.ring_read(before)
    records = [data[i : i + 64] for i in range(0, len(data), 64)]
    used = [int.from_bytes(r[20:24], "little") for r in records if int.from_bytes(r[16:18], "little") == 16]
    assert used == [stream.id] * 2
    np.testing.assert_array_equal(out.to_numpy(), np.arange(64))


@pytest.mark.parametrize("nbytes", [1024, 48 << 10, 49156, 64 << 10, 99 << 10])
def test_dynamic_shared_memory_also_above_48_kilobytes(reverse: JITKernel, nbytes: int) -> None:
    n = nbytes // 4
    source, out = gp.arange(n, dtype="int32"), gp.zeros(n, dtype="int32")
    reverse.launcher(1, 128, shared_bytes=nbytes)(source, out, n)
    np.testing.assert_array_equal(out.to_numpy(), np.arange(n)[::-1])


def test_occupancy_counts_shared_memory_above_48_kilobytes(reverse: JITKernel) -> None:
    limit = int(native.device_info(0)["max_shared_per_block_optin_bytes"])
    assert reverse.occupancy(128, limit).blocks == 1
    assert reverse.occupancy(128, limit + 1024).blocks == 0


def test_a_smaller_launcher_leaves_a_larger_one_its_memory(reverse: JITKernel) -> None:
    large, small, n = 96 << 10, 56 << 10, (96 << 10) // 4
    source, out = gp.arange(n, dtype="int32"), gp.zeros(n, dtype="int32")
    wide = reverse[1, 128, large]
    narrow = reverse[1, 128, small]
    other = reverse.unit.kernel("reverse")[1, 128, small + 1024]
    for bound in (narrow, other, wide):
        bound(source, out, n if bound is wide else 100)
    np.testing.assert_array_equal(out.to_numpy(), np.arange(n)[::-1])


def test_static_and_dynamic_memory_count_together() -> None:
    kernel = jit(
        "__global__ void k(int* out) { __shared__ int own[10000]; extern __shared__ int more[];\n"
        "own[threadIdx.x] = 1; more[threadIdx.x] = 2; __syncthreads(); out[0] = own[0] + more[3999]; }"
    )
    out = gp.zeros(1, dtype="int32")
    kernel[1, 1024, 16000](out)
    gp.synchronize()  # 40000 + 16000 bytes: each alone would need no consent


def test_more_shared_memory_than_a_block_has_is_refused(reverse: JITKernel) -> None:
    limit = int(native.device_info(0)["max_shared_per_block_optin_bytes"])
    before = launches()
    for bind in (lambda n: reverse[1, 32, n], lambda n: reverse.launcher(1, 32, shared_bytes=n)):
        bind(limit)
        with pytest.raises(KernelArgumentError, match=f"at most {limit} bytes") as caught:
            bind(limit + 1)
        assert caught.value.parameter == "shared_bytes"
    assert launches() == before


def test_null_pointers_and_structures_by_value() -> None:
    kernel = jit(
        "struct Affine { double scale; int shift; };\n"
        "__global__ void k(double* out, const double* maybe, Affine f, float3 v) {\n"
        "  out[0] = (maybe ? *maybe : -1) * f.scale + f.shift; out[1] = v.x + 10 * v.y + 100 * v.z; }"
    )
    affine = np.array([(2.0, 5)], np.dtype([("scale", "f8"), ("shift", "i4")], align=True))
    out = gp.zeros(2, dtype="float64")
    for maybe, first in ((None, 3.0), (gp.full((), 4.0, dtype="float64"), 13.0)):
        kernel[1, 1](out, maybe, affine.tobytes(), np.array([1, 2, 3], np.float32))
        assert out.to_numpy().tolist() == [first, 321.0]


@pytest.mark.parametrize(
    ("arguments", "parameter", "message"),
    [
        ({"grid": 0}, "grid", "grid is 0"),
        ({"grid": "4"}, "grid", "grid is '4'"),
        ({"block": (1, 2, 3, 4)}, "block", "one to three ints"),
        ({"block": 2048}, "block", "2048 threads"),
        ({"shared_bytes": -1}, "shared_bytes", "shared_bytes is -1"),
        ({"stream": 7}, "stream", "stream is a int"),
        ({"cluster": 0}, "cluster", "cluster is 0"),
        ({"cluster": (2, 2, 2, 2)}, "cluster", "one to three ints"),
        ({"grid": 1 << 22, "cooperative": True}, "grid", "all blocks run at once"),
        ({"block": 2048, "cooperative": True}, "block", "2048 threads"),
        ({"shared_bytes": 1 << 20, "cooperative": True}, "shared_bytes", "at most"),
    ],
)
def test_settings_are_refused_by_name_before_a_launch(
    arguments: dict[str, object], parameter: str, message: str
) -> None:
    where, before = jit(INDEX), launches()
    with pytest.raises(KernelArgumentError, match=message) as caught:
        where.launcher(**{"grid": 4, "block": 64, **arguments})  # type: ignore[arg-type]
    assert caught.value.parameter == parameter
    assert launches() == before


def test_clusters_are_for_devices_that_have_them() -> None:
    where, before = jit(INDEX), launches()
    info = native.device_info(0)
    if info["compute_major"] < 9:
        with pytest.raises(KernelArgumentError, match=r"clusters need SM 9\.0") as caught:
            where.launcher(4, 64, cluster=2)
        assert caught.value.parameter == "cluster" and launches() == before
        return
    out = gp.zeros(512, dtype="int32")
    where.launcher(8, 64, cluster=2)(out)
    np.testing.assert_array_equal(out.to_numpy(), np.arange(512))
    for cluster, message in (((3,), "must divide the grid"), ((2, 2), "must divide the grid"), (32, "at most 16")):
        with pytest.raises(KernelArgumentError, match=message):
            where.launcher(8, 64, cluster=cluster)


COOPERATIVE = """
#include <cooperative_groups.h>
__global__ void turns(int* x, int n) {
    cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int step = 0; step < 10; ++step) {
        int next = x[(i + 1) % n];
        grid.sync();
        x[i] = next + 1;
        grid.sync();
    }
}
"""


def test_cooperative_blocks_wait_for_each_other() -> None:
    n = 8 * 64
    x = gp.arange(n, dtype="int32")
    bound = jit(COOPERATIVE).launcher(8, 64, cooperative=True)
    bound(x, n)
    np.testing.assert_array_equal(x.to_numpy(), (np.arange(n) + 10) % n + 10)
