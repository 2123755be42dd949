"""Kernels on mma.sync that once spilled registers in their loops: what NVRTC makes of them has them in registers."""

from __future__ import annotations

import pytest

from pygpukit.jit.compile import nvrtc
from pygpukit.jit.inspect.cubin import read_cubin
from pygpukit.kernels import KernelSpec, registry
from pygpukit.kernels.builder import compile_unit
from pygpukit.ops.nn.attention import decode, mma

pytestmark = pytest.mark.skipif(bool(nvrtc.missing()), reason=nvrtc.missing() or "NVRTC is here")


STRIDED = decode.MMA, "pk::attend_rows<pk::half_t, 128, false>"
STRIDED_256 = decode.MMA, "pk::attend_rows<pk::half_t, 256, false>"
DENSE_256 = decode.MMA, "pk::attend_rows<pk::bfloat16_t, 256, true>"
PROMPTS = mma.ATTENTION, "pk::attention_mma<pk::bfloat16_t, 128, 64, 128, 4, 1>"


@pytest.mark.parametrize(
    ("source", "expression", "arch", "max_bytes"),
    [
        (*STRIDED, "sm_80", 0),  # it was 528: multiples of a row's step
        (*STRIDED, "sm_120a", 0),
        (*STRIDED_256, "sm_90a", 0),  # 88: keys and values that were read ahead together
        (*STRIDED_256, "sm_100a", 0),  # 328
        (*DENSE_256, "sm_100a", 0),  # 112
        (*PROMPTS, "sm_80", 0),  # 40 by NVRTC 13.5, 64 by 12.4
        (*PROMPTS, "sm_90a", 64),  # 152 and 232
    ],
)
def test_a_kernel_spills_next_to_nothing(source: KernelSpec, expression: str, arch: str, max_bytes: int) -> None:
    listed = {each for unit in registry.units(source.source) for each in unit.expressions}
    assert expression in listed
    image = compile_unit(registry.Unit(source.of(expression), (expression,)), arch)
    assert read_cubin(image.image).kernels[image.symbol(expression)].local_bytes <= max_bytes
