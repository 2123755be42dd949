"""Inline PTX on the simulated device: copies of boxes of an array by a tensor map, of 1 to 5 axes, and of bytes to the
blocks of a cluster; against NumPy."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core.errors import GPUError, KernelCheckError
from pygpukit.jit.compile.compiler import compile_source
from pygpukit.jit.ptx.maps import tensor_map
from pygpukit.jit.toolchain import nvrtc_candidates

KERNEL = """
struct __align__(64) Map { unsigned char bytes[128]; };
extern "C" __global__ void k(const __grid_constant__ Map from, const __grid_constant__ Map to, const int *at,
                             unsigned bytes, uint4 *tile, int stores) {
  extern __shared__ __align__(1024) unsigned char memory[];
  __shared__ unsigned long long barrier;
  const unsigned base = (unsigned)__cvta_generic_to_shared(memory), start = (base + 1023) & ~1023u;
  const unsigned full = (unsigned)__cvta_generic_to_shared(&barrier);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(full) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("prefetch.tensormap [%0];" :: "l"(&from) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(full), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.tensor.RANKd.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {COORDINATES}], [%2];" :: "r"(start), "l"(&from), "r"(full), GIVEN : "memory");
  }
  __syncthreads();
  unsigned over;
  do {
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                 : "=r"(over) : "r"(full) : "memory");
  } while (!over);
  const uint4 *made = (const uint4 *)(memory + (start - base));
  for (int i = threadIdx.x; i < bytes / 16; i += blockDim.x) tile[i] = made[i];
  if (threadIdx.x == 0 && stores) {
    asm volatile("cp.async.bulk.tensor.RANKd.global.shared::cta.bulk_group [%1, {COORDINATES}], [%0];"
                 :: "r"(start), "l"(&to), "r"(0), GIVEN : "memory");
    asm volatile("cp.async.bulk.commit_group;\\n cp.async.bulk.wait_group.read 0;" ::: "memory");
  }
}
"""


def source(rank: int) -> str:
    words = {
        "RANK": str(rank), "COORDINATES": ", ".join(f"%{3 + i}" for i in range(rank)),
        "GIVEN": ", ".join(f'"r"(at[{i}])' for i in range(rank)),
    }  # fmt: skip
    text = KERNEL
    for word, value in words.items():
        text = text.replace(word, value)
    if any(Path(path).is_file() for path in nvrtc_candidates()):
        compile_source(text, arch="sm_90a")
    return text


def boxed(
    data: np.ndarray, at: tuple[int, ...], box: tuple[int, ...], steps: tuple[int, ...], swizzle: int
) -> np.ndarray:
    """The tile's bytes. All tuples have the axis of neighbours first; data has it last."""
    counts = [-(-size // step) for size, step in zip(box, steps, strict=True)]
    tile = np.zeros(counts[::-1], data.dtype)
    for index in np.ndindex(*counts[::-1]):
        place = [first + i * step for first, i, step in zip(at, index[::-1], steps, strict=True)][::-1]
        if all(0 <= one < extent for one, extent in zip(place, data.shape, strict=True)):
            tile[index] = data[tuple(place)]
    plain = tile.view(np.uint8).reshape(-1, 16)
    out = np.zeros_like(plain)
    for i in range(len(plain)):
        out[i ^ (i >> 3 & (swizzle // 16 - 1 if swizzle else 0))] = plain[i]
    return out.reshape(-1)


CASES = [
    # extents, box, at, steps, dtype, swizzle
    ((1000,), (64,), (970,), (1,), "float32", 0),
    ((1000,), (32,), (-9,), (1,), "uint16", 64),
    ((72, 37), (64, 16), (24, 30), (1, 1), "uint16", 128),
    ((48, 20), (32, 8), (-5, -3), (1, 1), "uint8", 32),
    ((40, 9, 5), (16, 4, 2), (30, 7, -1), (1, 1, 1), "uint32", 64),
    ((16, 6, 5, 4), (16, 3, 2, 3), (0, 4, 4, 2), (1, 1, 1, 1), "float16", 0),
    ((8, 5, 4, 3, 3), (4, 2, 3, 2, 2), (2, -1, 2, 2, 1), (1, 1, 1, 1, 1), "float64", 32),
    ((200, 30), (128, 9), (50, 10), (2, 3), "uint16", 128),
    ((64, 30), (32, 8), (40, 25), (1, 2), "uint32", 128),
]


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize(("extents", "box", "at", "steps", "dtype", "swizzle"), CASES, ids=str)
def test_boxes_of_every_rank_and_swizzle(
    extents: tuple[int, ...], box: tuple[int, ...], at: tuple[int, ...], steps: tuple[int, ...], dtype: str,
    swizzle: int, check: bool,
) -> None:  # fmt: skip
    rng = np.random.default_rng()
    size = np.dtype(dtype).itemsize
    pitch = -(-extents[0] * size // 16) * 16 // size  # lines begin at multiples of 16 bytes
    whole = rng.integers(0, 256, math.prod(extents[1:]) * pitch * size, dtype=np.uint8).view(dtype)
    whole = whole.reshape(*extents[:0:-1], pitch)
    array = gp.from_numpy(whole)
    written = gp.from_numpy(np.zeros_like(whole))
    strides = [pitch * size * math.prod(extents[1:axis]) for axis in range(1, len(extents))]
    maps = [
        tensor_map(one.device_ptr, size, extents, strides, box, steps=steps, swizzle=swizzle)
        for one in (array, written)
    ]
    want = boxed(whole[..., : extents[0]], at, box, steps, swizzle)
    tile = gp.from_numpy(np.full(want.size // 4, 0xA5A5A5A5, np.uint32))
    kernel = gp.jit(source(len(extents)), func="k", check=check)
    kernel.launcher(1, 32, shared_bytes=want.size + 1024)(
        *maps, gp.from_numpy(np.array(at, np.int32)), want.size, tile, 1
    )
    np.testing.assert_array_equal(tile.to_numpy().view(np.uint8), want)
    stored = np.zeros_like(whole)
    for offsets in itertools.product(*(range(0, one, step) for one, step in zip(box, steps, strict=True))):
        place = tuple(first + offset for first, offset in zip(at, offsets, strict=True))[::-1]
        if all(0 <= one < extent for one, extent in zip(place, extents[::-1], strict=True)):
            stored[place] = whole[place]
    assert written.to_numpy().tobytes() == stored.tobytes()


def test_floats_are_rounded_to_tf32_where_the_map_says_so() -> None:
    x = np.random.default_rng().uniform(-3, 3, 64).astype(np.float32)
    x[:4] = np.array([0x3F801000, 0x3F803000, 0x7F800000, 0x7FC01234], np.uint32).view(np.float32)  # middles
    array, tile = gp.from_numpy(x), gp.from_numpy(np.zeros(64, np.uint32))
    made = tensor_map(array.device_ptr, 4, (64,), (), (64,), to_tf32=True)
    gp.jit(source(1), func="k").launcher(1, 32, shared_bytes=2048)(
        made, made, gp.from_numpy(np.zeros(1, np.int32)), 256, tile, 0
    )
    bits = x.view(np.uint32).astype(np.uint64)
    want = np.where((bits & 0x7FFFFFFF) > 0x7F800000, bits, (bits + 0xFFF + (bits >> 13 & 1)) & ~np.uint64(0x1FFF))
    np.testing.assert_array_equal(tile.to_numpy().view(np.uint32), want.astype(np.uint32))


def test_what_is_no_map_and_an_array_too_short_are_told() -> None:
    array, at = gp.from_numpy(np.zeros(100, np.float32)), gp.from_numpy(np.zeros(1, np.int32))
    tile = gp.from_numpy(np.zeros(64, np.uint32))
    with pytest.raises(GPUError, match="no tensor map of the simulated device"):
        gp.jit(source(1), func="k").launcher(1, 32, shared_bytes=2048)(bytes(128), bytes(128), at, 256, tile, 0)
        tile.to_numpy()
    long = tensor_map(array.device_ptr, 4, (1000,), (), (64,))
    with pytest.raises(KernelCheckError, match="past the end"):
        gp.jit(source(1), func="k", check=True).launcher(1, 32, shared_bytes=2048)(
            long, long, gp.from_numpy(np.array([64], np.int32)), 256, tile, 0
        )
        tile.to_numpy()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"box": (300,)}, "1 to 256 elements"),
        ({"box": (3,)}, "a multiple of 16 bytes, not 12"),
        ({"swizzle": 48}, "0, 32, 64 or 128"),
        ({"swizzle": 32, "box": (16,)}, "at most 32 bytes"),
        ({"extents": (100, 2)}, "a stride less"),
        ({"address": 8}, "a multiple of 16"),
        ({"itemsize": 2, "to_tf32": True}, "of elements of 4 bytes"),
        ({"steps": (9,)}, "1 to 8"),
    ],
)
def test_a_map_that_no_device_takes_is_refused(given: dict[str, object], told: str) -> None:
    plain: dict[str, object] = {"address": 0, "itemsize": 4, "extents": (100,), "strides": (), "box": (32,)}
    with pytest.raises(ValueError, match=told):
        tensor_map(**{**plain, **given})  # type: ignore[arg-type]


SHARED_BY_ALL = """
struct __align__(64) Map { unsigned char bytes[128]; };
extern "C" __global__ void __cluster_dims__(4, 1, 1) k(const __grid_constant__ Map map, const uint4 *from, uint4 *out) {
  __shared__ __align__(1024) uint4 tile[32];
  __shared__ unsigned long long barrier;
  const unsigned to = (unsigned)__cvta_generic_to_shared(tile), full = (unsigned)__cvta_generic_to_shared(&barrier);
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(full) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(full), "r"(rank == 2 ? 256 : 512)
                 : "memory");
  }
  asm volatile("barrier.cluster.arrive.release.aligned;\\n barrier.cluster.wait.acquire.aligned;" ::: "memory");
  if (rank == 1 && threadIdx.x == 0) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
                 " [%0], [%1], 256, [%2], %3;" :: "r"(to + 256), "l"(from), "r"(full), "h"((unsigned short)0xb)
                 : "memory");
    asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
                 " [%0], [%1, {%4}], [%2], %3;"
                 :: "r"(to), "l"(&map), "r"(full), "h"((unsigned short)0xf), "r"(16) : "memory");
  }
  unsigned over;
  do {
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                 : "=r"(over) : "r"(full) : "memory");
  } while (!over);
  out[blockIdx.x * 32 + threadIdx.x] = threadIdx.x < 16 || rank != 2 ? tile[threadIdx.x] : make_uint4(1, 1, 1, 1);
  asm volatile("barrier.cluster.arrive.aligned;\\n barrier.cluster.wait.aligned;" ::: "memory");
}
"""


@pytest.mark.parametrize("check", [False, True])
def test_copies_to_several_blocks_of_a_cluster(check: bool) -> None:
    x = np.random.default_rng().integers(0, 1 << 32, (2, 128), dtype=np.uint32)
    boxes, plain = gp.from_numpy(x[0]), gp.from_numpy(x[1])
    out = gp.from_numpy(np.zeros((8, 128), np.uint32))
    made = tensor_map(boxes.device_ptr, 4, (128,), (), (64,))
    gp.jit(SHARED_BY_ALL, func="k", check=check).launcher(8, 32)(made, plain, out)
    want = np.concatenate([x[0, 16:80], x[1, :64]])
    for block, found in enumerate(out.to_numpy()):
        assert found[:64].tolist() == want[:64].tolist()
        assert found[64:].tolist() == (want[64:].tolist() if block % 4 != 2 else [1] * 64)
