"""Products of groups of rows in half precision on tensor cores: the launch of their tile kernels."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import product as product_of
from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.core import device
from pygpukit.kernels import KernelSpec, launch
from pygpukit.ops import copying
from pygpukit.ops.matmul.choose import choose
from pygpukit.ops.matmul.layout.operand import Operand, Stack, aligned_length, readable
from pygpukit.ops.matmul.problem import MAX_BATCH, Problem, family
from pygpukit.ops.matmul.tile.half import ELEMENTS
from pygpukit.ops.matmul.tile.tiling import Tile, fastest, tiles
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

GROUPED = KernelSpec(__file__, "grouped.cu", front_end="tile", ahead=("sm_90a",), instead=True)


def has_bits_of_tiles(x: GPUArray, w: GPUArray) -> bool:
    """True if the rows' product, and the groups' products of a row each, have the bits that tile kernels give."""
    (rows, k), (groups, _, n) = x.shape, w.shape
    kind, size = family(x.dtype, x.dtype, False), x.itemsize
    if kind is None or not 0 < groups <= MAX_BATCH:
        return False
    shapes = (((rows, k), (k, n)), ((groups, 1, k), (groups, k, n)))
    problems = (
        Problem(kind, x.dtype, x.dtype, Operand.dense(left, size), Operand.dense(right, size)) for left, right in shapes
    )
    return all(choose(problem).has_bits_of_tiles for problem in problems)


def operands(x: GPUArray, w: GPUArray) -> tuple[Stack, Stack]:
    """x, its rows along k, and a matrix of w for each group, as the kernels read them."""
    right = readable(w, "columns")
    if right.matrices != w.shape[0]:  # one for several
        right = readable(copying.contiguous(w), "columns")
    return readable(x, "rows", along_k=True), right


def product(x: GPUArray, w: GPUArray, counts: GPUArray, out: GPUArray) -> None:
    """out = the rows of x, each group of them times its matrix of w. counts: contiguous int32; out: contiguous."""
    (rows, k), (groups, _, n) = x.shape, w.shape
    left, right = operands(x, w)
    width = aligned_length(n, out.itemsize)
    dense = out if width == n else native.empty((rows, width), out.dtype)
    chosen = fastest("half", -(-rows // groups), n, k, groups, out.itemsize, device.current().sm_count, general=True)
    max_tiles = rows // chosen.rows + groups + 1  # a group's last tile may be a part
    launch(
        GROUPED.of(_expression(out.dtype.name, chosen, right.transposed)),
        (max_tiles * -(-n // chosen.columns), 1, 1),
        (1, 1, 1),
        span(left.array)[0],
        span(right.array)[0],
        counts,
        dense,
        *(struct.pack("<i", number) for number in (rows, n, k, groups, left.lead, right.lead, right.step)),
    )
    if dense is not out:
        copying.copy_to(native.view(dense, out.shape, dense.strides, dense.offset), out)


def _expression(dtype: str, tile: Tile, w_transposed: bool) -> str:
    flag = "true" if w_transposed else "false"
    return f"pk::matmul_grouped<{ELEMENTS[dtype]}, {tile.rows}, {tile.columns}, {tile.depth}, {tile.warps}, {flag}>"


@GROUPED.lists
def _listing() -> Iterator[tuple[str, ...]]:
    general = [tile for tile in tiles("half") if tile.general]
    for dtype, tile, w_transposed in product_of(ELEMENTS, general, (False, True)):
        yield (_expression(dtype, tile, w_transposed),)
