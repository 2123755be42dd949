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
from pygpukit.ops import copying
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.matmul.layout.operand import ALIGNMENT, Operand
from pygpukit.ops.nn.conv import few_channels
from pygpukit.ops.nn.conv.group_blocks import QUAD, TILES, WARPS, Block, Work, chosen
from pygpukit.ops.nn.conv.layout import has_pieces
from pygpukit.ops.nn.conv.padded import padded
from pygpukit.ops.nn.conv.problem import Call, Problem
from pygpukit.ops.nn.conv.settings import Settings, geometry
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DataType

SOURCE = kernels.KernelSpec(__file__, "small_groups.cu", options=kernels.GENERIC_LAMBDAS)
_CALL = SOURCE.structure("Grouped")
BACKEND = few_channels.BACKEND
_MAX_CHANNELS = 64  # channels of a group
_WORTH = 2**21  # elements of an image that are worth copying
_COUNTABLE = 2**31 - 1  # elements


def refusal(p: Problem) -> str:
    """Why the kernel does not take it, or is not worth the copies that it takes; "" where it is taken."""
    if why := few_channels.refusal(p):
        return why
    settings, (groups, filters, *_, channels) = p.settings, p.weight
    pieces = groups * gcd(channels, filters) * p.dtype.itemsize % ALIGNMENT == 0
    if groups == 1 or channels % QUAD or filters % QUAD or max(channels, filters) > _MAX_CHANNELS or not pieces:
        return f"there are no groups of whole fours of up to {_MAX_CHANNELS} channels that are whole {ALIGNMENT} bytes"
    worth = settings.stride == (1, 1) and prod(p.image.shape) >= _WORTH
    if not (p.last and has_pieces(p.image, ALIGNMENT)) and not worth:
        return "copies with channels last would cost more than the kernel saves"
    if max(_reach(p.image), prod(settings.out) * groups * filters) > _COUNTABLE:
        return "an array has more elements than the kernel counts"
    if not p.out[0] or chosen(_work(p)) is None:
        return "no block fits"
    return ""


reason = few_channels.reason


def tiling(p: Problem) -> Block | None:
    """The block that is fastest."""
    return chosen(_work(p))


def run(p: Problem, call: Call) -> None:
    """Fill the result."""
    convolve(call.input, call.weight, call.bias, call.out, p.settings, call.storage)


def convolve(
    input: GPUArray, weight: GPUArray, bias: GPUArray | None, out: GPUArray, settings: Settings, dense: GPUArray
) -> None:
    """Fill out, whose storage is `dense`, where refusal() is "". weight: of any strides. bias: dense. Images and
    results that do not lie as the kernel reads and writes them are copied."""
    x = input if has_pieces(Operand.of(input), ALIGNMENT) else padded(input, 1, (0, 0), (0, 0))
    if has_pieces(Operand.of(out), ALIGNMENT):
        _launch(x, weight, bias, out, settings, dense)
        return
    images, channels, *extents = out.shape
    room = native.empty((images, *extents, channels), out.dtype)
    first = room.transpose(0, 3, 1, 2)
    _launch(x, weight, bias, first, settings, room)
    copying.copy_to(first, out)


def _launch(
    input: GPUArray, weight: GPUArray, bias: GPUArray | None, out: GPUArray, settings: Settings, dense: GPUArray
) -> None:
    """Channels of image and result are dense, and whole 16 bytes at each place."""
    filters, channels, *kernel = weight.shape
    shape = settings.groups, filters // settings.groups, *kernel, channels
    work = Work(input.itemsize, input.shape[0], shape, settings)
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
        whole=has_pieces(Operand.of(weight), QUAD * size),
        has_bias=bias is not None,
        act=activation.number(settings.act),
    )
    spec = SOURCE.of(_expression(out.dtype, work.tiles), shared_bytes=work.shared_bytes(block))
    arrays = storage, weights, weights if bias is None else bias, dense
    kernels.launch(spec, (work.blocks(block), 1, 1), (32 * WARPS, 1, 1), *arrays, packed)


def _work(p: Problem) -> Work:
    return Work(p.dtype.itemsize, p.image.shape[0], p.weight, p.settings)


def _reach(image: Operand) -> int:
    """Elements from the first to the last."""
    axes = zip(image.shape, image.strides, strict=True)
    return sum((extent - 1) * abs(step) for extent, step in axes) // image.itemsize


def _expression(dtype: DataType, tiles: int) -> str:
    return f"pk::convolve_groups<{CTYPES[dtype.name]}, {tiles}>"


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that convolve() can ask for."""
    for dtype, tiles in product((bfloat16, float16, float32), TILES):
        yield (_expression(dtype, tiles),)
