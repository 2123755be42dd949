"""Layouts of images, weights and results in memory: what tensor cores read and write in place, copies of the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.ops import copying, raw
from pygpukit.ops.matmul.layout.operand import ALIGNMENT, Operand, aligned_length
from pygpukit.ops.nn.conv.padded import padded

if TYPE_CHECKING:
    from collections.abc import Callable

    from pygpukit.array.array import GPUArray
    from pygpukit.ops.nn.conv.problem import Call


def by_group(weight: GPUArray, groups: int, transposed: bool) -> GPUArray:
    """A view of a weight with rows: (groups, channels of the result, kernel rows, kernel columns, of the input)."""
    first, second, *kernel = weight.shape
    outer, inner, *steps = weight.strides
    own = first // groups
    shape = (groups, second, *kernel, own) if transposed else (groups, own, *kernel, second)
    strides = (own * outer, inner, *steps, outer) if transposed else (own * outer, outer, *steps, inner)
    return native.view(weight, shape, strides, weight.offset)


def has_pieces(image: Operand, size: int) -> bool:
    """True where channels are dense and those of each place, of all groups, are whole pieces of so many bytes."""
    axes = zip(image.shape, image.strides, strict=True)
    apart = (step for axis, (extent, step) in enumerate(axes) if extent > 1 and axis != 1)
    return image.strides[1] == image.itemsize and not any(n % size for n in (image.address, *apart))


def has_lines(image: Operand) -> bool:
    """True where a channel's places are dense, whole 16 bytes, and so are the steps between channels and images."""
    images, channels, rows, columns = image.shape
    own, channel, row, column = image.strides
    size = image.itemsize
    return (
        (columns == 1 or column == size)
        and (rows == 1 or row == columns * size)
        and image.address == rows * columns * size % ALIGNMENT == 0
        and all(n == 1 or (step > 0 and step % ALIGNMENT == 0) for n, step in ((images, own), (channels, channel)))
    )


def _pitch(array: GPUArray) -> int:
    """Bytes from one place to the next. The steps of axes of one place say nothing."""
    _, _, rows, columns = array.shape
    image, _, row, column = array.strides
    return column if columns > 1 else row if rows > 1 else image


def _is_flat(array: GPUArray) -> bool:
    """True where all places are equally far apart."""
    images, _, rows, columns = array.shape
    image, _, row, column = array.strides
    return (rows == 1 or columns == 1 or row == columns * column) and (
        images == 1 or image == rows * columns * _pitch(array)
    )


def flat_view(array: GPUArray, order: str) -> GPUArray:
    """A view with all places as columns; kLast: those of all images."""
    images, channels, rows, columns = array.shape
    image, channel, _, _ = array.strides
    shape = (1, channels, 1, images * rows * columns) if order == "kLast" else (images, channels, 1, rows * columns)
    return native.view(array, shape, (image, channel, _pitch(array), _pitch(array)), array.offset)


def with_dense_channels(out: GPUArray, storage: GPUArray, groups: int) -> tuple[GPUArray, GPUArray]:
    """(storage, result): those that are given where channels are dense and those of a group whole 16 bytes, else new
    ones that are so, filled up; put_back() copies them."""
    images, channels, rows, columns = out.shape
    filled = groups * aligned_length(channels // groups, out.itemsize)
    if out.strides[1] == out.itemsize and filled == channels:
        return storage, out
    room = native.empty((images, rows, columns, filled), out.dtype)
    image, row, column, channel = room.strides
    return room, native.view(room, (images, filled, rows, columns), (image, channel, row, column), 0)


def put_back(source: GPUArray, out: GPUArray, groups: int) -> None:
    """Copy what with_dense_channels() gave into the result, where it is not the result itself."""
    if source is not out:
        own = out.shape[1] // groups
        copying.copy_to(_by_group(source, groups, own), _by_group(out, groups, own))


def in_dense_channels(
    call: Call, groups: int, convolve: Callable[[GPUArray, GPUArray, GPUArray | None, GPUArray, GPUArray], None]
) -> None:
    """Call convolve(x, w, bias, out, storage) with arrays whose channels are dense; its result goes into the call's."""
    x = readable(call.input, groups, (0, 0), (0, 0))
    w = dense(by_group(call.weight, groups, False))
    storage, out = with_dense_channels(call.out, call.storage, groups)
    convolve(x, w, call.bias, out, storage)
    put_back(out, call.out, groups)


def _by_group(array: GPUArray, groups: int, own: int) -> GPUArray:
    """A view of (B, C, rows, columns) as (B, groups, the first `own` channels of a group, rows, columns)."""
    images, channels, *image = array.shape
    step, channel, *steps = array.strides
    shape = (images, groups, own, *image)
    return native.view(array, shape, (step, channels // groups * channel, channel, *steps), array.offset)


def readable(x: GPUArray, groups: int, before: tuple[int, int], after: tuple[int, int], flat: bool = False) -> GPUArray:
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


def dense(weight: GPUArray) -> GPUArray:
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


def steps(array: GPUArray) -> tuple[int, ...]:
    """Elements between neighbours along each axis, 0 where there are none."""
    axes = zip(array.shape, array.strides, strict=True)
    return tuple(0 if extent == 1 else stride // array.itemsize for extent, stride in axes)
