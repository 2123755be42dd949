"""Kernels on mma.sync that once spilled registers in their loops: what NVRTC makes of them has them in registers."""

from __future__ import annotations

import pytest

from pygpukit.jit.compile import nvrtc
from pygpukit.jit.inspect.cubin import read_cubin
from pygpukit.kernels import KernelSpec, registry
from pygpukit.kernels.builder import compile_unit
from pygpukit.ops.nn.attention import decode, mma

pytestmark = pytest.mark.skipif(bool(nvrtc.missing()), reason=nvrtc.missing() or "NVRTC is here")
FEW = 96  # bytes of a thread, that loops do not touch or hardly: those of toolchain_matrix.py


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(
    ("source", "expression"),
    [
        (decode.MMA, "pk::attend_rows<pk::half_t, 128, false>"),  # 528 bytes: multiples of a row's step
        (mma.ATTENTION, "pk::attention_mma<pk::bfloat16_t, 128, 64, 128, 4, 1>"),  # 64 bytes
    ],
)
def test_a_kernel_spills_next_to_nothing(source: KernelSpec, expression: str, arch: str) -> None:
    listed = {each for unit in registry.units(source.source) for each in unit.expressions}
    assert expression in listed
    image = compile_unit(registry.Unit(source.of(expression), (expression,)), arch)
    assert read_cubin(image.image).kernels[image.symbol(expression)].local_bytes <= FEW
