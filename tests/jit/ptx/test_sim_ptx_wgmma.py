"""Inline PTX on the simulated device: products of a warp group, of tiles in every layout, against NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import ml_types
import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core.errors import CompileError, KernelCheckError
from pygpukit.jit.compile.compiler import compile_source
from pygpukit.jit.toolchain import nvrtc_candidates

DEPTH = {"f16": 16, "bf16": 16, "tf32": 8, "e4m3": 32, "e5m2": 32, "s8": 32, "u8": 32, "b1": 256}
B_AT = 1 << 15  # where b's tile begins
CODES = {0: 0, 128: 1, 64: 2, 32: 3}

KERNEL = """
extern "C" __global__ void k(const uint4 *image, int pieces, unsigned long long left, unsigned long long right,
                             const unsigned *rows, SUM *sums, int more) {
  extern __shared__ unsigned char memory[];
  const unsigned base = (unsigned)__cvta_generic_to_shared(memory), tile = (base + 1023) & ~1023u;
  uint4 *to = (uint4 *)(memory + (tile - base));
  for (int i = threadIdx.x; i < pieces; i += blockDim.x) to[i] = image[i];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __shared__ unsigned gone;
  if (threadIdx.x == 0) gone = 0;
  __syncthreads();
  const int t = threadIdx.x;
  SUM d[COUNT];
  for (int i = 0; i < COUNT; ++i) d[i] = sums[t * COUNT + i];
  unsigned long long a = left + ((tile & 0x3ffff) >> 4), b = right + ((tile & 0x3ffff) >> 4);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("{ .reg .pred add; setp.ne.b32 add, %MORE, 0;"
               " wgmma.mma_async.sync.aligned.NAME {SUMS}, LEFT, %RIGHT, addTAIL; }"
               : OUTPUTS : GIVEN, "l"(b), "r"(more));
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  LATER
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  AFTER
  for (int i = 0; i < COUNT; ++i) sums[t * COUNT + i] = d[i];
}
"""


@dataclass(frozen=True)
class Case:
    columns: int
    result: str
    left: str
    right: str
    swizzles: tuple[int, int] = (128, 128)
    turned: tuple[bool, bool] = (False, False)
    held: bool = False
    signs: tuple[int, int] = (1, 1)
    more: bool = True

    def source(self, later: str = "", after: str = "") -> str:
        count = self.columns // (4 if self.result == "f16" else 2)
        letter, kind = ("f", "float") if self.result == "f32" else ("r", "unsigned")
        given = 4 if self.held else 1
        tail = ""
        if self.result != "s32":
            tail = f", {self.signs[0]}, {self.signs[1]}"
            if DEPTH[self.left] == 16:
                tail += "".join(f", {int(one)}" for one in self.turned[self.held :])
        words = {
            "SUMS": ", ".join(f"%{i}" for i in range(count)),
            "OUTPUTS": ", ".join(f'"+{letter}"(d[{i}])' for i in range(count)),
            "LEFT": "{" + ", ".join(f"%{count + i}" for i in range(4)) + "}" if self.held else f"%{count}",
            "GIVEN": ", ".join(f'"r"(rows[t * 4 + {i}])' for i in range(4)) if self.held else '"l"(a)',
            "RIGHT": str(count + given), "MORE": str(count + given + 1), "COUNT": str(count), "SUM": kind,
            "TAIL": tail, "LATER": later, "AFTER": after,
            "NAME": f"m64n{self.columns}k{DEPTH[self.left]}.{self.result}.{self.left}.{self.right}"
            + (".and.popc" if self.left == "b1" else ""),
        }  # fmt: skip
        text = KERNEL
        for word in sorted(words, key=len, reverse=True):
            text = text.replace(word, words[word])
        return text


def numbers(kind: str, *shape: int) -> np.ndarray:
    """Small whole ones, so that every sum is exact."""
    if kind == "b1":
        return np.random.default_rng().integers(0, 2, shape).astype(np.float64)
    return np.random.default_rng().integers(0 if kind == "u8" else -3, 4, shape).astype(np.float64)


def codes(values: np.ndarray, kind: str) -> np.ndarray:
    """As shared memory has them; eight single bits are a byte."""
    return np.packbits(values != 0, axis=1, bitorder="little") if kind == "b1" else ml_types.bits(values, kind)


def laid_out(bits: np.ndarray, swizzle: int, turned: bool, at: int, image: np.ndarray) -> int:
    """Puts a matrix (lines, k) into the image of shared memory, as the manual draws the layouts. Its descriptor."""
    lines, depth = bits.shape
    size = bits.itemsize
    width = swizzle or 16
    if not turned:
        leading, stride = (128, 256) if not swizzle else (16, 8 * width)
    elif swizzle:
        leading, stride = 16 * width, 8 * width
    else:
        leading, stride = lines // 8 * 128, 128
    data = bits.view(np.uint8).reshape(lines, depth, size)
    for line in range(lines):
        for k in range(depth):
            if not turned:
                piece, inside = divmod(k * size, 16)
                place = line // 8 * stride + line % 8 * width + inside + piece * (16 if swizzle else leading)
            else:
                chunk, inside = divmod(line * size, width)
                place = (
                    k % 8 * width
                    + inside
                    + (chunk * leading + k // 8 * stride if swizzle else chunk * stride + k // 8 * leading)
                )
            place += at
            if swizzle:
                place ^= (place >> 7 & (swizzle // 16 - 1)) << 4
            image[place : place + size] = data[line, k]
    return at >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | CODES[swizzle] << 62


def fragments(matrix: np.ndarray, each: int) -> np.ndarray:
    """(threads, elements) of a 64 x n matrix whose registers hold `each` neighbours."""
    out = np.zeros((128, matrix.size // 128), matrix.dtype)
    for thread in range(128):
        lane = thread % 32
        for i in range(out.shape[1]):
            piece = i // each
            row = thread // 32 * 16 + lane // 4 + 8 * (piece % 2)
            out[thread, i] = matrix[row, lane % 4 * each + i % each + 4 * each * (piece // 2)]
    return out


def made(
    case: Case, check: bool = False, later: str = "", after: str = "", shared_bytes: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """What the kernel makes, as (threads, elements), and what it should. shared_bytes: 0 for what it needs."""
    depth = DEPTH[case.left]
    a, b = numbers(case.left, 64, depth), numbers(case.right, case.columns, depth)
    c = numbers("f32", 64, case.columns)
    image = np.random.default_rng().integers(0, 256, 3 << 15, dtype=np.uint8)
    a_bits, b_bits = codes(a, case.left), codes(b, case.right)
    left = laid_out(a_bits, case.swizzles[0], case.turned[0], 0, image)
    right = laid_out(b_bits, case.swizzles[1], case.turned[1], B_AT, image)
    rows = fragments(a_bits, 4 // a_bits.itemsize)
    plain = {"f32": np.float32, "f16": np.float16, "s32": np.int32}[case.result]
    sums = fragments(c.astype(plain), 2)
    words = np.ascontiguousarray(sums if case.result == "f32" else sums.view(np.uint32))
    source = case.source(later, after)
    if any(Path(path).is_file() for path in nvrtc_candidates()):
        compile_source(source, arch="sm_90a")
    kernel = gp.jit(source, func="k", check=check)
    out = gp.from_numpy(words)
    given = gp.from_numpy(np.ascontiguousarray(rows).view(np.uint32))
    launcher = kernel.launcher(1, 128, shared_bytes=shared_bytes or image.size + 1024)
    launcher(
        gp.from_numpy(image.view(np.uint32)),
        image.size // 16,
        np.uint64(left),
        np.uint64(right),
        given,
        out,
        int(case.more),
    )
    want = case.signs[0] * a @ (case.signs[1] * b.T) + case.more * c
    return out.to_numpy().view(plain), fragments(want, 2)


@pytest.mark.parametrize(
    "case",
    [
        *(Case(n, "f32", "bf16", "bf16", turned=(n % 16 == 0, n == 192)) for n in (8, 24, 64, 152, 192, 256)),
        *(Case(40, "f32", "f16", "f16", (s, t)) for s, t in ((0, 32), (32, 64), (64, 0), (128, 32))),
        *(Case(64, "f32", "f16", "f16", (s, t), (True, True)) for s, t in ((0, 128), (32, 0), (64, 32), (128, 64))),
        Case(72, "f16", "f16", "f16", (128, 64), (True, False), more=False),
        Case(128, "f32", "tf32", "tf32", (128, 32), held=True),
        Case(16, "f32", "tf32", "tf32", (64, 0), signs=(-1, 1)),
        Case(96, "f32", "bf16", "bf16", turned=(False, True), held=True, signs=(-1, -1)),
        Case(104, "f32", "e4m3", "e5m2", (32, 128), more=False),
        Case(56, "f16", "e5m2", "e4m3", held=True),
        Case(48, "s32", "s8", "u8", (0, 0)),
        Case(24, "s32", "u8", "s8", (64, 64), held=True, more=False),
        Case(256, "s32", "s8", "s8"),
        Case(48, "s32", "b1", "b1", (32, 128)),
        Case(8, "s32", "b1", "b1", held=True, more=False),
    ],
    ids=str,
)
def test_products_of_every_type_layout_and_width(case: Case) -> None:
    found, want = made(case)
    np.testing.assert_array_equal(found.astype(np.float64), want)


@pytest.mark.parametrize("turned", [False, True])
def test_checked_mode_has_nothing_to_say_of_a_right_one(turned: bool) -> None:
    found, want = made(Case(32, "f32", "f16", "f16", (128, 64), (turned, not turned)), check=True)
    np.testing.assert_array_equal(found.astype(np.float64), want)


@pytest.mark.parametrize("check", [False, True])
def test_a_product_leaves_all_shared_memory_to_the_kernel(check: bool) -> None:
    """What warps know of each other and barriers by number are in hardware on a device."""
    static = 4  # gone
    barrier = 'asm volatile("bar.sync 1, 128;" ::: "memory");'
    found, want = made(Case(16, "f32", "f16", "f16"), check, barrier, shared_bytes=(227 << 10) - static)
    np.testing.assert_array_equal(found.astype(np.float64), want)


LET_GO = """if (t % 32 == 0) {
    __threadfence();
    atomicAdd(&gone, 1);
  }
  if (t == 0) {
    while (atomicAdd(&gone, 0) < 4) __nanosleep(10);
    __threadfence();
    for (int i = 0; i < pieces; ++i) to[i] = make_uint4(0, 0, 0, 0);
  }
