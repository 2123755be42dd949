"""Convolution in many small groups with channels last, on tensor cores: which ones, and the launch.

Its bits are those of few_channels.cu, so that it is taken for its speed: what many see of an image is read once.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import gcd, prod
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.core.dtypes import bfloat16, float16, float32
from pygpukit.kernels import activation
from pygpukit.ops import copying, raw
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.matmul.layout.operand import ALIGNMENT
from pygpukit.ops.nn.conv.group_blocks import QUAD, TILES, WARPS, Work, chosen
from pygpukit.ops.nn.conv.padded import padded
from pygpukit.ops.nn.conv.settings import Settings, geometry
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DataType

SOURCE = kernels.KernelSpec(__file__, "small_groups.cu", options=kernels.GENERIC_LAMBDAS)
_CALL = SOURCE.structure("Grouped")
_MOST = 64  # channels of a group
_WORTH = 2**21  # elements of an image that are worth copying
_COUNTABLE = 2**31 - 1  # elements


def work_of(input: GPUArray, weight: GPUArray, settings: Settings) -> Work:
    """weight: (filters, channels of a group, rows, columns)."""
    filters, channels, *kernel = weight.shape
    shape = settings.groups, filters // settings.groups, *kernel, channels
    return Work(input.itemsize, input.shape[0], shape, settings)


def takes(input: GPUArray, weight: GPUArray, settings: Settings, last: bool) -> bool:
    """Whether there is a kernel for these, worth the copies that it takes. last: the result's channels are."""
    filters, channels = weight.shape[0] // settings.groups, weight.shape[1]
    return (
        settings.groups > 1
        and channels % QUAD == filters % QUAD == 0
        and max(channels, filters) <= _MOST
        and settings.groups * gcd(channels, filters) * input.itemsize % ALIGNMENT == 0
        and ((last and _has_lines(input)) or (settings.stride == (1, 1) and input.size >= _WORTH))
        and max(_reach(input), prod(settings.out) * weight.shape[0]) <= _COUNTABLE
        and chosen(work_of(input, weight, settings)) is not None
    )


def convolve(
    input: GPUArray, weight: GPUArray, bias: GPUArray | None, out: GPUArray, settings: Settings, dense: GPUArray
) -> None:
    """Fill out, whose storage is `dense`, as takes() says. weight: of any strides. bias: dense. Images and results that
    do not lie as the kernel reads and writes them are copied."""
    x = input if _has_lines(input) else padded(input, 1, (0, 0), (0, 0))
    if _has_lines(out):
        _launch(x, weight, bias, out, settings, dense)
        return
    images, channels, *extents = out.shape
    room = native.empty((images, *extents, channels), out.dtype)
    made = room.transpose(0, 3, 1, 2)
    _launch(x, weight, bias, made, settings, room)
    copying.copy_to(made, out)


def _launch(
    input: GPUArray, weight: GPUArray, bias: GPUArray | None, out: GPUArray, settings: Settings, dense: GPUArray
) -> None:
    """Channels of image and result are dense, and whole 16 bytes at each place."""
    work = work_of(input, weight, settings)
    block = chosen(work)
    assert block is not None
    size = out.itemsize
    storage, where = geometry(input, weight.shape[2:], out, settings)
    where["step"] = [step * (extent > 1) for step, extent in zip(where["step"], input.shape, strict=True)]
    weights, weight_start = span(weight)
    image_pitch, out_pitch = work.pitches(block)
    turns = work.turns(block)
    packed = _CALL.pack(
        **where,
        groups=settings.groups,
        in_channels=weight.shape[1],
        out_channels=work.weight[1],
        weight_start=weight_start,
        weight_step=[step // size for step in weight.strides],
        own=block.own,
        per=work.per(block),
        shares=block.shares,
        parts=work.parts,
        steps=work.steps,
        tile=(block.rows, block.columns),
        tiles=[-(-extent // own) for extent, own in zip(settings.out, (block.rows, block.columns), strict=True)],
        seen=work.seen(block),
        fold=work.fold(block),
        pitch=image_pitch,
        out_pitch=out_pitch,
        turns=turns,
        rounds=block.rounds,
        whole=_has_pieces(weight, QUAD * size),
        has_bias=bias is not None,
        act=activation.number(settings.act),
    )
    spec = SOURCE.of(_expression(out.dtype, work.tiles), shared_bytes=work.shared_bytes(block))
    arrays = storage, weights, weights if bias is None else bias, dense
    kernels.launch(spec, (work.blocks(block), 1, 1), (32 * WARPS, 1, 1), *arrays, packed)


def _reach(array: GPUArray) -> int:
    """Elements from the first to the last."""
    axes = zip(array.shape, array.strides, strict=True)
    return sum((extent - 1) * abs(step) for extent, step in axes) // array.itemsize


def _has_lines(array: GPUArray) -> bool:
    return _has_pieces(array, ALIGNMENT)


def _has_pieces(array: GPUArray, bytes: int) -> bool:
    """Whether channels are dense and those of each place, of all groups, are whole pieces of so many bytes."""
    axes = zip(array.shape, array.strides, strict=True)
    apart = (step for axis, (extent, step) in enumerate(axes) if extent > 1 and axis != 1)
    return array.strides[1] == array.itemsize and not any(n % bytes for n in (raw.address(array), *apart))


def _expression(dtype: DataType, tiles: int) -> str:
    return f"pk::convolve_groups<{CTYPES[dtype.name]}, {tiles}>"


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that convolve() can ask for."""
    for dtype, tiles in product((bfloat16, float16, float32), TILES):
        yield (_expression(dtype, tiles),)
