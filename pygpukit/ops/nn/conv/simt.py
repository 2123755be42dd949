"""Convolution on CUDA cores: the launch of its kernels, but for depthwise ones."""

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

SOURCE = kernels.KernelSpec(__file__, "conv.cu")
_CONVOLUTION = SOURCE.structure("Convolution")
_BLOCK = 256
_CHANNELS = 8  # conv.cu: kChannels
_TILE = 64, 128  # conv.cu: kTileChannels, kTilePositions
_MIN_CHANNELS = 16  # channels of a group that are worth a tile


def refusal(p: Problem) -> str:
    """Why the kernels do not take it, "" where they do."""
    return "it is transposed" if p.settings.transposed else ""


def run(p: Problem, call: Call) -> None:
    """Fill the result."""
    convolve(call.input, copying.contiguous(call.weight), call.bias, call.out, p.settings, call.storage)


def convolve(
    input: GPUArray, weight: GPUArray, bias: GPUArray | None, out: GPUArray, settings: Settings, dense: GPUArray
) -> None:
    """Fill out, whose storage is `dense`. weight, bias: dense."""
    storage, where = geometry(input, weight.shape[2:], out, settings)
    out_channels = weight.shape[0] // settings.groups
    positions = out.shape[0] * settings.out[0] * settings.out[1]
    packed = _CONVOLUTION.pack(
        groups=settings.groups,
        in_channels=weight.shape[1],
        out_channels=out_channels,
        positions=positions,
        **where,
        has_bias=bias is not None,
        act=activation.number(settings.act),
    )
    tiled = out_channels >= _MIN_CHANNELS
    channels, places = _TILE if tiled else (_CHANNELS, _BLOCK)
    blocks = -(-positions // places) * -(-out_channels // channels) * settings.groups
    kernels.launch(
        SOURCE.of(f"pk::{'convolve_tiles' if tiled else 'convolve'}<{CTYPES[out.dtype.name]}>"),
        (blocks, 1, 1),
        (_BLOCK, 1, 1),
        *(storage, weight, weight if bias is None else bias, dense, packed),
    )


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that convolve() can ask for."""
    for name in ("convolve", "convolve_tiles"):
        yield tuple(f"pk::{name}<{CTYPES[dtype.name]}>" for dtype in promotion.FLOATS)
