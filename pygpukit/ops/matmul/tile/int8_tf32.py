"""Products of int8 with int32 sums, and of float32 rounded to tf32, on tensor cores: the launch of tile kernels."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.core import device
from pygpukit.kernels import KernelSpec, launch, lost
from pygpukit.ops import raw
from pygpukit.ops.matmul import times
from pygpukit.ops.matmul.epilogue.epilogue import in_another_launch
from pygpukit.ops.matmul.layout.operand import ALIGNMENT, aligned_length, readable
from pygpukit.ops.matmul.tile import half
from pygpukit.ops.matmul.tile.tiling import Tile, fastest, tiles
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.matmul.epilogue.epilogue import Epilogue
    from pygpukit.ops.matmul.problem import Problem

NARROW = KernelSpec(__file__, "int8_tf32.cu", front_end="tile", ahead=("sm_90a",), instead=True)
_FAMILIES = {"int8": "int8", "float32": "tf32"}  # by the operands' type
_ELEMENTS = {"int8": "signed char", "tf32": "float"}
_DONE = {
    "int8": "{} on tensor cores, summed in int32, exactly",
    "tf32": "{} rounded to tf32 on tensor cores, summed in float32",
}
BACKEND = "tile"
finishes = in_another_launch


def refusal(p: Problem) -> str:
    """Why the tile kernels do not make a product, "" where they do."""
    if p.family not in _ELEMENTS:
        return "they multiply int8, and float32 rounded to tf32"
    return half.missing() or lost.why(NARROW)


def tiling(p: Problem) -> Tile:
    """The tile of one block."""
    products, m, n, k = p.extents
    return fastest(p.family or "", m, n, k, products, p.dtype.itemsize, p.device.sm_count)


def time_us(p: Problem) -> float:
    """The time of the fastest tile by the measured times."""
    products, m, n, k = p.folded.extents
    size, sms = p.dtype.itemsize, p.device.sm_count
    return fastest(p.family or "", m, n, k, products, size, sms).time_us(m, n, k, products, size, sms)


def reason(p: Problem) -> str:
    """The computation, and how the tile was chosen."""
    return f"{_DONE[p.family or ''].format(p.dtype)}; the fastest tile by {times.source()}"


def run(p: Problem, a: GPUArray, b: GPUArray, out: GPUArray, epilogue: Epilogue | None = None) -> None:
    """out = a @ b with the same batch axes: int8 into int32, or float32."""
    product(a, b, out)


def product(a: GPUArray, b: GPUArray, out: GPUArray) -> None:
    """out = a @ b with the same batch axes: int8 into int32, or float32."""
    from pygpukit.ops import copying

    m, n, k = out.shape[-2], out.shape[-1], a.shape[-1]
    left, right = readable(a, "rows", along_k=True), readable(b, "columns", along_k=True)
    width = aligned_length(n, out.itemsize)
    direct = width == n and out.is_contiguous() and raw.address(out) % ALIGNMENT == 0
    dense = out if direct else native.empty((*out.shape[:-1], width), out.dtype)
    batches, family = prod(out.shape[:-2]), _FAMILIES[a.dtype.name]
    tile = fastest(family, m, n, k, batches, a.itemsize, device.current().sm_count)
    numbers = (batches, m, n, k, left.lead, right.lead, left.step, right.step)
    repeats = (left.matrices, left.repeat, right.matrices, right.repeat)
    launch(
        NARROW.of(_expression(family, tile)),
        (-(-m // tile.rows) * -(-n // tile.columns), batches, 1),
        (1, 1, 1),
        span(left.array)[0],
        span(right.array)[0],
        dense,
        *(struct.pack("<i", number) for number in (*numbers, *repeats)),
    )
    if not direct:
        copying.copy_to(native.view(dense, out.shape, dense.strides, dense.offset), out)


def _expression(family: str, tile: Tile) -> str:
    return f"pk::narrow<{_ELEMENTS[family]}, {tile.rows}, {tile.columns}, {tile.depth}, {tile.warps}>"


@NARROW.lists
def _listing() -> Iterator[tuple[str, ...]]:
    for family in _ELEMENTS:
        for tile in tiles(family):
            yield (_expression(family, tile),)
