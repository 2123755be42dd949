"""Convolution and transposed convolution on tensor cores: what is copied first, and the launch of the tile kernels."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.core.backend import is_sim
from pygpukit.core.dtypes import bfloat16, float16, float32
from pygpukit.kernels import KernelSpec, builder, launch
from pygpukit.ops import copying, raw
from pygpukit.ops.matmul import precision
from pygpukit.ops.matmul.reading import ALIGNMENT, whole
from pygpukit.ops.matmul.tile import multiprocessors
from pygpukit.ops.nn.conv.tiles import ALL, Tile, tiles
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DataType
    from pygpukit.ops.nn.conv.settings import Settings

CONVOLVE = KernelSpec(__file__, "tile.cu", front_end="tile", ahead=("sm_90a",))
ACTS = {None: 0, "relu": 0, "silu": 1, "gelu": 2}  # that the kernels apply, as tile.cu's curves
_ELEMENTS = {bfloat16: "__nv_bfloat16", float16: "__half", float32: "float"}
_ONE = (1, 1, 1)


def convolve(
    input: GPUArray, weight: GPUArray, bias: GPUArray | None, out: GPUArray, settings: Settings, dense: GPUArray
) -> None:
    """Fill out, whose storage is `dense`. input: (B, C, rows, columns). weight: as by_group() gives it."""
    groups, filters, *kernel, _ = weight.shape
    x, w = _readable(input, groups), _dense(weight)
    row = ALIGNMENT // out.itemsize
    last = out.strides[1] == out.itemsize and filters % row == 0
    every, step, shift, apart = settings.stride, (1, 1), settings.padding, (-1, -1)
    if not settings.transposed:
        every, step, apart = (1, 1), settings.stride, settings.dilation
        shift = (-settings.padding[0], -settings.padding[1])
    one = fastest(out.dtype, tuple(out.shape), tuple(weight.shape), settings)
    x_image, _, *x_steps = _steps(x)
    integers = (
        *(out.shape[0], groups, filters, w.shape[-1], *x.shape[2:], *settings.out, *kernel),
        *(*step, *shift, *apart, *every, x_image, *x_steps, *_steps(out)),
        *(bias is not None, ACTS[settings.act]),
    )
    launch(
        CONVOLVE.of(_expression(out.dtype, one, last)),
        (one.blocks(_places(tuple(out.shape), settings), filters), groups, phases(settings)),
        _ONE,
        *(span(array)[0] for array in (x, w, w if bias is None else bias)),
        dense,
        *(struct.pack("<i", number) for number in integers),
        struct.pack("<f", 0.0 if settings.act == "relu" else float("-inf")),
    )


def phases(settings: Settings) -> int:
    """Convolutions that make the result, each some of its places."""
    return prod(settings.stride) if settings.transposed else 1


def by_group(weight: GPUArray, groups: int, transposed: bool) -> GPUArray:
    """A view of a weight with rows: (groups, channels of the result, kernel rows, kernel columns, of the input)."""
    first, second, *kernel = weight.shape
    outer, inner, *steps = weight.strides
    own = first // groups
    shape = (groups, second, *kernel, own) if transposed else (groups, own, *kernel, second)
    strides = (own * outer, inner, *steps, outer) if transposed else (own * outer, outer, *steps, inner)
    return native.view(weight, shape, strides, weight.offset)


def packed(weight: GPUArray, transposed: bool = False, tf32: bool | None = None) -> GPUArray:
    """A convolution's weight; for tensor cores in memory where the input's channels are dense, as they are read: every
    call copies any other. transposed: of a transposed convolution of one group. tf32: as the convolution is called."""
    halves = weight.dtype in (bfloat16, float16) or (weight.dtype == float32 and precision.allowed(tf32))
    axis = 0 if transposed else 1
    if is_sim() or not halves or weight.shape[axis] * weight.itemsize % ALIGNMENT or missing():
        return weight
    order = (1 - axis, *range(2, weight.ndim), axis)
    return weight.transpose(*order).clone().transpose(*(order.index(i) for i in range(weight.ndim)))


def fastest(dtype: DataType, out: tuple[int, ...], weight: tuple[int, ...], settings: Settings) -> Tile:
    """The tile whose times are shortest for a result of that shape; of equals the first. weight: that of by_group()."""
    groups, filters, *kernel, channels = weight
    every = settings.stride if settings.transposed else (1, 1)
    taps = prod(-(-k // step) for k, step in zip(kernel, every, strict=True))
    work = (_places(out, settings), filters, taps, channels, groups * phases(settings), multiprocessors())
    return min(tiles(dtype), key=lambda one: one.time_us(*work))


def _places(out: tuple[int, ...], settings: Settings) -> int:
    """Of the result that a phase makes, at most."""
    every = settings.stride if settings.transposed else (1, 1)
    return out[0] * prod(-(-extent // step) for extent, step in zip(settings.out, every, strict=True))


def _readable(x: GPUArray, groups: int) -> GPUArray:
    """x itself where its channels are dense and all it steps by is whole 16 bytes, forward, else a copy that is so; its
    groups' channels are filled up with zeros."""
    images, channels, *image = x.shape
    own, size = channels // groups, x.itemsize
    outer = list(zip((images, *image), (x.strides[0], *x.strides[2:]), strict=True))
    if (
        x.strides[1] == size
        and raw.address(x) % ALIGNMENT == own * size % ALIGNMENT == 0
        and all(extent == 1 or (stride > 0 and stride % ALIGNMENT == 0) for extent, stride in outer)
        and sum((extent - 1) * stride for extent, stride in outer if extent > 1) // size + channels < 2**31
    ):
        return x
    image_step, step, *steps = x.strides
    shape = (images, *image, groups, own)
    filled = _filled(native.view(x, shape, (image_step, *steps, own * step, step), x.offset))
    channel = filled.strides[-1]
    image_step, *steps = filled.strides[:-2]
    return native.view(
        filled, (images, groups * filled.shape[-1], *image), (image_step, channel, *steps), filled.offset
    )


