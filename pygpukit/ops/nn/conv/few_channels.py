"""Convolution on tensor cores where a group has few channels: which ones, and the launch of the kernels."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit.core import device
from pygpukit.core.dtypes import bfloat16, float16, float32
from pygpukit.kernels import activation
from pygpukit.ops import raw
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.nn.conv.group_blocks import QUAD
from pygpukit.ops.nn.conv.problem import Call, Problem
from pygpukit.ops.nn.conv.settings import Settings, geometry
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DataType

SOURCE = kernels.KernelSpec(__file__, "few_channels.cu")
_NARROW = SOURCE.structure("NarrowGroups")
BACKEND = "few"
_BLOCK = 256
_MANY = 16  # channels in tf32, twice as many in half precision: a tile of groups that have no more is zeros mostly
_PLACES = 256  # few_channels.cu: kPlaces
_TILES = (1, 2, 4, 8)  # of 8 filters
_SHARED = 49152  # bytes of shared memory, at most
_ROUNDS = 8  # that a block takes, at most
_COUNTABLE = 2**31 - 1  # places of a result
_REACH = 2**15 - 1  # rows and columns that a kernel sees, at most


def refusal(p: Problem) -> str:
    """Why the kernel does not take it, "" where it does."""
    settings, (groups, filters, *kernel, channels) = p.settings, p.weight
    max_channels = _MANY if p.dtype == float32 else 2 * _MANY
    several = groups > 1 and max(channels, filters) <= max_channels and channels % QUAD == filters % QUAD == 0
    if not (p.narrow_groups or several):
        return f"{channels} to {filters} channels of a group are worth a tile"
    if settings.transposed:
        return "the convolution is transposed"
    if channels == 1 and filters < 8:
        return "it is about depthwise: most of what is multiplied would be zeros"
    reach = max(apart * (extent - 1) for apart, extent in zip(settings.dilation, kernel, strict=True))
    if reach > _REACH or prod(settings.out) * p.out[0] > _COUNTABLE - _PLACES * _ROUNDS:
        return "the kernel for few channels does not count so far"
    if not 0 < _bytes(1, _steps(tuple(kernel), channels), p.dtype.itemsize) <= _SHARED:
        return "a block's shared memory does not hold the weights of 8 filters"
    return ""


def reason(p: Problem) -> str:
    """Of a plan."""
    return f"{p.on_tensor_cores}, {p.weight[-1]} to {p.weight[1]} channels of a group, summed in float32"


def tiling(p: Problem) -> None:
    """There is none to choose."""


def run(p: Problem, call: Call) -> None:
    """Fill the result."""
    convolve(call.input, call.weight, call.bias, call.out, p.settings, call.storage)


def convolve(
    input: GPUArray, weight: GPUArray, bias: GPUArray | None, out: GPUArray, settings: Settings, dense: GPUArray
) -> None:
    """Fill out, whose storage is `dense`. weight: of any strides. bias: dense."""
    size, filters, channels = out.itemsize, weight.shape[0] // settings.groups, weight.shape[1]
    storage, where = geometry(input, weight.shape[2:], out, settings)
    weights, weight_start = span(weight)
    steps = _steps(weight.shape[2:], channels)
    tiles = max(n for n in _TILES if n == 1 or (4 * n < filters and _bytes(n, steps, size) <= _SHARED))
    parts = -(-filters // (8 * tiles))
    positions = out.shape[0] * settings.out[0] * settings.out[1]
    turns = -(-positions // _PLACES)
    rounds = max(1, min(_ROUNDS, turns * settings.groups * parts // (4 * device.current().sm_count)))
    packed = _NARROW.pack(
        groups=settings.groups,
        in_channels=channels,
        out_channels=filters,
        positions=positions,
        **where,
        weight_start=weight_start,
        weight_step=[step // size for step in weight.strides],
        steps=steps,
        parts=parts,
        rounds=rounds,
        pairs=filters % 2 == 0 and out.strides[1] == size,
        has_bias=bias is not None,
        act=activation.number(settings.act),
    )
    spec = SOURCE.of(
        _expression(out.dtype, tiles, _has_quads(input, channels)), shared_bytes=_bytes(tiles, steps, size)
    )
    blocks = -(-turns // rounds) * settings.groups * parts
    arrays = storage, weights, weights if bias is None else bias, dense
    kernels.launch(spec, (blocks, 1, 1), (_BLOCK, 1, 1), *arrays, packed)


def _steps(kernel: tuple[int, ...] | list[int], channels: int) -> int:
    return -(-kernel[0] * kernel[1] * -(-channels // QUAD) // 4)


def _bytes(tiles: int, steps: int, size: int) -> int:
    """Of shared memory: of each step what four quads see, 16 bytes each, and 32 quads for 8 filters."""
    return steps * (4 * 16 + tiles * 32 * QUAD * size)


def _has_quads(array: GPUArray, channels: int) -> bool:
    """True where channels are dense and those of each place and group are whole quads, as one in memory."""
    quad = QUAD * array.itemsize
    axes = zip(array.shape, array.strides, strict=True)
    apart = (step for axis, (extent, step) in enumerate(axes) if extent > 1 and axis != 1)
    return (
        channels % QUAD == 0
        and array.strides[1] == array.itemsize
        and not any(number % quad for number in (raw.address(array), *apart))
    )


def _expression(dtype: DataType, tiles: int, dense: bool) -> str:
    return f"pk::convolve_narrow<{CTYPES[dtype.name]}, {tiles}, {str(dense).lower()}>"


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that convolve() can ask for."""
    for dtype, tiles, dense in product((bfloat16, float16, float32), _TILES, (False, True)):
        yield (_expression(dtype, tiles, dense),)
