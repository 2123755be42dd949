"""Convolution and transposed convolution on tensor cores: what is copied first, and the launch of the tile kernels."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache
from itertools import product
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from pygpukit._core import native
from pygpukit.core import device
from pygpukit.core.backend import is_sim
from pygpukit.core.choices import by_device
from pygpukit.core.dtypes import bfloat16, float16, float32
from pygpukit.kernels import KernelSpec, builder, launch
from pygpukit.ops import copying, raw
from pygpukit.ops.matmul import precision
from pygpukit.ops.matmul.layout.operand import ALIGNMENT, aligned_length
from pygpukit.ops.nn.conv import gathered
from pygpukit.ops.nn.conv.group_blocks import QUAD
from pygpukit.ops.nn.conv.padded import padded
from pygpukit.ops.nn.conv.tiles import ALL, Tile, tiles
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DataType
    from pygpukit.ops.nn.conv.settings import Settings

CONVOLVE = KernelSpec(__file__, "tile.cu", front_end="tile", ahead=("sm_90a",), instead=True)
ACTS = {None: 0, "relu": 0, "silu": 1, "gelu": 2}  # that the kernels apply, as tile.cu's curves
_ELEMENTS = {bfloat16: "__nv_bfloat16", float16: "__half", float32: "float"}
_ONE = (1, 1, 1)


class Way(NamedTuple):
    """How a convolution is launched: tile.cu's order, whether all places are one row, and the tile, or what a block of
    gathered.cu makes."""

    order: str
    flat: bool
    tile: Tile | gathered.Block


def convolve(
    input: GPUArray, weight: GPUArray, bias: GPUArray | None, out: GPUArray, settings: Settings, dense: GPUArray
) -> None:
    """Fill out, whose storage is `dense`. input: (B, C, rows, columns). weight: as by_group() gives it."""
    groups, filters, *kernel, _ = weight.shape
    order, flat, one = way(input, weight, settings, out.strides[1] != out.itemsize and _has_lines(out))
    gathers = isinstance(one, gathered.Block)
    before, after = ((0, 0), (0, 0)) if gathers else margins(settings, tuple(kernel), tuple(input.shape[2:]))
    x = input if order == "kFirst" else _readable(input, groups, before, after, flat)
    w, made, storage = _dense(weight), out, dense
    if order == "kLast" and (out.strides[1] != out.itemsize or filters * out.itemsize % ALIGNMENT):
        storage, made = _room(out, groups)
    if isinstance(one, gathered.Block):
        gathered.convolve(x, w, bias, made, storage, settings, one)
    else:
        _launch(x, w, bias, made, storage, settings, before, order, flat, one)
    if storage is not dense:
        copying.copy_to(_grouped(made, groups, filters), _grouped(out, groups, filters))


def _launch(
    x: GPUArray,
    w: GPUArray,
    bias: GPUArray | None,
    made: GPUArray,
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
    seen, result = (_flat(x, order), _flat(made, order)) if flat else (x, made)
    shift = settings.padding if settings.transposed else tuple(-padding for padding in settings.padding)
    x_image, *x_steps = _steps(seen)
    out_image, *out_steps = _steps(result)
    integers = (
        *(groups, filters, w.shape[-1], *result.shape[2:], *kernel, *step),
        *(offset + room * phase for offset, room, phase in zip(shift, before, every, strict=True)),
        *(*apart, *every, *x_steps, *out_steps, bias is not None, ACTS[settings.act]),
    )
    strides = x_image, seen.shape[1] // groups * x_steps[0], out_image, result.shape[1] // groups * out_steps[0]
    launch(
        CONVOLVE.of(_expression(made.dtype, one, order)),
        (one.blocks(*_places(tuple(result.shape), settings), filters), groups, phases(settings)),
        _ONE,
        *(span(array)[0] for array in (seen, w, w if bias is None else bias)),
        storage,
        *(struct.pack("<i", number) for number in integers),
        *(struct.pack("<q", number) for number in strides),
        struct.pack("<f", 0.0 if settings.act == "relu" else float("-inf")),
    )


def way(input: GPUArray, weight: GPUArray, settings: Settings, lines: bool) -> Way:
    """The launch for these operands. lines: the result's channels are whole 16 bytes of dense places. Launches
    nothing."""
    groups, filters, *kernel, channels = weight.shape
    every, step, _ = _spacing(settings)
    image = tuple(input.shape[2:])
    flat = (tuple(kernel), step, every, image) == ((1, 1), (1, 1), (1, 1), settings.out)
    whole_groups = all(count * input.itemsize % ALIGNMENT == 0 for count in (channels, filters))
    order = "kLast"  # the one order that gathered.cu makes, too
    if missing():
        lines = False
    if lines and flat and whole_groups and _has_lines(input):
        order = "kFirst"
    elif lines and settings.out[0] == 1 and every == (1, 1):
        order, flat = "kLastToFirst", False
    shape = (input.shape[0], groups * filters, *settings.out)
    if flat:
        images, beside = (1, input.shape[0]) if order == "kLast" else (input.shape[0], 1)
        shape = (images, groups * filters, 1, beside * prod(settings.out))
    if order == "kLast" and gathered.takes(settings, input.dtype):
        places = input.shape[0] * prod(settings.out)
        return Way(order, False, gathered.fastest(input.dtype, places, tuple(weight.shape)))
    return Way(order, flat, fastest(input.dtype, shape, tuple(weight.shape), settings, order == "kLast"))


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
    if is_sim() or not halves or weight.shape[axis] % QUAD or missing():
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
    """How many phases there are, and how far neighbours of the result and of the kernel see apart, as tile.cu says."""
    if settings.transposed:
        return settings.stride, (1, 1), (-1, -1)
    return (1, 1), settings.stride, settings.dilation


def _places(out: tuple[int, ...], settings: Settings) -> tuple[int, int, int]:
    """Images, rows and columns of the result that a phase makes, at most."""
    rows, columns = (-(-extent // step) for extent, step in zip(out[2:], _spacing(settings)[0], strict=True))
    return out[0], rows, columns


def _has_lines(array: GPUArray) -> bool:
    """Whether a channel's places are dense, whole 16 bytes, and so are the steps between channels and images."""
    images, channels, rows, columns = array.shape
    image, channel, row, column = array.strides
    size = array.itemsize
    return (
        (columns == 1 or column == size)
        and (rows == 1 or row == columns * size)
        and raw.address(array) % ALIGNMENT == rows * columns * size % ALIGNMENT == 0
        and all(n == 1 or (step > 0 and step % ALIGNMENT == 0) for n, step in ((images, image), (channels, channel)))
    )


