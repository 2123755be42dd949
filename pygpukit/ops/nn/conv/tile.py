"""Convolution and transposed convolution on tensor cores: what is copied first, and the launch of the tile kernels."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from pygpukit.core import device
from pygpukit.core.backend import is_sim
from pygpukit.core.choices import by_device
from pygpukit.core.dtypes import bfloat16, float16, float32
from pygpukit.kernels import KernelSpec, builder, launch
from pygpukit.ops.matmul import precision
from pygpukit.ops.matmul.layout.operand import ALIGNMENT
from pygpukit.ops.nn.conv.group_blocks import QUAD
from pygpukit.ops.nn.conv.layout import (
    by_group,
    dense,
    flat_view,
    has_lines,
    put_back,
    readable,
    steps,
    with_dense_channels,
)
from pygpukit.ops.nn.conv.problem import MIN_CHANNELS, Call, Problem
from pygpukit.ops.nn.conv.tiles import ALL, Tile, tiles
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DataType
    from pygpukit.ops.nn.conv.settings import Settings

CONVOLVE = KernelSpec(__file__, "tile.cu", front_end="tile", ahead=("sm_90a",), instead=True)
ACTS = {None: 0, "relu": 0, "silu": 1, "gelu": 2}  # that the kernels apply, as tile.cu's curves
BACKEND = "tile"
_ELEMENTS = {bfloat16: "__nv_bfloat16", float16: "__half", float32: "float"}
_ONE = (1, 1, 1)
_COUNTABLE = 2**31 - 1  # elements of an array
_MAX_BLOCKS = 65535  # a grid's second and third extent


def unsupported(p: Problem) -> str:
    """Why tensor cores do not make it by tiles, of this kernel or of gathered.cu, whatever is installed; "" where they
    may."""
    settings, (groups, filters, *kernel, channels) = p.settings, p.weight
    if p.narrow_groups:
        return f"{channels} to {filters} channels of a group: fewer than {MIN_CHANNELS} waste tensor cores"
    if settings.act not in ACTS:
        return f"{settings.act} is applied on CUDA cores"
    if settings.transposed and settings.dilation != (1, 1):
        return "a transposed convolution with dilation has no phases that are convolutions"
    image = p.image.shape
    padded = prod(image[:2]) * prod(
        sum(extents) for extents in zip(image[2:], *margins(settings, tuple(kernel), image[2:]), strict=True)
    )
    if 2 * max(padded, prod(p.weight), prod(p.out)) > _COUNTABLE:  # twice: channels are filled up
        return "an array has more elements than a tile kernel counts"
    if max(groups, phases(settings)) > _MAX_BLOCKS:
        return "there are more groups or phases than a grid takes"
    return ""


def refusal(p: Problem) -> str:
    """Why the kernel does not take it, "" where it does."""
    return unsupported(p) or missing()


def reason(p: Problem) -> str:
    """Of a plan."""
    return f"{p.on_tensor_cores}, summed in float32"


def order(p: Problem) -> tuple[str, bool]:
    """The kernel's Order, and whether all places are one row. gathered.cu has kLast alone."""
    settings, (_, filters, *kernel, channels) = p.settings, p.weight
    every, step, _ = _spacing(settings)
    flat = (tuple(kernel), step, every, p.image.shape[2:]) == ((1, 1), (1, 1), (1, 1), settings.out)
    lines = p.lines and not missing()
    whole_groups = all(count * p.dtype.itemsize % ALIGNMENT == 0 for count in (channels, filters))
    if lines and flat and whole_groups and has_lines(p.image):
        return "kFirst", True
    if lines and settings.out[0] == 1 and every == (1, 1):
        return "kLastToFirst", False
    return "kLast", flat


def tiling(p: Problem) -> Tile:
    """The tile that is fastest."""
    dense, flat = order(p)
    shape = p.out
    if flat:
        images, beside = (1, shape[0]) if dense == "kLast" else (shape[0], 1)
        shape = (images, shape[1], 1, beside * prod(p.settings.out))
    return fastest(p.dtype, shape, p.weight, p.settings, dense == "kLast")


def run(p: Problem, call: Call) -> None:
    """Fill the result."""
    settings, (groups, _, *kernel, _) = p.settings, p.weight
    dense_order, flat = order(p)
    before, after = margins(settings, tuple(kernel), p.image.shape[2:])
    x = call.input if dense_order == "kFirst" else readable(call.input, groups, before, after, flat)
    w = dense(by_group(call.weight, groups, settings.transposed))
    storage, dense_out = call.storage, call.out
    if dense_order == "kLast":
        storage, dense_out = with_dense_channels(dense_out, storage, groups)
    _launch(x, w, call.bias, dense_out, storage, settings, before, dense_order, flat, tiling(p))
    put_back(dense_out, call.out, groups)


