"""Inline PTX on the simulated device: moves, kinds of memory, loads and stores, special registers, branches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from ptx_help import run

import pygpukit as gp
from pygpukit.core.errors import CompileError, KernelCheckError
from pygpukit.jit.compile.compiler import compile_source
from pygpukit.jit.compile.nvrtc import get_nvrtc_version


def launch(
    source: str, grid: object, block: object, *arguments: object, check: bool = False, **options: object
) -> None:
    gp.jit(source, func="k", check=check, **options)[grid, block](*arguments)
    gp.synchronize()


def test_moves_take_apart_and_put_together() -> None:
    rng = np.random.default_rng(1)
    a = rng.integers(0, 1 << 64, 100, dtype="u8")
    forms = {
        "{ .reg .b32 x, y; mov.b64 {x, y}, %1; mov.b64 %0, {y, x}; }": a >> 32 | a << 32,
        "{ .reg .b16 a, b, c, d; mov.b64 {a, b, c, d}, %1; mov.b64 %0, {d, c, b, a}; }": a.view("u2")
        .reshape(-1, 4)[:, ::-1]
        .copy()
        .view("u8")
        .ravel(),
        "{ .reg .f64 x; mov.b64 x, %1; mov.b64 %0, x; }": a,
        "mov.u64 %0, 0x123456789abcdef0;": a * 0 + 0x123456789ABCDEF0,
        "mov.s64 %0, -3;": a * 0 - np.uint64(3),
        "{ .reg .v2 .b32 v; mov.b64 {v.x, v.y}, %1; mov.b64 %0, {v.y, v.x}; }": a >> 32 | a << 32,
    }
    for (text, want), row in zip(forms.items(), run("l:l", list(forms), a), strict=True):
        assert np.array_equal(row, want), text
    wide = "{ .reg .b128 q; mov.b128 q, {%1, %2}; mov.b128 {%0, _}, q; }"
    assert np.array_equal(run("l:ll", [wide], a, a[::-1].copy())[0], a)
    floats = {
        "mov.f32 %0, 0f3F800000;": 1.0,
        "mov.f32 %0, 2.5;": 2.5,
        "mov.f32 %0, -1e3;": -1000,
        "mov.f32 %0, 0d4008000000000000;": 3,
    }
    for (text, want), row in zip(floats.items(), run("f:l", list(floats), a, arch=""), strict=True):
        assert (row == want).all(), text


def test_special_registers() -> None:
    source = """
#define READ(name) ({ unsigned x; asm volatile("mov.u32 %0, %%" name ";" : "=r"(x)); x; })
__device__ unsigned tid(int axis) {
  unsigned x;
  if (axis == 0) asm("mov.u32 %0, %%tid.x;" : "=r"(x));
  else if (axis == 1) asm("mov.u32 %0, %%tid.y;" : "=r"(x));
  else asm("mov.u32 %0, %%tid.z;" : "=r"(x));
  return x;
}
extern "C" __global__ void k(unsigned *out) {
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  unsigned values[12];
  asm("mov.u32 %0, %%ntid.x;" : "=r"(values[0]));
  asm("mov.u32 %0, %%ctaid.y;" : "=r"(values[1]));
  asm("mov.u32 %0, %%nctaid.x;" : "=r"(values[2]));
  asm("mov.u32 %0, %%laneid;" : "=r"(values[3]));
  asm("mov.u32 %0, %%warpid;" : "=r"(values[4]));
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(values[5]));
  asm("mov.u32 %0, %%lanemask_ge;" : "=r"(values[6]));
  asm("mov.u32 %0, WARP_SZ;" : "=r"(values[7]));
  values[8] = tid(0), values[9] = tid(1), values[10] = tid(2);
  unsigned long long first, second;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(first));
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(second));
  unsigned sm, many;
  asm("mov.u32 %0, %%smid;" : "=r"(sm));
  asm("mov.u32 %0, %%lanemask_eq;" : "=r"(many));
  values[11] = (first != 0 && second != 0 && sm < 1000u) * many;
  const unsigned block = blockIdx.y * gridDim.x + blockIdx.x;
  for (int i = 0; i < 12; ++i) out[(block * 90 + thread) * 12 + i] = values[i];
}"""
    out = gp.from_numpy(np.zeros((6, 90, 12), "u4"))
    launch(source, (3, 2), (5, 6, 3), out)
    got = out.to_numpy()
    thread = np.arange(90)
    lane = thread % 32
    for block in range(6):
        want = np.stack([
            thread * 0 + 5, thread * 0 + block // 3, thread * 0 + 3, lane, thread // 32, (1 << lane) - 1,
            (1 << 32) - (1 << lane), thread * 0 + 32, thread % 5, thread // 5 % 6, thread // 30, 1 << lane,
        ], 1)  # fmt: skip
        assert np.array_equal(got[block], want)


@pytest.mark.parametrize("check", [False, True])
def test_loads_and_stores_of_every_width(check: bool) -> None:
    source = """