def _pitch(array: GPUArray) -> int:
    """Bytes from one place to the next. The steps of axes of one place say nothing."""
    _, _, rows, columns = array.shape
    image, _, row, column = array.strides
    return column if columns > 1 else row if rows > 1 else image


def _is_flat(array: GPUArray) -> bool:
    """Whether all places are equally far apart."""
    images, _, rows, columns = array.shape
    image, _, row, column = array.strides
    return (rows == 1 or columns == 1 or row == columns * column) and (
        images == 1 or image == rows * columns * _pitch(array)
    )


def _flat(array: GPUArray, order: str) -> GPUArray:
    """A view with all places as columns; kLast: those of all images."""
    images, channels, rows, columns = array.shape
    image, channel, _, _ = array.strides
    shape = (1, channels, 1, images * rows * columns) if order == "kLast" else (images, channels, 1, rows * columns)
    return native.view(array, shape, (image, channel, _pitch(array), _pitch(array)), array.offset)


def _room(out: GPUArray, groups: int) -> tuple[GPUArray, GPUArray]:
    """Storage for a result with its channels dense, those of a group filled up to whole 16 bytes, and it as (B, C,
    rows, columns)."""
    images, channels, rows, columns = out.shape
    filled = groups * aligned_length(channels // groups, out.itemsize)
    room = native.empty((images, rows, columns, filled), out.dtype)
    image, row, column, channel = room.strides
    return room, native.view(room, (images, filled, rows, columns), (image, channel, row, column), 0)


def _grouped(array: GPUArray, groups: int, own: int) -> GPUArray:
    """A view of (B, C, rows, columns) as (B, groups, the first `own` channels of a group, rows, columns)."""
    images, channels, *image = array.shape
    step, channel, *steps = array.strides
    shape = (images, groups, own, *image)
    return native.view(array, shape, (step, channels // groups * channel, channel, *steps), array.offset)


def _readable(
    x: GPUArray, groups: int, before: tuple[int, int], after: tuple[int, int], flat: bool = False
) -> GPUArray:
    """x itself where its channels are dense, all it steps by is whole 16 bytes, forward, and nothing outside it is
    seen, else a copy that is so; its groups' channels are filled up with zeros. flat: its
    places are equally far apart."""
    images, channels, *image = x.shape
    own, size = channels // groups, x.itemsize
    outer = list(zip((images, *image), (x.strides[0], *x.strides[2:]), strict=True))
    if (
        before == after == (0, 0)
        and (not flat or _is_flat(x))
        and x.strides[1] == size
        and raw.address(x) % ALIGNMENT == own * size % ALIGNMENT == 0
        and all(extent == 1 or (stride > 0 and stride % ALIGNMENT == 0) for extent, stride in outer)
        and sum((extent - 1) * stride for extent, stride in outer if extent > 1) // size + channels < 2**31
    ):
        return x
    return padded(x, groups, before, after)


def _dense(weight: GPUArray) -> GPUArray:
    """The weight itself where it is dense in that order and its rows are whole 16 bytes, else a copy that is so."""
    rows = weight.shape[-1] * weight.itemsize % ALIGNMENT == 0
    return weight if rows and weight.is_contiguous() and raw.address(weight) % ALIGNMENT == 0 else _filled(weight)


def _filled(array: GPUArray) -> GPUArray:
    """A dense copy whose rows are filled up with zeros to whole 16 bytes."""
    *outer, length = array.shape
    filled = aligned_length(length, array.itemsize)
    copy = native.empty((*outer, filled), array.dtype)
    if filled != length:
        native.fill(copy, bytes(copy.itemsize))
    copying.copy_to(array, native.view(copy, array.shape, copy.strides, copy.offset))
    return copy


def _steps(array: GPUArray) -> tuple[int, ...]:
    """Elements between neighbours along each axis, 0 where there are none."""
    axes = zip(array.shape, array.strides, strict=True)
    return tuple(0 if extent == 1 else stride // array.itemsize for extent, stride in axes)


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
