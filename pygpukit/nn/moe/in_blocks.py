"""Products of rows that lie by experts with weights in blocks of few bits: a kernel for every kind of block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from pygpukit import kernels
from pygpukit.nn.linear import in_blocks
from pygpukit.nn.linear.blocks import Blocks
from pygpukit.ops.elementwise.pointwise import CTYPES

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DataType

SOURCE = kernels.KernelSpec(__file__, "experts_in_blocks.cu", options=kernels.SAME_BITS)
WIDE = kernels.KernelSpec(__file__, "wide_experts_in_blocks.cu", options=kernels.SAME_BITS)
_CALL = SOURCE.structure("BlocksCall")
_THREADS = 256  # linear.cuh
_TILE_COLUMNS, _TILES = 16, (1, 4)  # in_blocks.cuh: kTileRows; of eight rows, that a block takes
_WIDE_COLUMNS, _HALVES = 256, 2  # wide_in_blocks.cuh: of a block, and of 16 lines that a warp takes


def takes(weight: GPUArray | Blocks) -> bool:
    """True for a weight of all experts whose products read its blocks: of one kind, the columns in their order."""
    if not isinstance(weight, Blocks) or weight.dtype not in in_blocks.TYPES or len(weight.parts) != 1:
        return False
    (part,) = weight.parts
    return part.kind in in_blocks.KINDS and part.order is None


class Form(NamedTuple):
    """A kernel: the rows that a block takes, and stages of that for many rows, 0 of those for few."""

    height: int
    stages: int = 0


def product(x: GPUArray, weight: Blocks, counts: GPUArray, out: GPUArray, form: Form | None = None) -> None:
    """out (C, n) = rows x (C, k) by experts, so many of each as counts (experts,) says, times its weight. A row's
    bits depend on it and its expert alone."""
    (part,) = weight.parts
    (choices, columns), experts = out.shape, counts.shape[0]
    height, stages = form or form_of(part.kind, choices, experts)
    call = _CALL.pack(
        n=columns,
        k=weight.columns,
        row_bytes=part.array.shape[1],
        size=part.array.nbytes,
        first=0,
        stride=columns,
        rows=choices,
        has_bias=0,
    )
    if stages:
        spec, across = _wide(weight.dtype, part.kind, stages), -(-columns // _WIDE_COLUMNS)
    else:
        spec, across = _narrow(weight.dtype, part.kind, height // 8), -(-columns // _TILE_COLUMNS)
    tiles = min(choices, experts) + choices // height  # an expert's last one may be a part
    kernels.launch(
        spec, (across, tiles, 1), (_THREADS, 1, 1), x, counts, part.array, out, experts.to_bytes(4, "little"), call
    )


def form_of(kind: str, choices: int, experts: int) -> Form:
    """The kernel for so many rows of an expert. A row has the same bits by all of them."""
    each = choices / min(choices, experts)
    if each <= 8:
        return Form(8 * _TILES[0])
    stages = in_blocks.wide_stages(kind, _HALVES) if each > 24 else 0
    return Form(in_blocks.WIDE_ROWS, stages) if stages else Form(8 * _TILES[-1])


def _narrow(dtype: DataType, kind: str, tiles: int) -> kernels.KernelSpec:
    expression = f"pk::experts_in_blocks<{CTYPES[dtype.name]}, pk::{kind}, {tiles}>"
    return SOURCE.of(expression, shared_bytes=in_blocks.shared_bytes(kind), overlapping=True)


def _wide(dtype: DataType, kind: str, stages: int) -> kernels.KernelSpec:
    expression = f"pk::wide_experts_in_blocks<{CTYPES[dtype.name]}, pk::{kind}, {stages}>"
    return WIDE.of(expression, shared_bytes=stages * in_blocks.wide_stage(kind, _HALVES), overlapping=True)


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that experts of few rows in blocks can ask for."""
    for kind in in_blocks.KINDS:
        for dtype in in_blocks.TYPES:
            yield tuple(_narrow(dtype, kind, tiles).expression for tiles in _TILES)


@WIDE.lists
def wide_instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that experts of many rows in blocks can ask for."""
    for kind in in_blocks.KINDS:
        for dtype in in_blocks.TYPES:
            yield tuple(_wide(dtype, kind, stages).expression for stages in (1, 2))
