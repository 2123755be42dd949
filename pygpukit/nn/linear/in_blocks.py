"""Products with a weight in blocks of few bits on a device, and its values: a kernel for every kind of block."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.core import device
from pygpukit.core.dtypes import bfloat16, float32
from pygpukit.models.dequantise import named
from pygpukit.nn.linear import in_tiles
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.indexing import take

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DataType
    from pygpukit.nn.linear.blocks import Blocks, Part
    from pygpukit.nn.norm import Norm

SOURCE = kernels.KernelSpec(__file__, "in_blocks.cu", options=kernels.SAME_BITS)
WIDE = kernels.KernelSpec(__file__, "wide_in_blocks.cu", options=kernels.SAME_BITS)
TYPES = (bfloat16,)  # of x
_THREADS, _WARPS = 256, 8  # linear.cuh
_CHUNK, _TILE_ROWS, _ROOM = 256, 16, 10240  # in_blocks.cuh: kChunk, kTileRows, kStageRoom
WIDE_ROWS, _WIDE_LINES = 64, 16  # wide_in_blocks.cuh
_WIDE_STAGES, _FIXED = 2, 1 << 10  # of wide kernels; bytes that a launch has of its own
_TILES = (1, 4)  # of eight rows of x, that a block takes
EPILOGUES = {"store": "pk::kStore", "add": "pk::kAdd", "silu": "pk::kSilu"}


KINDS = (
    "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "IQ4_NL", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_XS", "I8_32",
    "I8_128", "I8Z_32", "I8Z_128", "FP8_32", "FP8_128", "I4_32", "I4_128", "NVFP4", "MXFP4",
)  # fmt: skip


@cache
def shared_bytes(kind: str) -> int:
    """Memory of a block of threads: in_blocks.cuh's Staged."""
    stage = _TILE_ROWS * _pitch(kind)
    return _WARPS * stage * min(max(_ROOM // stage, 1), 4)


@cache
def wide_stage(kind: str, halves: int = 1) -> int:
    """Memory of a stage of a block of threads: wide_in_blocks.cuh's WideStage."""
    return WIDE_ROWS * (2 * _CHUNK + 32) + _WARPS * halves * _WIDE_LINES * _pitch(kind)


@cache
def wide_stages(kind: str, halves: int = 1) -> int:
    """So many of them, at most two, a block of threads has room for."""
    room = int(native.device_info(native.current_device())["max_shared_per_block_optin_bytes"]) - _FIXED
    return min(room // wide_stage(kind, halves), _WIDE_STAGES)


def _pitch(kind: str) -> int:
    """Bytes from a line of a weight in shared memory to the next."""
    block = named(kind)
    return 16 * ((_CHUNK // block.elements * block.bytes + 14) // 16 + 1 | 1)


def product(
    x: GPUArray, weight: Blocks, bias: GPUArray | None, out: GPUArray, epilogue: str, *, overlaps: bool = False,
    wide: bool | None = None, norm: Norm | None = None,
) -> None:  # fmt: skip
    """out = epilogue(x W^T + bias), as LinearBF16.project(): one launch a part of the weight. silu: of one part.

    norm: that x has first, where takes_norm(). wide: whether by the kernel for many rows, which gives the same bits;
    None: where that is the faster one.
    """
    rows, width, first = x.shape[0], out.shape[1], 0
    rows_of_x, order = x, None
    tiles = _TILES[0] if rows <= 8 * _TILES[0] else _TILES[-1]
    for part in weight.parts:
        if part.order is not order:
            order = part.order
            x = rows_of_x if order is None else take(rows_of_x, order, 1, mode="clip")
        columns = part.array.shape[0] // (2 if epilogue == "silu" else 1)
        own = None if bias is None else bias[first : first + part.array.shape[0]]
        if part.tiled:
            in_tiles.product(x, part.kind, part.array, own, out, epilogue, first, overlaps=overlaps, norm=norm)
            first += columns
            continue
        call = struct.pack(  # in_blocks.cuh: BlocksCall
            "<6q2i",
            columns,
            weight.columns,
            part.array.shape[1],
            part.array.nbytes,
            first,
            width,
            rows,
            own is not None,
        )
        tile = _TILE_ROWS // (2 if epilogue == "silu" else 1)
        grid = -(-columns // (_WARPS * tile)), -(-rows // WIDE_ROWS), 1
        if wide or (wide is None and rows > 8 * _TILES[-1] and _takes_wide(part.kind, grid)):
            expression = _wide(weight.dtype, out.dtype, part.kind, epilogue)
            room = _WIDE_STAGES * wide_stage(part.kind)
            spec = WIDE.of(expression, shared_bytes=room, overlapping=overlaps)
        else:
            expression = _product(weight.dtype, out.dtype, part.kind, tiles, epilogue)
            spec = SOURCE.of(expression, shared_bytes=shared_bytes(part.kind), overlapping=overlaps)
            grid = _grid(-(-columns // tile), -(-rows // (8 * tiles)), tiles)
        kernels.launch(spec, grid, (_THREADS, 1, 1), x, part.array, x if own is None else own, out, call)
        first += columns


def takes_norm(weight: Blocks, norm: Norm, rows: int) -> bool:
    """True where product() computes the norm, too: of one row, by a weight by tiles with columns in their order."""
    return (
        rows == 1
        and all(part.tiled and part.order is None for part in weight.parts)
        and in_tiles.takes_norm(norm, weight.columns)
    )


def values(part: Part, columns: int, out: GPUArray) -> None:
    """The values of all rows of a part, rounded once to out's type; out: (rows, columns)."""
    _values(part, columns, part.array.shape[0], None, None, None, out.dtype, out)


def rows_of(
    part: Part, columns: int, tokens: GPUArray, positions: GPUArray, learned: GPUArray | None, dtype: DataType,
    out: GPUArray,
) -> None:  # fmt: skip
    """The values of the rows of tokens, and of positions where those are learned, float32; dtype: learned's."""
    _values(part, columns, tokens.shape[0], tokens, positions, learned, dtype, out)


def _values(
    part: Part, columns: int, rows: int, tokens: GPUArray | None, positions: GPUArray | None, learned: GPUArray | None,
    dtype: DataType, out: GPUArray,
) -> None:  # fmt: skip
    if part.tiled:
        in_tiles.values(
            part.kind, part.array, columns, part.order, out, tokens=tokens, positions=positions, learned=learned,
            dtype=dtype,
        )  # fmt: skip
        return
    call = struct.pack(  # in_blocks.cu: ValuesCall
        "<3q3i4x", columns, part.array.shape[1], rows, tokens is not None, learned is not None, part.order is not None
    )
    arrays = [tokens, positions, part.array, part.order, learned]
    spec = SOURCE.of(_values_name(dtype, out.dtype, part.kind))
    grid = (-(-columns // (8 * _THREADS)), min(rows, 65535), 1)
    kernels.launch(spec, grid, (_THREADS, 1, 1), *[out if a is None else a for a in arrays], out, call)


def _grid(tiles: int, rows: int, tiles_of_rows: int) -> tuple[int, int, int]:
    """Blocks of threads: as many as the device holds at a time, each for several tiles; rows: blocks of them in y."""
    held = device.current().sm_count * (2 if tiles_of_rows == 1 else 1)
    return min(tiles, max(held // rows, 1)), rows, 1


def _takes_wide(kind: str, grid: tuple[int, int, int]) -> bool:
    """True where the kernel for many rows is the faster one."""
    # On an H200 its blocks take 67 us for 4096 of k, however few they are, and the other kernel as long for the columns
    # of 52 of them.
    fills = 5 * grid[0] * grid[1] >= 2 * device.current().sm_count
    return fills and wide_stages(kind) == _WIDE_STAGES


def _product(dtype: DataType, out: DataType, kind: str, tiles: int, epilogue: str) -> str:
    types = f"{CTYPES[dtype.name]}, {CTYPES[out.name]}"
    return f"pk::linear_in_blocks<{types}, pk::{kind}, {tiles}, {EPILOGUES[epilogue]}>"


def _wide(dtype: DataType, out: DataType, kind: str, epilogue: str) -> str:
    types = f"{CTYPES[dtype.name]}, {CTYPES[out.name]}"
    return f"pk::wide_linear_in_blocks<{types}, pk::{kind}, {EPILOGUES[epilogue]}>"


def _values_name(dtype: DataType, out: DataType, kind: str) -> str:
    return f"pk::values_of_blocks<{CTYPES[dtype.name]}, {CTYPES[out.name]}, pk::{kind}>"


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that a model with such weights can ask for."""
    for kind in KINDS:
        for dtype in TYPES:
            yield (
                *(_product(dtype, out, kind, tiles, name) for out, name in _forms(dtype) for tiles in _TILES),
                *(_values_name(dtype, out, kind) for out in (dtype, float32)),
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
