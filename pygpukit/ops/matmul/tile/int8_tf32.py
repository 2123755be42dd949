"""Products of int8 with int32 sums, and of float32 rounded to tf32, on tensor cores: the launch of tile kernels."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.core import device
from pygpukit.kernels import KernelSpec, launch
from pygpukit.ops import raw
from pygpukit.ops.matmul.layout.operand import ALIGNMENT, aligned_length, readable
from pygpukit.ops.matmul.tile.tiling import Tile, fastest, tiles
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

NARROW = KernelSpec(__file__, "int8_tf32.cu", front_end="tile", ahead=("sm_90a",), instead=True)
_FAMILIES = {"int8": "int8", "float32": "tf32"}  # by the operands' type
_ELEMENTS = {"int8": "signed char", "tf32": "float"}


def product(a: GPUArray, b: GPUArray, out: GPUArray) -> None:
    """out = a @ b with the same batch axes: int8 into int32, or float32."""
    from pygpukit.ops import copying

    m, n, k = out.shape[-2], out.shape[-1], a.shape[-1]
    left, right = readable(a, "rows", along_k=True), readable(b, "columns", along_k=True)
    width = aligned_length(n, out.itemsize)
    direct = width == n and out.is_contiguous() and raw.address(out) % ALIGNMENT == 0
    dense = out if direct else native.empty((*out.shape[:-1], width), out.dtype)
    batches, one = prod(out.shape[:-2]), chosen(a, b)
    numbers = (batches, m, n, k, left.lead, right.lead, left.step, right.step)
    repeats = (left.matrices, left.repeat, right.matrices, right.repeat)
    launch(
        NARROW.of(_expression(_FAMILIES[a.dtype.name], one)),
        (-(-m // one.rows) * -(-n // one.columns), batches, 1),
        (1, 1, 1),
        span(left.array)[0],
        span(right.array)[0],
        dense,
        *(struct.pack("<i", number) for number in (*numbers, *repeats)),
    )
    if not direct:
        copying.copy_to(native.view(dense, out.shape, dense.strides, dense.offset), out)


def chosen(a: GPUArray, b: GPUArray) -> Tile:
    """The tile that product() takes for these operands. Copies and launches nothing."""
    *batch, m, k = a.shape
    family = _FAMILIES[a.dtype.name]
    return fastest(family, m, b.shape[-1], k, prod(batch), a.itemsize, device.current().sm_count)


def _expression(family: str, one: Tile) -> str:
    return f"pk::narrow<{_ELEMENTS[family]}, {one.rows}, {one.columns}, {one.depth}, {one.warps}>"


@NARROW.lists
def _listing() -> Iterator[tuple[str, ...]]:
    for family in _ELEMENTS:
        for one in tiles(family):
            yield (_expression(family, one),)