__constant__ unsigned table[4] = {3, 5, 7, 11};
typedef unsigned long long Wide;
extern "C" __global__ void k(const unsigned *in, unsigned *out, const Wide *wide, Wide *copy) {
  __shared__ __align__(16) unsigned tile[4 * 32];
  extern __shared__ __align__(16) unsigned char more[];
  const int i = threadIdx.x;
  unsigned a, b, c, d, e, f, g;
  asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(in + 4 * i));
  const unsigned at = (unsigned)__cvta_generic_to_shared(tile + 4 * i);
  asm volatile("st.shared.v2.u32 [%0], {%1, %2};" :: "r"(at), "r"(a), "r"(b) : "memory");
  asm volatile("st.shared.v2.b32 [%0+8], {%1, %2};" :: "r"(at), "r"(c), "r"(d) : "memory");
  const unsigned dyn = (unsigned)__cvta_generic_to_shared(more);
  asm volatile("st.volatile.shared.u8 [%0], %1;" :: "r"(dyn + i), "r"(a) : "memory");
  __syncthreads();
  const unsigned next = (unsigned)__cvta_generic_to_shared(tile) + 16 * (31 - i);
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(e) : "r"(next) : "memory");
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(next));
  asm volatile("ld.shared.u8 %0, [%1+0];" : "=r"(f) : "r"(dyn + 31 - i));
  asm volatile("ld.const.u32 %0, [%1];" : "=r"(g) : "l"(table + i % 4));
  asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" :: "l"(out + 8 * i), "r"(a), "r"(b), "r"(c), "r"(d));
  asm volatile("st.relaxed.gpu.global.u32 [%0+16], %1;" :: "l"(out + 8 * i), "r"(e) : "memory");
  asm volatile("st.release.gpu.global.u32 [%0+20], %1;" :: "l"(out + 8 * i), "r"(f) : "memory");
  asm volatile("st.u32 [%0+24], %1;" :: "l"(out + 8 * i), "r"(g) : "memory");
  asm volatile("st.u32 [%0], %1;" :: "l"(out + 8 * i + 7), "n"(sizeof(float) * 2) : "memory");
  unsigned long long x, y;
  asm volatile("prefetch.global.L2 [%0];" :: "l"(wide));
  asm volatile("ld.global.L1::no_allocate.L2::128B.v2.u64 {%0, %1}, [%2];" : "=l"(x), "=l"(y) : "l"(wide + 2 * i));
  asm volatile("st.global.v2.b64 [%0], {%2, %1};" :: "l"(copy + 2 * i), "l"(x), "l"(y) : "memory");
}"""
    source = source.replace(
        '\\n\\tld.shared.u32 %2, [%1 + 12];" : "=r"(e) : "r"(next), "r"(0)', '" : "=r"(e) : "r"(next)'
    )
    rng = np.random.default_rng(2)
    values = rng.integers(0, 1 << 32, (32, 4), dtype="u4")
    wide = rng.integers(0, 1 << 64, (32, 2), dtype="u8")
    out, copy = gp.from_numpy(np.zeros((32, 8), "u4")), gp.from_numpy(np.zeros((32, 2), "u8"))
    kernel = gp.jit(source, func="k", check=check)
    kernel.launcher(1, 32, shared_bytes=64)(gp.from_numpy(values), out, gp.from_numpy(wide), copy)
    want = np.empty((32, 8), "u4")
    want[:, :4] = values[::-1]
    want[:, 4] = values[::-1, 0]
    want[:, 5] = values[::-1, 0] & 255
    want[:, 6] = np.array([3, 5, 7, 11])[np.arange(32) % 4]
    want[:, 7] = 8
    assert np.array_equal(out.to_numpy(), want) and np.array_equal(copy.to_numpy(), wide[:, ::-1])


def test_narrow_loads_extend() -> None:
    x = np.arange(256, dtype="u8") * 0x8101
    source = """