"""


def test_one_lane_of_each_warp_lets_go_of_the_tiles() -> None:
    """A warp's products are done when any of its lanes has waited for them."""
    found, want = made(Case(96, "f32", "tf32", "tf32"), check=True, after=LET_GO)
    np.testing.assert_array_equal(found.astype(np.float64), want)


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("thread", [0, 50, 127])
def test_one_warp_lets_go_of_the_tiles_for_its_group(thread: int, check: bool) -> None:
    """The products of a group's four warps are one: they are done when any of these has waited for them."""
    clear = f"if (t == {thread}) for (int i = 0; i < pieces; ++i) to[i] = make_uint4(0, 0, 0, 0);"
    found, want = made(Case(24, "f32", "bf16", "bf16"), check=check, after=clear)
    np.testing.assert_array_equal(found.astype(np.float64), want)


def test_a_warp_may_wait_after_another_has_let_go() -> None:
    """The others of a group must have begun a product, and not wait for it."""
    later = "if (t >= 32) while (atomicAdd(&gone, 0) == 0) __nanosleep(10);"
    found, want = made(Case(16, "f32", "f16", "f16"), later=later, after="if (t == 31) atomicAdd(&gone, 1);")
    np.testing.assert_array_equal(found.astype(np.float64), want)


@pytest.mark.parametrize("threads", [96, 160])
def test_a_group_of_fewer_than_four_warps_is_refused(threads: int) -> None:
    kernel = gp.jit(Case(8, "f32", "f16", "f16").source(), func="k")
    image, none = gp.from_numpy(np.zeros(3 << 13, np.uint32)), gp.from_numpy(np.zeros(1024, np.uint32))
    out = gp.from_numpy(np.zeros(1024, np.float32))
    with pytest.raises(Exception, match="a group is four warps, the last of the block has fewer"):
        kernel.launcher(1, threads, shared_bytes=100000)(image, 8, np.uint64(0), np.uint64(0), none, out, 1)
        out.to_numpy()


