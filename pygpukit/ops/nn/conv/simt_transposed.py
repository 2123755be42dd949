"""Transposed convolution on CUDA cores: the launch of its kernel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit.array import promotion
from pygpukit.kernels import activation
from pygpukit.ops import copying
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.nn.conv.problem import Call, Problem
from pygpukit.ops.nn.conv.settings import Settings, geometry

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

SOURCE = kernels.KernelSpec(__file__, "transposed.cu")
_CONVOLUTION = SOURCE.structure("TransposedConvolution")
_BLOCK = 256
_CHANNELS = 8  # transposed.cu: kChannels


def refusal(p: Problem) -> str:
    """Why the kernel does not take it, "" where it does."""
    return "" if p.settings.transposed else "it is not transposed"


def run(p: Problem, call: Call) -> None:
    """Fill the result."""
    convolve(call.input, copying.contiguous(call.weight), call.bias, call.out, p.settings, call.storage)


def convolve(
    input: GPUArray, weight: GPUArray, bias: GPUArray | None, out: GPUArray, settings: Settings, dense: GPUArray
) -> None:
    """Fill out, whose storage is `dense`. weight, bias: dense."""
    storage, where = geometry(input, weight.shape[2:], out, settings)
    positions = out.shape[0] * settings.out[0] * settings.out[1]
    packed = _CONVOLUTION.pack(
        groups=settings.groups,
        in_channels=input.shape[1] // settings.groups,
        out_channels=weight.shape[1],
        positions=positions,
        **where,
        has_bias=bias is not None,
        act=activation.number(settings.act),
    )
    kernels.launch(
        SOURCE.of(f"pk::convolve_transposed<{CTYPES[out.dtype.name]}>"),
        (-(-positions // _BLOCK) * -(-weight.shape[1] // _CHANNELS) * settings.groups, 1, 1),
        (_BLOCK, 1, 1),
        *(storage, weight, weight if bias is None else bias, dense, packed),
    )


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that convolve() can ask for."""
    yield tuple(f"pk::convolve_transposed<{CTYPES[dtype.name]}>" for dtype in promotion.FLOATS)