def _dense(weight: GPUArray) -> GPUArray:
    """The weight itself where it is dense in that order and its rows are whole 16 bytes, else a copy that is so."""
    rows = weight.shape[-1] * weight.itemsize % ALIGNMENT == 0
    return weight if rows and weight.is_contiguous() and raw.address(weight) % ALIGNMENT == 0 else _filled(weight)


def _filled(array: GPUArray) -> GPUArray:
    """A dense copy whose rows are filled up with zeros to whole 16 bytes."""
    *outer, length = array.shape
    filled = whole(length, array.itemsize)
    copy = native.empty((*outer, filled), array.dtype)
    if filled != length:
        native.fill(copy, bytes(copy.itemsize))
    copying.copy_to(array, native.view(copy, array.shape, copy.strides, copy.offset))
    return copy


def _steps(array: GPUArray) -> tuple[int, ...]:
    """Elements between neighbours along each axis, 0 where there are none."""
    axes = zip(array.shape, array.strides, strict=True)
    return tuple(0 if extent == 1 else stride // array.itemsize for extent, stride in axes)


def _expression(dtype: DataType, one: Tile, last: bool) -> str:
    numbers = f"{one.places}, {one.filters}, {one.depth}, {one.warps}"
    return f"pk::convolve<{_ELEMENTS[dtype]}, {numbers}, {str(last).lower()}>"


@CONVOLVE.lists
def _listing() -> Iterator[tuple[str, ...]]:
    for dtype, last in product(_ELEMENTS, (True, False)):
        for one in ALL[dtype]:
            yield (_expression(dtype, one, last),)


@cache
def missing() -> str:
    """Why there are no tile kernels here, "" where there are."""
    return builder.missing(CONVOLVE.of(next(iter(_listing()))[0]))