extern "C" __global__ void k(const unsigned long long *in, unsigned long long *out) {
  const int i = threadIdx.x;
  unsigned a, b; unsigned long long c, d; unsigned short e;
  asm("ld.global.s8 %0, [%1];" : "=r"(a) : "l"(in + i));
  asm("ld.global.u16 %0, [%1];" : "=r"(b) : "l"(in + i));
  asm("ld.global.s16 %0, [%1];" : "=l"(c) : "l"(in + i));
  asm("ld.global.u8 %0, [%1];" : "=l"(d) : "l"(in + i));
  asm("ld.global.u8 %0, [%1];" : "=h"(e) : "l"(in + i));
  asm volatile("st.global.u16 [%0], %1;" :: "l"(out + 5 * i), "r"(a));
  out[5 * i + 1] = a, out[5 * i + 2] = b + ((unsigned long long)e << 32), out[5 * i + 3] = c, out[5 * i + 4] = d;
}"""
    out = gp.from_numpy(np.zeros((256, 5), "u8"))
    launch(source, 1, 256, gp.from_numpy(x), out)
    byte = x.astype("i1").astype("i4").view("u4")
    got = out.to_numpy()
    assert np.array_equal(got[:, 0], byte & 0xFFFF) and np.array_equal(got[:, 1], byte)
    assert np.array_equal(got[:, 2], (x & 0xFFFF) + ((x & 255) << 32))
    assert np.array_equal(got[:, 3], x.astype("i2").astype("i8").view("u8")) and np.array_equal(got[:, 4], x & 255)


def test_kinds_of_memory() -> None:
    source = """