OVERWRITE = "if (t == %d) to[%d] = make_uint4(0, 0, 0, 0);"


def test_a_tile_that_is_filled_too_early() -> None:
    """Products are made when they are waited for: the last moment that a device may take."""
    case = Case(64, "f32", "bf16", "bf16", more=False)
    found, want = made(
        case, later="for (int i = t; i < pieces; i += 128) to[i] = make_uint4(0, 0, 0, 0);\n  __syncthreads();"
    )
    assert not found.any() and want.any()
    with pytest.raises(KernelCheckError, match="race"):
        made(case, check=True, later=OVERWRITE % (40, 0))
    with pytest.raises(KernelCheckError, match="race"):
        made(case, check=True, later=OVERWRITE % (127, B_AT // 16 + 5 * 8 + 5))


def test_batches_are_waited_for_in_their_order() -> None:
    source = Case(8, "f32", "f16", "f16").source()
    once = source[source.index('  asm volatile("{ .reg') : source.index('  asm volatile("wgmma.wait')]
    twice = source.replace(once, once + "  to[0] = to[0]; " + once.replace("d[", "e[")).replace(
        "SUM", "float").replace("wait_group.sync.aligned 0", "wait_group.sync.aligned 1")  # fmt: skip
    twice = twice.replace("  float d[4];", "  float d[4], e[4] = {};")
    kernel = gp.jit(twice, func="k")
    image = np.zeros(3 << 15, np.uint8)
    a, b = numbers("f16", 64, 16), numbers("f16", 8, 16)
    left = laid_out(a.astype(np.float16), 128, False, 0, image)
    right = laid_out(b.astype(np.float16), 128, False, B_AT, image)
    out = gp.from_numpy(np.zeros((128, 4), np.float32))
    rows = gp.from_numpy(np.zeros(512, np.uint32))
    kernel.launcher(1, 128, shared_bytes=image.size + 1024)(
        gp.from_numpy(image.view(np.uint32)), image.size // 16, np.uint64(left), np.uint64(right), rows, out, 1
    )
    np.testing.assert_array_equal(out.to_numpy().astype(np.float64), fragments(a @ b.T, 2))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("m64n8k16.f32.f16.f16", "m64n12k16.f32.f16.f16", "m64n12k16.f32.f16.f16 cannot run"),
        ("m64n8k16.f32.f16.f16", "m64n8k8.f32.f16.f16", "cannot run"),
        ("m64n8k16.f32.f16.f16", "m64n8k256.s32.b1.b1.xor.popc", "cannot run"),
        ("m64n8k16.f32.f16.f16", "m64n8k16.f32.f16.bf16", "cannot run"),
        ("m64n8k16.f32.f16.f16", "m64n16k16.f32.f16.f16", "takes 8 registers of sums, 4 are given"),
        (", 1, 1, 0, 0", ", 2, 1, 0, 0", "a scale is 1 or -1, 2 is given"),
        ('"+f"(d[0])', '"=f"(d[0])', "read and written"),
    ],
)
def test_what_is_no_product_is_refused_by_name(old: str, new: str, told: str) -> None:
    source = Case(8, "f32", "f16", "f16").source()
    assert old in source
    with pytest.raises(CompileError, match=told):
        gp.jit(source.replace(old, new), func="k")


def test_sums_in_another_order_are_refused() -> None:
    source = Case(8, "f32", "f16", "f16").source().replace('"+f"(d[0]), "+f"(d[1])', '"+f"(d[1]), "+f"(d[0])')
    kernel = gp.jit(source, func="k")
    image, none = gp.from_numpy(np.zeros(3 << 13, np.uint32)), gp.from_numpy(np.zeros(512, np.uint32))
    out = gp.from_numpy(np.zeros(512, np.float32))
    with pytest.raises(Exception, match="not the elements of one array"):
        kernel.launcher(1, 128, shared_bytes=100000)(image, 8, np.uint64(0), np.uint64(0), none, out, 1)
        out.to_numpy()
