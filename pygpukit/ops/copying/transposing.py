"""Copies between layouts of one type: in pieces as wide as both allow, and transposed through shared memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.array import layout
from pygpukit.array.layout import Shape
from pygpukit.ops import host, raw
from pygpukit.ops.elementwise import pointwise
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

SOURCE = kernels.KernelSpec(__file__, "transpose.cu")
_TURN = SOURCE.structure("Turn")
_BLOCK = 256
_MIN_EXTENT = 8  # elements along both axes, from which on a tile pays
_PACKS = {1: 4, 2: 2}  # item size -> elements of a 4-byte word
_WORDS = {1: 64, 2: 64, 4: 64, 8: 32, 16: 32}  # words of a tile's row, by the word's size; 32 where elements are packed


@dataclass(frozen=True)
class _Walk:
    """A copy as axes: extents, and the strides of source and destination in bytes, with as few axes as possible."""

    shape: Shape
    source: Shape
    target: Shape
    itemsize: int


def copy(src: GPUArray, dst: GPUArray) -> None:
    """dst[...] = src, of one type; src broadcasts to dst's shape, both may have any strides and do not overlap."""
    if host.computes() or not dst.size:
        pointwise.unary(pointwise.COPY, src, dst)
        return
    walk = _widened(src, dst, _walk(src, dst))
    axes = _plane(walk)
    if axes is not None:
        _transpose(src, dst, walk, *axes)
        return
    if walk.itemsize == dst.itemsize:
        pointwise.unary(pointwise.COPY, src, dst)
        return
    dtype = raw.DTYPES[walk.itemsize]
    source = native.view(src, walk.shape, walk.source, src.offset, dtype)
    pointwise.unary(pointwise.COPY, source, native.view(dst, walk.shape, walk.target, dst.offset, dtype))


def is_transposed(array: GPUArray) -> bool:
    """True where an axis before the last is the dense one, so that elements of a row lie far apart."""
    dense = (
        n >= _MIN_EXTENT and step == array.itemsize for n, step in zip(array.shape[:-1], array.strides, strict=False)
    )
    return any(dense) and abs(array.strides[-1]) > 2 * array.itemsize


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that copy() can ask for, beside those of pointwise."""
    expressions = [_expression(itemsize, 1) for itemsize in raw.RAW]
    yield (*expressions, *(_expression(itemsize, pack) for itemsize, pack in _PACKS.items()))


def _walk(src: GPUArray, dst: GPUArray) -> _Walk:
    own = layout.broadcast_strides(src.shape, src.strides, dst.shape)
    shape, (source, target) = layout.collapse(dst.shape, [own, dst.strides])
    return _Walk(shape, source, target, dst.itemsize)


def _widened(src: GPUArray, dst: GPUArray, walk: _Walk) -> _Walk:
    """The same copy in wider elements, where the last axis is dense on both sides."""
    size = walk.itemsize
    if not walk.shape or walk.source[-1] != size or walk.target[-1] != size:
        return walk
    steps = walk.source[:-1] + walk.target[:-1]
    wide = raw.widest(raw.address(src), raw.address(dst), walk.shape[-1] * size, *steps)
    if wide <= size:
        return walk
    pieces = walk.shape[-1] * size // wide
    tail = ((pieces,), (wide,)) if pieces > 1 else ((), ())
    return _Walk(walk.shape[:-1] + tail[0], walk.source[:-1] + tail[1], walk.target[:-1] + tail[1], wide)


def _plane(walk: _Walk) -> tuple[int, int] | None:
    """(axis that is dense in the source, axis that is dense in the destination) when a tile of the two pays."""
    size, axes = walk.itemsize, range(len(walk.shape))
    columns = [axis for axis in axes if walk.source[axis] == size and walk.shape[axis] >= _MIN_EXTENT]
    rows = [axis for axis in axes if walk.target[axis] == size and walk.shape[axis] >= _MIN_EXTENT]
    if not columns or not rows or walk.source[rows[0]] == 0 or columns[0] == rows[0]:
        return None
    return columns[0], rows[0]


def _transpose(src: GPUArray, dst: GPUArray, walk: _Walk, column: int, row: int) -> None:
    size = walk.itemsize
    batch = [axis for axis in range(len(walk.shape)) if axis not in (column, row)]
    steps = walk.source[:column] + walk.source[column + 1 :] + walk.target[:row] + walk.target[row + 1 :]
    pack = _PACKS.get(size, 1)
    aligned = (raw.address(src), raw.address(dst), walk.shape[row] * size, walk.shape[column] * size, *steps)
    if raw.widest(*aligned) < pack * size:
        pack = 1
    tile = _words(size, pack) * pack
    rows, columns = walk.shape[row], walk.shape[column]
    down, across = -(-rows // tile), -(-columns // tile)
    (source, source_start), (target, target_start) = span(src), span(dst)
    ratio = size // src.itemsize
    extents, own = layout.collapse(
        tuple(walk.shape[axis] for axis in batch),
        [tuple(side[axis] for axis in batch) for side in (walk.source, walk.target)],
    )
    blocks = down * across
    for extent in extents:
        blocks *= extent
    packed = _TURN.pack(
        rows=rows,
        columns=columns,
        row_step=walk.source[row] // size,
        column_step=walk.target[column] // size,
        tiles_down=down,
        tiles_across=across,
        ndim=len(extents),
        shape=extents,
        start=(source_start // ratio, target_start // ratio),
        stride=[[step // size for step in side] for side in own],
    )
    kernels.launch(SOURCE.of(_expression(size, pack)), (blocks, 1, 1), (_BLOCK, 1, 1), source, target, packed)


def _words(itemsize: int, pack: int) -> int:
    return 32 if pack > 1 else _WORDS[itemsize]


def _expression(itemsize: int, pack: int) -> str:
    return f"pk::transpose<{raw.RAW[itemsize]}, {pack}, {_words(itemsize, pack)}>"