extern "C" __global__ void k(unsigned *out) {
  __shared__ unsigned tile[32];
  extern __shared__ unsigned more[];
  unsigned own[2] = {1, 2};
  unsigned volatile *kept = own;
  const void *const places[4] = {out, tile + 3, more + 1, (const void *)kept};
  for (int i = 0; i < 4; ++i) {
    unsigned shared, global, local;
    asm("{ .reg .pred p; isspacep.shared p, %1; selp.u32 %0, 1, 0, p; }" : "=r"(shared) : "l"(places[i]));
    asm("{ .reg .pred p; isspacep.global p, %1; selp.u32 %0, 1, 0, p; }" : "=r"(global) : "l"(places[i]));
    asm("{ .reg .pred p; isspacep.local p, %1; selp.u32 %0, 1, 0, p; }" : "=r"(local) : "l"(places[i]));
    out[i] = shared | global << 1 | local << 2;
  }
  unsigned long long shared, back, address;
  asm("cvta.to.shared.u64 %0, %1;" : "=l"(shared) : "l"(tile + 5));
  asm("cvta.shared.u64 %0, %1;" : "=l"(back) : "l"(shared));
  asm("cvta.to.global.u64 %0, %1;" : "=l"(address) : "l"(out + 9));
  tile[5] = 77;
  out[4] = *(unsigned *)back;
  out[5] = address == (unsigned long long)(out + 9);
  unsigned low = (unsigned)(unsigned long long)(tile + 5), value;
  asm("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(low));
  asm("ld.shared.u32 %0, [%1];" : "=r"(value) : "l"(shared));
  out[6] = value;
}"""
    out = gp.from_numpy(np.zeros(7, "u4"))
    gp.jit(source, func="k").launcher(1, 1, shared_bytes=64)(out)
    assert out.to_numpy().tolist() == [2, 1, 1, 4, 77, 1, 77]


def test_branches_labels_and_predicates() -> None:
    n = np.arange(50, dtype="u4")
    loop = """{
      .reg .pred done; .reg .b32 left, sum;
      mov.b32 sum, 0; mov.b32 left, %1;
    again: setp.eq.u32 done, left, 0;
      @done bra end;
      add.u32 sum, sum, left; sub.u32 left, left, 1;
      bra.uni again;
    end: mov.b32 %0, sum;
    }""".replace("\n", " ")
    nested = "{ .reg .b32 x; mov.b32 x, %1; { .reg .b32 x; mov.b32 x, 5; add.u32 %0, x, %1; } add.u32 %0, %0, x; }"
    guarded = "{ .reg .pred p; setp.gt.u32 p, %1, 20; mov.u32 %0, 1; @p mov.u32 %0, 2; @!p add.u32 %0, %0, 5; }"
    many = "{ .reg .b32 %%r<3>; mov.b32 %%r0, %1; add.u32 %%r1, %%r0, 1; mul.lo.u32 %%r2, %%r1, 3; mov.b32 %0, %%r2; }"
    sums, twice, chosen, three = run("r:r", [loop, nested, guarded, many], n)
    assert np.array_equal(sums, n * (n + 1) // 2) and np.array_equal(twice, 2 * n + 5)
    assert np.array_equal(chosen, np.where(n > 20, 2, 6)) and np.array_equal(three, 3 * n + 3)


def test_operands_of_every_kind() -> None:
    source = """
template <class T> __device__ T tripled(T x) {
  T y;
  asm("mul.lo.u32 %[out], %[in], %[by];" : [out] "=r"(y) : [in] "r"(x), [by] "n"(sizeof(T) - 1));
  return y;
}
struct Pair { unsigned x, y; };
enum Colour { red = 7 };
extern "C" __global__ void k(unsigned *out, float *f) {
  Pair pair = {5, 6};
  const volatile unsigned seen = 9;
  bool flag = true;
  asm volatile ("add.u32 %0, %1, %2;" : "=r"(pair.x) : "r"(pair.y), "r"(red));
  asm __volatile__("add.u32 %0, %0, %1;" : "+r"(out[0]) : "r"(seen));
  out[1] = tripled(pair.x) + tripled<int>(-1);
  asm("{\\n\\t" "add.u32 %0, %1, "  /* in pieces */ "%2;\\n\\t}"
      : "=r"(out[2]) : "r"((int)flag), "r"(pair.x > 3 ? 4 : 5));
  asm("mov.b32 %0, %1;" : "=f"(f[0]) : "r"(0x40490fdb));
  asm("mov.b32 %0, %1;" : "=r"(out[3]) : "f"(f[0]));
  asm("add.u32 %0, %1, 1;" : "=r"(out[4]) : "r"(out[4]));
  asm("add.u32 %0, %1, 1;" : "=r"(out[5]) : "r"(')' + "ab)"[1]));
  int n = -1;
  asm(R"(shr.s32 %0, %1, 4;)" : "=r"(n) : "r"(n * 32));
  out[6] = n;
  if (flag) asm("mov.u32 %0, 3;" : "=r"(out[7])); else asm("mov.u32 %0, 4;" : "=r"(out[7]));
  char c = 'x'; short s = -2;
  asm("{ .reg .b16 t; mov.b16 t, %1; cvt.s32.s16 %0, t; }" : "=r"(out[8]) : "h"(s));
  asm("" : "+r"(n) :: "memory");
  asm volatile("// nothing to do" ::: "memory");
}"""
    out, f = gp.from_numpy(np.arange(9, dtype="u4") * 100), gp.from_numpy(np.zeros(1, "f4"))
    launch(source, 1, 1, out, f)
    want = [9, 36, 5, 0x40490FDB, 401, ord(")") + ord("b") + 1, (1 << 32) - 2, 3, (1 << 32) - 2]
    assert out.to_numpy().tolist() == [want[0], 39 - 3, *want[2:]] and f.to_numpy()[0] == np.float32(np.pi)
    if get_nvrtc_version() is not None:
        names = '[out] "=r"(y) : [in] "r"(x), [by]'  # which NVRTC 13.5 does not take, and clang does
        compile_source(
            source.replace(names, '"=r"(y) : "r"(x), ').replace("%[out], %[in], %[by]", "%0, %1, %2"), arch="sm_90a"
        )


def test_statements_that_macros_and_headers_make(tmp_path: Path) -> None:
    source = """
#include <cuda_fp16.h>
#define TEXT(name, type) #name "." #type " %0, %1, %2;"
#define OPERATION(name, type, letter, T)                          \\
  __device__ T name##_##type(T a, T b) {                          \\
    T result;                                                     \\
    asm(TEXT(name, type) : "=" #letter(result) : #letter(a), #letter(b)); \\
    return result;                                                \\
  }
OPERATION(add, u32, r, unsigned)
OPERATION(sub, s32, r, int)
OPERATION(max, f32, f, float)
#define FENCE asm volatile("membar.gl;" ::: "memory")
#define NOTHING asm volatile("" ::: "memory")
#define ON "and"
extern "C" __global__ void k(unsigned *out) {
  FENCE; NOTHING;
  out[0] = add_u32(3, 4);
  out[1] = sub_s32(3, 4);
  out[2] = (unsigned)max_f32(2.5f, -1.0f) + (unsigned)(float)__float2half(3.0f);
  asm(ON ".b32 %0, %1, %2;" : "=r"(out[3]) : "r"(12), "r"(10));
}"""
    out = gp.from_numpy(np.zeros(4, "u4"))
    launch(source, 1, 1, out)
    assert out.to_numpy().tolist() == [7, (1 << 32) - 1, 5, 8]
    (tmp_path / "mine.cuh").write_text(
        '__device__ unsigned twice(unsigned x) { asm("shl.b32 %0, %0, 1;" : "+r"(x)); return x; }'
    )
    user = '#include "mine.cuh"\nextern "C" __global__ void k(unsigned *out) { out[0] = twice(21); }'
    launch(user, 1, 1, out, options=[f"-I{tmp_path}"])
    assert out.to_numpy()[0] == 42
    launch('extern "C" __global__ void k(unsigned *out) { GET(out[0]); }', 1, 1, out,
           defines={"GET(x)": 'asm("mov.u32 %0, 11;" : "=r"(x))'})  # fmt: skip
    assert out.to_numpy()[0] == 11


# What each is told of, with the place that is marked.
WRONG = {
    'asm("|bfx.u32 %0, %0, 1;" : "+r"(x));': "bfx.u32 cannot run on the simulated device",
    'asm("|add.q32 %0, %0, 1;" : "+r"(x));': "add.q32 cannot run",
    'asm("|add.u32.foo %0, %0, 1;" : "+r"(x));': "cannot run",
    'asm("|add.u32 %0, %0;" : "+r"(x));': "takes 3 operands, 2 are given",
    'asm("add.u32 %0, %0, |%5;" : "+r"(x));': "%5 is no operand, there are 1",
    'asm("add.u32 %0, |%w1, 1;" : "+r"(x));': "'%w' names no operand; a percent sign of PTX is %%",
    'asm("add.u32 %0, |%(tid), 1;" : "+r"(x));': "'%(' names no operand; a percent sign of PTX is %%",
    'asm("add.u32 %0, %0, |y;" : "+r"(x));': "y is declared nowhere",
    'asm("add.u64 %0, |%0, 1;" : "+r"(x));': "has 32 bits, and the instruction takes .u64",
    'asm("add.u32 %0, %0, |%%envreg3;" : "+r"(x));': "%envreg3 is no register",
    'asm("add.u32 %0, %0, 1" : |"+x"(x));': "unknown constraint '+x'; CUDA C++ has h, r, l, q, f, d, b",
    'asm("add.u32 %0, %1, 1" : "+r"(x) : |"0"(x));': "unknown constraint '0'",
    'asm("bra |L;");': "there is no label L",
    'asm("add.u32 |%0, %1, 1;" :: "r"(x), "r"(x));': "written, but it is no output",
    'asm("{ add.u32 %0, %0, 1|;" : "+r"(x));': "expected '}'",
    'asm |goto("bra L;" :::: out);': "asm goto",
    'asm("setp.eq.u32 |%0, %0, 1;" : "+r"(x));': "takes .pred",
    'asm("|call f;");': "call cannot run",
    'asm("ld.global.u32 %0, [|%0];" : "+r"(x));': "64 bits, the operand has 32",
    '|asm(x);': "expected a string literal",
    'asm("|int3");': "int3 cannot run",
    'asm("add.u32 %0, %0, |2.5;" : "+r"(x));': "the number 2.5 stands where .u32 is expected",
    'asm("|.shared .b32 y; add.u32 %0, %0, 1;" : "+r"(x));': "the directive .shared in an asm statement",
    'asm("|mov.u32 %0, {%0, 1};" : "+r"(x));': "mov.u32 cannot run",
    'asm("|tcgen05.fence.cta_group::%0.go;" :: "n"(2u));': "tcgen05.fence.cta_group::2.go cannot run",
    'asm("|tcgen05.fence.cta_group::%0.go;" :: "n"(sizeof(x)));': "tcgen05.fence.cta_group::%0.go cannot run",
    'asm("|add.u%1 %0, %0, 1;" : "+r"(x) : "n"(sizeof(x)));': "puts into an opcode must be a literal there",
}  # fmt: skip


@pytest.mark.parametrize("mode", [1, 2])
def test_statements_with_directives_inside(mode: int) -> None:
    source = """extern "C" __global__ void k(unsigned *out) {
      asm volatile("{ .reg .u32 a; mov.u32 a, %1;"
#if MODE >= 2 && \\
    defined(MODE)
        " add.u32 %0, a, %2; }"
#else
        " sub.u32 %0, a, %2; }"
#endif
        : "=r"(out[0])
#if MODE == 1
        : "r"(10),
#else
        : "r"(20)
#endif
          "r"(3) // no comma before it
        : "memory"
#ifdef MODE
      );
#endif
      out[1] = __LINE__;
    }"""
    out = gp.from_numpy(np.zeros(2, "u4"))
    launch(source, 1, 1, out, defines={"MODE": mode})
    assert out.to_numpy().tolist() == [7 if mode == 1 else 23, 20]


def test_a_percent_sign_before_a_word_is_the_registers() -> None:
    source = """extern "C" __global__ void k(unsigned *out) {
      asm("{ .reg .u32 %a; mov.u32 %a, %tid.x; L%=: add.u32 %0, %a, %1; }" : "=r"(out[threadIdx.x]) : "r"(10));
      asm("L%=: add.u32 %0, %0, %%ntid.x;" : "+r"(out[threadIdx.x]));
    }"""
    out = gp.from_numpy(np.zeros(4, "u4"))
    launch(source, 1, 4, out)
    assert out.to_numpy().tolist() == [14, 15, 16, 17]


@pytest.mark.parametrize("width", ["2", " 0x2u ", "(2)"])
def test_a_number_may_be_a_part_of_an_opcode(width: str) -> None:
    source = """extern "C" __global__ void k(const float *x, float *out) {
      asm("{ .reg .pred p; .reg .b%[bits] r%2; setp.ne.u%[bits] p, %2, %3; mov.b32 r%2, %3; "
          "ld.global.v%2.f%[bits] {%0, %1}, [%4 + 8]; @!p add.s32 %1, r%2, 5; }"
          : "=f"(out[0]), "=r"(*(int *)&out[1]) : "n"(WIDTH), "r"(2), "l"(x), [bits] "n"(32));
    }"""
    out = gp.from_numpy(np.full(2, -1, "f4"))
    launch(source.replace("WIDTH", width), 1, 1, gp.from_numpy(np.arange(4, dtype="f4")), out)
    assert out.to_numpy()[0] == 2 and out.to_numpy().view("i4")[1] == 7


@pytest.mark.parametrize("marked", WRONG)
def test_what_cannot_run_is_told_at_its_place(marked: str) -> None:
    statement, column = marked.replace("|", ""), marked.index("|") + 5
    source = f'extern "C" __global__ void k(unsigned *p) {{\n  unsigned x = *p;\n    {statement}\n  *p = x;\n}}'
    with pytest.raises(CompileError) as caught:
        compile_source(source, name="cell.cu")
    first = caught.value.diagnostics[0]
    assert WRONG[marked] in first.message and (first.line, first.column) == (3, column)


def test_a_fault_in_a_later_line_of_the_text_is_told_there() -> None:
    statement = '  asm("add.u32 %0, %0, 1;\\n"\n      "\\tadd.u31 %0, %0, 1;"\n : "+r"(*p));'
    source = f'extern "C" __global__ void k(unsigned *p) {{\n{statement}\n}}'
    with pytest.raises(CompileError) as caught:
        compile_source(source)
    assert (caught.value.diagnostics[0].line, caught.value.diagnostics[0].column) == (3, 10)


def test_inactive_branches_do_not_count() -> None:
    source = '#ifdef NEVER\nasm("nonsense");\n#endif\n#ifndef PYGPUKIT_SIM\nasm("more");\n#endif\n'
    compile_source(source + 'extern "C" __global__ void k(unsigned *p) { asm("mov.u32 %0, 1;" : "=r"(*p)); }')


def test_lines_behind_a_statement_stay() -> None:
    source = """extern "C" __global__ void k(unsigned *p) {
  asm("mov.u32 %0,"
      " 1;" : "=r"(p[0])); int y = z;
  asm("mov.u32 %0, 1;" : "=r"(p[0])); w = 1;
}"""
    with pytest.raises(CompileError) as caught:
        compile_source(source)
    places = [(one.line, one.column) for one in caught.value.diagnostics if "declared" in one.message]
    assert places == [(3, 36), (4, 39)]


def test_checked_mode_sees_each_access_at_its_line() -> None:
    source = """extern "C" __global__ void k(const unsigned *in, unsigned *out, int n) {
  unsigned x;
  int i = threadIdx.x;
  asm volatile("ld.global.u32 %0, [%1];" : "=r"(x) : "l"(in + i));
  asm volatile("st.global.u32 [%0], %1;"
               :: "l"(out + i), "r"(x));
}"""
    short, long = gp.from_numpy(np.zeros(31, "u4")), gp.from_numpy(np.zeros(32, "u4"))
    for given, line, what in (((short, long), 4, "read"), ((long, short), 5, "write")):
        with pytest.raises(KernelCheckError, match=what) as caught:
            launch(source, 1, 32, *given, 32, check=True)
        assert f":{line}" in str(caught.value), caught.value
    shared = """extern "C" __global__ void k(unsigned *out) {
  __shared__ unsigned tile[64];
  unsigned at = (unsigned)__cvta_generic_to_shared(tile), x;
  asm volatile("st.shared.u32 [%0], %1;" :: "r"(at + 4 * threadIdx.x), "r"(threadIdx.x));
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(at + 4 * (63 - threadIdx.x)));
  out[threadIdx.x] = x;
}"""
    out = gp.from_numpy(np.zeros(64, "u4"))
    with pytest.raises(KernelCheckError) as caught:
        launch(shared, 1, 64, out, check=True)
    assert ":5" in str(caught.value) and "tile" in str(caught.value)
    launch(shared.replace('  asm volatile("ld', '  __syncthreads();\n  asm volatile("ld'), 1, 64, out, check=True)
    assert out.to_numpy().tolist() == list(range(63, -1, -1))


@pytest.mark.parametrize("check", [False, True])
def test_modifiers_come_in_any_order_as_ptxas_takes_them(check: bool) -> None:
    """Each statement adds to one of the words, or loads or stores one, whatever stands first."""
    loads = (
        "relaxed.cta.global", "global.relaxed.cta", "cta.relaxed.global", "global.acquire.gpu", "global.volatile",
        "nc.global", "global.nc.L1::no_allocate", "L1::no_allocate.global", "global.relaxed.gpu.L1::no_allocate",
    )  # fmt: skip
    stores = ("global.release.gpu", "release.global.gpu", "global.relaxed.sys", "global.volatile", "wt.global")
    adds = (
        "add.release.gpu.global", "global.release.gpu.add", "global.add.acq_rel.gpu", "add.global", "gpu.add.global",
        "release.add.gpu.global",
    )  # fmt: skip
    lines = [
        f'asm volatile("ld.{one}.u32 %0, [%1];" : "=r"(r) : "l"(in + i)); out[{i}] = r;' for i, one in enumerate(loads)
    ]
    for i, one in enumerate(stores):
        lines.append(f'asm volatile("st.{one}.u32 [%0], %1;" :: "l"(out + {len(loads) + i}), "r"({i} + 1) : "memory");')
    first = len(loads) + len(stores)
    for i, one in enumerate(adds):
        place, other = f'"l"(out + {first + i})', one.replace("acq_rel", "release")
        lines.append(f'asm volatile("atom.{one}.u32 %0, [%1], %2;" : "=r"(r) : {place}, "r"({i} + 5) : "memory");')
        lines.append(f'asm volatile("red.{other}.u32 [%0], %1;" :: {place}, "r"(r + 1) : "memory");')
    lines.append('asm volatile("ld.v2.global.u32 {%0, %1}, [%2];" : "=r"(r), "=r"(q) : "l"(in)); out[30] = q;')
    body = "\n  ".join(lines).replace("in + i", "in + 1")
    source = f'extern "C" __global__ void k(const unsigned *in, unsigned *out) {{\n  unsigned r, q;\n  {body}\n}}'
    if get_nvrtc_version() is not None:
        compile_source(source, arch="sm_90a")
    x = np.random.default_rng().integers(1, 1 << 32, 4, dtype="u4")
    out = gp.from_numpy(np.full(31, 2, "u4"))
    launch(source, 1, 1, gp.from_numpy(x), out, check=check)
    added = [2 + i + 5 + 3 for i in range(len(adds))]
    expected = [x[1]] * len(loads) + [1 + i for i in range(len(stores))] + added
    assert out.to_numpy()[: len(expected)].tolist() == expected
    assert out.to_numpy()[30] == x[1]