def _launch(
    x: GPUArray,
    w: GPUArray,
    bias: GPUArray | None,
    out: GPUArray,
    storage: GPUArray,
    settings: Settings,
    before: tuple[int, int],
    order: str,
    flat: bool,
    one: Tile,
) -> None:
    """The tile kernel. before: rows and columns of zeros that x has before the image."""
    groups, filters, *kernel, _ = w.shape
    every, step, apart = _spacing(settings)
    seen, result = (flat_view(x, order), flat_view(out, order)) if flat else (x, out)
    shift = settings.padding if settings.transposed else tuple(-padding for padding in settings.padding)
    x_image, *x_steps = steps(seen)
    out_image, *out_steps = steps(result)
    integers = (
        *(groups, filters, w.shape[-1], *result.shape[2:], *kernel, *step),
        *(offset + room * phase for offset, room, phase in zip(shift, before, every, strict=True)),
        *(*apart, *every, *x_steps, *out_steps, bias is not None, ACTS[settings.act]),
    )
    strides = x_image, seen.shape[1] // groups * x_steps[0], out_image, result.shape[1] // groups * out_steps[0]
    launch(
        CONVOLVE.of(_expression(out.dtype, one, order)),
        (one.blocks(*_places(tuple(result.shape), settings), filters), groups, phases(settings)),
        _ONE,
        *(span(array)[0] for array in (seen, w, w if bias is None else bias)),
        storage,
        *(struct.pack("<i", number) for number in integers),
        *(struct.pack("<q", number) for number in strides),
        struct.pack("<f", 0.0 if settings.act == "relu" else float("-inf")),
    )


def margins(
    settings: Settings, kernel: tuple[int, ...], image: tuple[int, ...]
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Rows and columns of zeros that a convolution sees before an image, and those after it."""
    axes = zip(image, kernel, settings.out, settings.stride, settings.padding, settings.dilation, strict=True)
    (top, bottom), (left, right) = (_margin(settings.transposed, *axis) for axis in axes)
    return (top, left), (bottom, right)


@cache
def _margin(
    transposed: bool, extent: int, taps: int, out: int, stride: int, padding: int, dilation: int
) -> tuple[int, int]:
    if not transposed:
        return padding, max(0, (out - 1) * stride + (taps - 1) * dilation - padding - extent + 1)
    before = after = 0
    for phase in range(min(stride, out)):
        base, first = divmod(phase + padding, stride)
        before = max(before, -(-(taps - first) // stride) - 1 - base)
        after = max(after, base + -(-(out - phase) // stride) - extent)
    return before, after


def phases(settings: Settings) -> int:
    """Convolutions that make the result, each some of its places."""
    return prod(settings.stride) if settings.transposed else 1


def packed(weight: GPUArray, transposed: bool = False, tf32: bool | None = None) -> GPUArray:
    """A convolution's weight; for tensor cores in memory where the input's channels are dense, as they are read: every
    call copies any other. transposed: of a transposed convolution of one group. tf32: as the convolution is called."""
    halves = weight.dtype in (bfloat16, float16) or (weight.dtype == float32 and precision.allowed(tf32))
    axis = 0 if transposed else 1
    if is_sim() or not halves or weight.shape[axis] % QUAD or (transposed and missing()):
        return weight
    order = (1 - axis, *range(2, weight.ndim), axis)
    return weight.transpose(*order).clone().transpose(*(order.index(i) for i in range(weight.ndim)))


def fastest(
    dtype: DataType, out: tuple[int, ...], weight: tuple[int, ...], settings: Settings, last: bool = True
) -> Tile:
    """The tile whose times are shortest for a result of that shape; of equals the first. weight: that of by_group().
    last: the result's channels are dense."""
    groups, filters, *kernel, channels = weight
    every = _spacing(settings)[0]
    taps = prod(-(-k // step) for k, step in zip(kernel, every, strict=True))
    places = _places(out, settings)
    work = (filters, taps, channels, groups * phases(settings), device.current().sm_count)
    return min(
        (one for one in tiles(dtype) if last or one.wide == one.places), key=lambda one: one.time_us(*places, *work)
    )


def _spacing(settings: Settings) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
    """The number of phases, and how far neighbours of the result and of the kernel see apart, as tile.cu says."""
    if settings.transposed:
        return settings.stride, (1, 1), (-1, -1)
    return (1, 1), settings.stride, settings.dilation


def _places(out: tuple[int, ...], settings: Settings) -> tuple[int, int, int]:
    """Images, rows and columns of the result that a phase makes, at most."""
    rows, columns = (-(-extent // step) for extent, step in zip(out[2:], _spacing(settings)[0], strict=True))
    return out[0], rows, columns


def _expression(dtype: DataType, one: Tile, order: str) -> str:
    numbers = ", ".join(str(number) for number in one.kernel)
    return f"pk::convolve<{_ELEMENTS[dtype]}, {numbers}, pk::Order::{order}>"


@CONVOLVE.lists
def _listing() -> Iterator[tuple[str, ...]]:
    for dtype, order in product(_ELEMENTS, ("kLast", "kLastToFirst", "kFirst")):
        for one in ALL[dtype]:
            if order == "kLast" or one.wide == one.places:
                yield (_expression(dtype, one, order),)


@by_device
def missing() -> str:
    """Why there are no tile kernels here, "" where there are."""
    return builder.missing(CONVOLVE.of(next(iter(_listing()))[0]))
