"""Kernels that once spilled registers in their loops, and the count of what touches local memory there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pygpukit.jit.compile import nvrtc
from pygpukit.jit.compile.compiler import compile_source
from pygpukit.jit.inspect.cubin import read_cubin
from pygpukit.jit.toolchain import nvdisasm
from pygpukit.kernels import KernelSpec, registry
from pygpukit.kernels.builder import compile_unit
from pygpukit.ops.audio import recursion
from pygpukit.ops.matmul.cuda_cores import real
from pygpukit.ops.matmul.sm90 import cluster
from pygpukit.ops.nn.attention import decode, mma
from pygpukit.ops.nn.conv import few_channels

sys.path.append(str(Path(__file__).parents[2] / "tools"))

import spills

pytestmark = pytest.mark.skipif(bool(nvrtc.missing()), reason=nvrtc.missing() or "NVRTC is here")
disassembled = pytest.mark.skipif(nvdisasm() is None, reason="nvdisasm is not installed (extra inspect)")

STRIDED = decode.MMA, "pk::attend_rows<pk::half_t, 128, false>"
STRIDED_256 = decode.MMA, "pk::attend_rows<pk::half_t, 256, false>"
DENSE_256 = decode.MMA, "pk::attend_rows<pk::bfloat16_t, 256, true>"
PROMPTS = mma.ATTENTION, "pk::attention_mma<pk::bfloat16_t, 64, 64, 128, 4, 2>"
FLOATS = decode.SOURCE, "pk::attend_decode<float, 128, 8, true>"
GATED = cluster.SOURCE, "pk::hopper_product<pk::bfloat16_t, pk::bfloat16_t, 0, 256, false, false, 1>"
REAL = real.CORES, "pk::real<float, 8, 8, 4, 1, 16, 3, 2, 4, 3, 2>"
CHAIN = recursion.SOURCE, "pk::chain_states<pk::Linear<32>>"
NARROW = few_channels.SOURCE, "pk::convolve_narrow<float, 8, true>"


@pytest.mark.parametrize(
    ("source", "expression", "arch"),
    [
        (*STRIDED, "sm_80"),  # it was 528 bytes: multiples of a row's step
        (*STRIDED, "sm_120a"),
        (*STRIDED_256, "sm_90a"),  # 88: keys and values that were read ahead together
        (*STRIDED_256, "sm_100a"),  # 328
        (*DENSE_256, "sm_100a"),  # 112
        (*PROMPTS, "sm_80"),
        (*PROMPTS, "sm_90a"),
        (*FLOATS, "sm_100a"),  # 64: sums of lanes by a loop whose bounds were not known
        (*GATED, "sm_90a"),  # 16: a residual was read for all columns at once
        (*REAL, "sm_90a"),  # 272: results on their way through an epilogue
        (*CHAIN, "sm_86"),  # 512: a state, and its successor, of one thread
        (*NARROW, "sm_90a"),  # 224: sums on their way through a curve, and quotients kept beside them
    ],
)
def test_a_kernel_spills_nothing(source: KernelSpec, expression: str, arch: str) -> None:
    listed = {each for unit in registry.units(source.source) for each in unit.expressions}
    assert expression in listed
    image = compile_unit(registry.Unit(source.of(expression), (expression,)), arch)
    assert read_cubin(image.image).kernels[image.symbol(expression)].local_bytes == 0


KERNELS = """
// A volatile array lies in local memory: `inside` reads it in a loop, `outside` once.
__global__ void inside(const int *places, int *out, int n) {
  volatile int own[64];
  #pragma unroll
  for (int i = 0; i < 64; ++i) own[i] = places[i];
  int sum = 0;
  #pragma unroll 1
  for (int i = 0; i < n; ++i) sum += own[places[i] & 63] ^ i;
  out[threadIdx.x] = sum;
}
__global__ void outside(const int *places, int *out, int n) {
  volatile int own[64];
  #pragma unroll
  for (int i = 0; i < 64; ++i) own[i] = places[i];
  const int first = own[n & 63];
  int sum = 0;
  #pragma unroll 1
  for (int i = 0; i < n; ++i) sum += places[i] ^ first;
  out[threadIdx.x] = sum;
}
__global__ void neither(const int *places, int *out, int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += places[i];
  out[threadIdx.x] = sum;
}
"""


@disassembled
@pytest.mark.parametrize("arch", ["sm_80", "sm_120a"])
def test_local_memory_is_counted_where_it_is_touched_in_a_loop(arch: str) -> None:
    image = compile_source(KERNELS, name="local", arch=arch, name_expressions=["inside", "outside", "neither"])
    counts = spills.in_loops(image)
    assert counts["inside"] > 0 and counts["outside"] == 0 and "neither" not in counts


def test_a_branch_to_cold_code_and_back_is_no_loop() -> None:
    """As nvdisasm shows code: the part behind EXIT is gone to from the loop or from behind it."""
    code = """
.text.kernel:
        /*0000*/                   STL [R1], R8 ;
.L_x_0:
        /*0010*/                   LDL R2, [R1+0x8] ;
        /*0020*/               @P0 BRA `(.L_x_1) ;
        /*0030*/              @!P1 BRA `(.L_x_0) ;
        /*0040*/                   LDL R8, [R1] ;
        /*0050*/                   BRA.DIV UR4, `(.L_x_2) ;
.L_x_3:
        /*0060*/                   EXIT ;
.L_x_1:
        /*0070*/                   STL [R1+0x8], R3 ;
        /*0080*/                   BRA `(.L_x_0) ;
.L_x_2:
        /*0090*/                   STL [R1+0x4], R3 ;
        /*00a0*/                   BRA `(.L_x_3) ;
.L_x_4:
        /*00b0*/                   BRA `(.L_x_4);
""".splitlines()
    assert spills.local_in_loops(code) == 2
