"""Inline PTX on the simulated device: what threads do together: shuffles, votes, matches, reductions, atomics."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_help import DTYPES, TYPES, run

import pygpukit as gp
from pygpukit.core.errors import KernelCheckError

ALL = "0xffffffff"


def source_lane(mode: str, lane: int, b: int, limits: int) -> tuple[int, bool]:
    """As the manual has it."""
    segment, clamp = limits >> 8 & 31, limits & 31
    first = lane & segment
    last = first | (clamp & ~segment)
    source = {"up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": first | (b & ~segment)}[mode]
    inside = source >= last if mode == "up" else source <= last
    return (source if inside else lane), inside


def test_shuffles_with_segments_and_clamps() -> None:
    x = np.arange(64, dtype="u4") * 7 + 1
    cases = [
        (mode, b, limits)
        for mode in ("up", "down", "bfly", "idx")
        for b in (0, 1, 5, 16, 31)
        for limits in (0 if mode == "up" else 31, 0x1800 if mode == "up" else 0x181F, 0x1C07, 12)
    ]
    text = "{{ .reg .pred p; shfl.sync.{}.b32 %0|p, %2, {}, {}, -1; selp.u32 %1, 1, 0, p; }}"
    got = run("rr:r", [text.format(*case) for case in cases], x)
    for (mode, b, limits), (values, inside) in zip(cases, got, strict=True):
        want = [source_lane(mode, lane, b, limits) for lane in range(32)]
        assert inside.tolist() == [int(one) for _, one in want] * 2, (mode, b, limits)
        assert values.tolist() == [int(x[block * 32 + lane]) for block in (0, 1) for lane, _ in want]


def test_votes_matches_and_reductions() -> None:
    rng = np.random.default_rng(3)
    x = rng.integers(0, 5, 96, dtype="u4")
    x[32:64] = 3
    warps = x.reshape(3, 32)

    def told(text: str) -> str:
        return f"{{ .reg .pred p, q; setp.gt.u32 q, %1, 2; {text} }}"

    def all_lanes(values: list[int]) -> list[int]:
        return [value & 0xFFFFFFFF for value in values for _ in range(32)]

    ballot = [sum(1 << lane for lane in range(32) if warp[lane] > 2) for warp in warps]
    yes = "selp.u32 %0, 1, 0, p;"
    same = [[sum(1 << i for i in range(32) if warp[i] == warp[lane]) for lane in range(32)] for warp in warps]
    cases = {
        told(f"vote.sync.ballot.b32 %0, q, {ALL};"): all_lanes(ballot),
        told(f"vote.sync.ballot.b32 %0, !q, {ALL};"): all_lanes([~one for one in ballot]),
        told(f"vote.sync.any.pred p, q, {ALL}; {yes}"): all_lanes([one != 0 for one in ballot]),
        told(f"vote.sync.all.pred p, q, {ALL}; {yes}"): all_lanes([one == 0xFFFFFFFF for one in ballot]),
        told(f"vote.sync.uni.pred p, q, {ALL}; {yes}"): all_lanes([one in (0, 0xFFFFFFFF) for one in ballot]),
        f"match.any.sync.b32 %0, %1, {ALL};": [one for warp in same for one in warp],
        told(f"match.all.sync.b32 %0|p, %1, {ALL}; @!p mov.u32 %0, 9;"): all_lanes([9, 0xFFFFFFFF, 9]),
        f"redux.sync.add.u32 %0, %1, {ALL};": all_lanes([int(warp.sum()) for warp in warps]),
        f"redux.sync.max.s32 %0, %1, {ALL};": all_lanes([int(warp.max()) for warp in warps]),
        f"redux.sync.xor.b32 %0, %1, {ALL};": all_lanes([int(np.bitwise_xor.reduce(warp)) for warp in warps]),
        "activemask.b32 %0;": all_lanes([-1] * 3),
        told(f"elect.sync %0|p, {ALL}; @p add.u32 %0, %0, 50;"): [50 if lane == 0 else 0 for lane in range(32)] * 3,
    }
    for (text, want), row in zip(cases.items(), run("r:r", list(cases), x), strict=True):
        assert row.tolist() == [int(one) for one in want], text
    wide = x.astype("u8") << np.uint64(33)
    (row,) = run("r:l", [f"match.any.sync.b64 %0, %1, {ALL};"], wide)
    assert row.tolist() == [one for warp in same for one in warp]


@pytest.mark.parametrize(
    ("letter", "kind", "how"),
    [("r", "u32", "add"), ("r", "s32", "min"), ("r", "u32", "max"), ("l", "u64", "add"), ("l", "s64", "max"),
     ("r", "b32", "and"), ("l", "b64", "or"), ("r", "b32", "xor"), ("f", "f32", "add"), ("d", "f64", "add")],
)  # fmt: skip
def test_reductions_of_memory(letter: str, kind: str, how: str) -> None:
    rng = np.random.default_rng(4)
    dtype = DTYPES[letter]
    x = rng.integers(0, 1 << 31, 300).astype(dtype) if letter in "rl" else rng.integers(0, 1000, 300).astype(dtype)
    start = 0xFFFF if how == "and" else 3
    source = f"""extern "C" __global__ void k(const {TYPES[letter]} *in, {TYPES[letter]} *out, {TYPES[letter]} *old) {{
  __shared__ {TYPES[letter]} kept;
  const int i = blockIdx.x * 100 + threadIdx.x;
  if (threadIdx.x == 0) kept = out[2];
  __syncthreads();
  {TYPES[letter]} before;
  asm volatile("red.global.{how}.{kind} [%0], %1;" :: "l"(out), "{letter}"(in[i]) : "memory");
  asm volatile("atom.acq_rel.gpu.global.{how}.{kind} %0, [%1+{x.itemsize}], %2;"
               : "={letter}"(before) : "l"(out), "{letter}"(in[i]) : "memory");
  asm volatile("atom.shared.{how}.{kind} _, [%0], %1;"
               :: "r"((unsigned)__cvta_generic_to_shared(&kept)), "{letter}"(in[i]) : "memory");
  old[i] = before;
  __syncthreads();
  if (threadIdx.x == 0 && blockIdx.x == 1) out[2] = kept;
}}"""
    out, old = gp.from_numpy(np.full(3, start, dtype)), gp.from_numpy(np.zeros(300, dtype))
    gp.jit(source, func="k")[3, 100](gp.from_numpy(x), out, old)
    if kind[0] == "s":
        x = x.view(f"i{x.itemsize}")
    change = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
              "xor": np.bitwise_xor}[how]  # fmt: skip
    want = change.reduce(x, initial=x.dtype.type(start), dtype=x.dtype)
    part = change.reduce(x[100:200], initial=x.dtype.type(start), dtype=x.dtype)
    assert out.to_numpy().view(x.dtype).tolist() == [want, want, part]
    assert np.sort(old.to_numpy())[0 if how in ("add", "max", "or") else -1] == start or how in ("xor", "and", "min")


def test_exchanges_and_counters() -> None:
    source = """extern "C" __global__ void k(unsigned *p, unsigned long long *q, unsigned short *h, unsigned *out) {
  unsigned a, b, c, d; unsigned long long e; unsigned short f;
  asm volatile("atom.exch.b32 %0, [%1], 9;" : "=r"(a) : "l"(p) : "memory");
  asm volatile("atom.global.cas.b32 %0, [%1+4], 6, 60;" : "=r"(b) : "l"(p) : "memory");
  asm volatile("atom.inc.u32 %0, [%1+8], 7;" : "=r"(c) : "l"(p) : "memory");
  asm volatile("atom.dec.u32 %0, [%1+12], 7;" : "=r"(d) : "l"(p) : "memory");
  asm volatile("atom.cas.b64 %0, [%1], %2, %3;" : "=l"(e) : "l"(q), "l"(5ull << 40), "l"(1ull) : "memory");
  asm volatile("atom.cas.b16 %0, [%1], %2, %3;" : "=h"(f) : "l"(h), "h"((short)3), "h"((short)4) : "memory");
  out[0] = a, out[1] = b, out[2] = c, out[3] = d, out[4] = (unsigned)(e >> 40), out[5] = f;
}"""
    p, q = gp.from_numpy(np.array([5, 6, 7, 0], "u4")), gp.from_numpy(np.array([5 << 40], "u8"))
    h, out = gp.from_numpy(np.array([3, 3], "u2")), gp.from_numpy(np.zeros(6, "u4"))
    gp.jit(source, func="k")[1, 1](p, q, h, out)
    assert out.to_numpy().tolist() == [5, 6, 7, 0, 5, 3] and p.to_numpy().tolist() == [9, 60, 0, 7]
    assert q.to_numpy().tolist() == [1] and h.to_numpy().tolist() == [4, 3]


def test_small_floats_and_vectors_add() -> None:
    source = """extern "C" __global__ void k(unsigned *pair, unsigned short *one, float *four) {
  asm volatile("red.global.add.noftz.f16x2 [%0], %1;" :: "l"(pair), "r"(0x40003C00) : "memory");
  asm volatile("red.global.add.noftz.bf16x2 [%0+4], %1;" :: "l"(pair), "r"(0x40003F80) : "memory");
  asm volatile("red.global.add.noftz.f16 [%0], %1;" :: "l"(one), "h"((short)0x3C00) : "memory");
  asm volatile("red.global.v4.f32.add [%0], {%1, %1, %1, %2};" :: "l"(four), "f"(1.0f), "f"(2.0f) : "memory");
}""".replace("v4.f32.add", "add.v4.f32")
    pair, one = gp.from_numpy(np.zeros(2, "u4")), gp.from_numpy(np.zeros(2, "u2"))
    four = gp.from_numpy(np.zeros(4, "f4"))
    gp.jit(source, func="k")[1, 40](pair, one, four)
    assert pair.to_numpy()[:1].view("f2").tolist() == [40, 80] and one.to_numpy().view("f2").tolist() == [40, 0]
    halves = (pair.to_numpy()[1:].view("u2").astype("u4") << 16).view("f4")
    assert halves.tolist() == [40, 80] and four.to_numpy().tolist() == [40, 40, 40, 80]


def test_atomics_are_no_race_and_plain_accesses_are() -> None:
    source = """extern "C" __global__ void k(unsigned *sum) {
  asm volatile("red.global.add.u32 [%0], 1;" :: "l"(sum) : "memory");
}"""
    total = gp.from_numpy(np.zeros(1, "u4"))
    gp.jit(source, func="k", check=True)[3, 64](total)
    assert total.to_numpy()[0] == 192
    plain = source.replace(
        'asm volatile("red.global.add.u32 [%0], 1;" ::',
        'asm volatile("{ .reg .b32 x; ld.global.u32 x, [%0]; add.u32 x, x, 1; st.global.u32 [%0], x; }" ::',
    )
    with pytest.raises(KernelCheckError, match="race"):
        gp.jit(plain, func="k", check=True)[3, 64](total)
        gp.synchronize()
