"""Products with a weight of few bits whose blocks lie by tiles of 16 rows, as lanes read them, and its values."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.core import device
from pygpukit.core.dtypes import bfloat16, float32, uint8
from pygpukit.models.dequantise import named
from pygpukit.ops.elementwise.pointwise import CTYPES

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DataType
    from pygpukit.nn.norm import Norm

SOURCE = kernels.KernelSpec(__file__, "in_tiles.cu", options=kernels.SAME_BITS)
WIDE = kernels.KernelSpec(__file__, "wide_in_tiles.cu", options=kernels.SAME_BITS)
TYPES = (bfloat16,)  # of x
_THREADS, _WARPS = 256, 8  # linear.cuh
_CHUNK, TILE_ROWS = 256, 16  # in_blocks.cuh: kChunk, kTileRows
_ROWS, _HELD = 8, 2  # of x, that a block takes; blocks that a multiprocessor holds
_WIDE_ROWS, _WIDE_WARPS = 32, 4  # wide_in_tiles.cuh: of x, that a block takes; each has a tile
_NORM_COLUMNS = 16384  # 32 KB of shared memory, of which a block has 48 without asking
EPILOGUES = {"store": "pk::kStore", "add": "pk::kAdd", "silu": "pk::kSilu"}

KINDS = ("Q4_0", "Q4_1", "Q8_0", "Q4_K", "Q6_K", "I8_128", "FP8_128", "I4_128", "NVFP4", "MXFP4")
_GROUPS_OF_16 = ("Q6_K", "NVFP4")  # of values, with a scale each
_MORE = {"Q4_K": 4}  # bytes that a block takes more than in its file: scales of six bits have eight


def takes(kind: str, rows: int, columns: int) -> bool:
    """True for a weight that can lie by tiles: of whole ones, and an even number of them."""
    return kind in KINDS and rows % (2 * TILE_ROWS) == 0 and columns % _CHUNK == 0


def row_bytes(kind: str, columns: int) -> int:
    """Bytes of a row by tiles."""
    block = named(kind)
    return columns // block.elements * (block.bytes + _MORE.get(kind, 0))


def as_in_file(kind: str, tiles: GPUArray, columns: int) -> GPUArray:
    """The beginning of that memory as rows of blocks (rows, bytes), from where arrange() takes them."""
    block = named(kind)
    width = columns // block.elements * block.bytes
    return native.view(tiles, (tiles.shape[0], width), (width, 1), tiles.offset)


def arrange(kind: str, tiles: GPUArray, columns: int) -> None:
    """Let blocks that lie as_in_file() lie by tiles."""
    stored = as_in_file(kind, tiles, columns)
    blocks = native.empty(stored.shape, uint8)
    native.copy(blocks, stored)
    _arrange(kind, blocks, tiles, columns)


def tiled(kind: str, blocks: GPUArray, columns: int) -> GPUArray:
    """Rows of blocks (rows, bytes) by tiles, in memory of their own: uint8 (rows, bytes)."""
    tiles = native.empty((blocks.shape[0], row_bytes(kind, columns)), uint8)
    _arrange(kind, blocks, tiles, columns)
    return tiles


def _arrange(kind: str, blocks: GPUArray, tiles: GPUArray, columns: int) -> None:
    count = blocks.shape[0] // TILE_ROWS
    call = struct.pack("<3q", columns, blocks.shape[1], count)  # in_tiles.cu: TilingCall
    grid = (-(-count * (columns // _CHUNK) // _WARPS), 1, 1)
    kernels.launch(SOURCE.of(_tiling(kind)), grid, (_THREADS, 1, 1), blocks, tiles, call)


def product(
    x: GPUArray, kind: str, tiles: GPUArray, bias: GPUArray | None, out: GPUArray, epilogue: str, first: int = 0, *,
    overlaps: bool = False, wide: bool | None = None, norm: Norm | None = None,
) -> None:  # fmt: skip
    """out[:, first:] = epilogue(x W^T + bias), as LinearBF16.project(), of a weight by tiles (rows, bytes).

    norm: an RMS norm of one row of float32, which has the bits that a launch of its own gives. wide: whether by the
    kernel for many rows, which gives the same bits; None: where that is the faster one.
    """
    rows, sides = x.shape[0], 2 if epilogue == "silu" else 1
    columns = tiles.shape[0] // sides
    call = struct.pack(  # in_tiles.cuh: TilesCall
        "<4q2i", columns, x.shape[1], first, out.shape[1], rows, bias is not None
    )
    if norm is not None:
        _norm_product(x, kind, tiles, bias, out, epilogue, call, norm, overlaps)
        return
    count, multiprocessors = columns // TILE_ROWS, device.current().sm_count
    grid = -(-count * sides // _WIDE_WARPS), -(-rows // _WIDE_ROWS), 1
    if wide or (wide is None and rows > 2 * _ROWS and grid[0] * grid[1] >= multiprocessors):
        threads, expression = 32 * _WIDE_WARPS, _wide(x.dtype, out.dtype, kind, epilogue)
        spec = WIDE.of(expression, shared_bytes=_wide_bytes(kind), overlapping=overlaps)
    else:
        groups = -(-rows // _ROWS)
        grid = min(count, max(multiprocessors * _HELD // groups, 1)), groups, 1
        threads, expression = _THREADS, _product(x.dtype, out.dtype, kind, rows == 1, epilogue)
        spec = SOURCE.of(expression, overlapping=overlaps)
    kernels.launch(spec, grid, (threads, 1, 1), x, tiles, x if bias is None else bias, out, call)


def _norm_product(
    x: GPUArray, kind: str, tiles: GPUArray, bias: GPUArray | None, out: GPUArray, epilogue: str, call: bytes,
    norm: Norm, overlaps: bool,
) -> None:  # fmt: skip
    columns = x.shape[1]
    shifts = norm.bias is not None
    of_norm = struct.pack("<2q3if", columns, columns, 1, False, shifts, norm.eps)  # linear.cuh: LinearCall
    expression = _product(norm.weight.dtype, out.dtype, kind, True, epilogue).replace("row_in", "norm_row_in")
    spec = SOURCE.of(expression, shared_bytes=columns * norm.weight.itemsize, overlapping=overlaps)
    count = tiles.shape[0] // (2 if epilogue == "silu" else 1) // TILE_ROWS
    grid = min(count, device.current().sm_count * _HELD), 1, 1
    arrays = x, norm.weight, norm.shift, tiles, norm.weight if bias is None else bias, out
    kernels.launch(spec, grid, (_THREADS, 1, 1), *arrays, call, of_norm)


def takes_norm(norm: Norm, columns: int) -> bool:
    """True for a norm that product() computes: one whose row a block has room for."""
    return norm.norm_type == "rmsnorm" and norm.operation is None and columns <= _NORM_COLUMNS


def values(
    kind: str, tiles: GPUArray, columns: int, order: GPUArray | None, out: GPUArray, *, tokens: GPUArray | None = None,
    positions: GPUArray | None = None, learned: GPUArray | None = None, dtype: DataType = bfloat16,
) -> None:  # fmt: skip
    """Values of all rows, or of those of tokens, and of positions where those are learned; dtype: learned's."""
    rows, units = out.shape[0], columns // _CHUNK
    call = struct.pack(  # in_tiles.cu: TileValuesCall
        "<2q3i4x", columns, rows, tokens is not None, learned is not None, order is not None
    )
    warps = rows // TILE_ROWS * units if tokens is None else rows * -(-units // 8)
    arrays = [out if array is None else array for array in (tokens, positions, tiles, order, learned)]
    spec = SOURCE.of(_values(dtype, out.dtype, kind, tokens is None and order is None))
    kernels.launch(spec, (-(-warps // _WARPS), 1, 1), (_THREADS, 1, 1), *arrays, out, call)


def _product(dtype: DataType, out: DataType, kind: str, is_one: bool, epilogue: str) -> str:
    types = f"{CTYPES[dtype.name]}, {CTYPES[out.name]}, pk::{kind}"
    return f"pk::{'row' if is_one else 'rows'}_in_tiles<{types}, {EPILOGUES[epilogue]}>"


def _wide(dtype: DataType, out: DataType, kind: str, epilogue: str) -> str:
    return f"pk::wide_in_tiles<{CTYPES[dtype.name]}, {CTYPES[out.name]}, pk::{kind}, {EPILOGUES[epilogue]}>"


def _wide_bytes(kind: str) -> int:
    """Memory of a block of threads: wide_in_tiles.cuh's WideRows, twice."""
    return 2 * _WIDE_ROWS * (544 if kind in _GROUPS_OF_16 else 576)


def _values(dtype: DataType, out: DataType, kind: str, is_plain: bool) -> str:
    types = f"{CTYPES[dtype.name]}, {CTYPES[out.name]}, pk::{kind}"
    return f"pk::values_of_tiles<{types}, {'true' if is_plain else 'false'}>"


def _tiling(kind: str) -> str:
    return f"pk::tiles_of_blocks<pk::{kind}>"


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that a model with such weights can ask for."""
    for kind in KINDS:
        for dtype in TYPES:
            yield (
                *(_product(dtype, out, kind, one, name) for out, name in _forms(dtype) for one in (True, False)),
                *(_values(dtype, out, kind, plain) for out in (dtype, float32) for plain in (True, False)),
                *(
                    _product(dtype, out, kind, True, name).replace("row_in", "norm_row_in")
                    for out, name in _forms(dtype)
                    if name != "add"
                ),
                _tiling(kind),
            )


@WIDE.lists
def wide_instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel for many rows that such a model can ask for."""
    for kind in KINDS:
        for dtype in TYPES:
            yield tuple(_wide(dtype, out, kind, name) for out, name in _forms(dtype))


def _forms(dtype: DataType) -> tuple[tuple[DataType, str], ...]:
    """Types of the result, and epilogues."""
    return (dtype, "store"), (float32, "store"), (float32, "add"), (dtype, "silu")
