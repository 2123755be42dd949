"""Products of groups of rows by CUTLASS on SM 9.0: which ones, and the launch.

Its sums go over k in the order of the kernels in sm90/, so that a row's bits are theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product as product_of
from typing import TYPE_CHECKING

from pygpukit.core.dtypes import int64
from pygpukit.kernels import launch
from pygpukit.ops import copying
from pygpukit.ops.elementwise import clamp
from pygpukit.ops.matmul.cutlass import room
from pygpukit.ops.matmul.cutlass.room import Shape
from pygpukit.ops.matmul.sm90 import common
from pygpukit.ops.matmul.tile.grouped import operands
from pygpukit.ops.operands import span
from pygpukit.ops.scan import cumsum

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

BACKEND = room.BACKEND
SOURCE = room.source(__file__, "grouped.cu")
_CALL = SOURCE.structure("GroupsOfRows")
_ELEMENTS = {"bfloat16": "cutlass::bfloat16_t", "float16": "cutlass::half_t"}
_SHAPE = Shape(128, 128)
_MAX_TILES = 2**30


def unsupported(x: GPUArray, w: GPUArray) -> str:
    """Why the kernels do not make the products of grouped_matmul(), "" where they do."""
    if x.dtype.name not in _ELEMENTS:
        return f"CUTLASS's kernels for groups multiply float16 and bfloat16, not {x.dtype}"
    (rows, k), (groups, _, n) = x.shape, w.shape
    if not groups or not k:
        return f"x of shape {x.shape} and w of {w.shape} have nothing to multiply"
    if _tiles(rows, groups, n) >= _MAX_TILES:
        return f"x of shape {x.shape} and w of {w.shape} have more tiles than these kernels count"
    return room.missing(SOURCE.of(next(iter(_listing()))[0]), (groups, rows, n, k))


def _tiles(rows: int, groups: int, n: int) -> int:
    """Tiles of clusters, at most: each group's last one may be a part."""
    return (rows // (_SHAPE.rows * common.CLUSTER) + groups + 1) * -(-n // _SHAPE.columns)


def product(x: GPUArray, w: GPUArray, counts: GPUArray, out: GPUArray) -> None:
    """out = the rows of x, each group of them times its matrix of w. counts: integers; out: contiguous."""
    (rows, k), (groups, _, n) = x.shape, w.shape
    stacks = operands(x, w)
    transposed = not stacks[1].transposed
    lines = (common.CHUNK if transposed else _SHAPE.columns) // common.CLUSTER
    into = room.target(out)
    ends = clamp(cumsum(clamp(copying.astype(counts, int64), 0, rows), 0), 0, rows)
    launch(
        SOURCE.of(_expression(out.dtype.name, transposed)),
        (min(_tiles(rows, groups, n), room.clusters()) * common.CLUSTER, 1, 1),
        common.THREADS,
        _CALL.pack(rows=rows, n=n, k=k, groups=groups, line=into.shape[-1]),
        *common.mapped(stacks, (_SHAPE.rows, lines), (rows, n), (False, transposed), k),
        ends,
        span(into)[0],
    )
    room.finish(into, out)


def _expression(element: str, transposed: bool) -> str:
    flag = "true" if transposed else "false"
    return f"pk::cutlass_grouped<{_ELEMENTS[element]}, {_SHAPE.rows}, {_SHAPE.columns}, {flag}>"


@SOURCE.lists
def _listing() -> Iterator[tuple[str, ...]]:
    for element, transposed in product_of(_ELEMENTS, (False, True)):
        yield (_expression(element, transposed),)
