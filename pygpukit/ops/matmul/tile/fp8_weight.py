"""Products of half precision with fp8 weights on tensor cores: which ones the tile kernels take, and their launch."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import product as product_of
from typing import TYPE_CHECKING, NamedTuple

from pygpukit._core import native
from pygpukit.core import device
from pygpukit.core.dtypes import float32
from pygpukit.kernels import KernelSpec, launch, lost
from pygpukit.ops import copying
from pygpukit.ops.matmul.layout.operand import readable
from pygpukit.ops.matmul.tile import half
from pygpukit.ops.matmul.tile.fp8 import BLOCK
from pygpukit.ops.matmul.tile.fp8 import ELEMENTS as WEIGHTS
from pygpukit.ops.matmul.tile.half import ELEMENTS
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.matmul.problem import Problem
    from pygpukit.ops.matmul.tile.fp8 import Scale

DECODED = KernelSpec(__file__, "fp8_weight.cu", front_end="tile", ahead=("sm_90a",), instead=True)

BACKEND = "tile"


class _Tile(NamedTuple):
    rows: int
    columns: int
    warps: int
    blocks: int


_TILES = (_Tile(16, 64, 4, 2), _Tile(64, 64, 4, 2), _Tile(128, 128, 8, 1))  # the first that has all rows, or the last
_BUSY = _Tile(16, 64, 4, 4)  # in place of the first where every multiprocessor has a block


def unscalable(a: GPUArray, b: GPUArray, left: Scale, right: Scale) -> str:
    """Why the tile kernels do not take these types and scales, "" where they do."""
    if a.dtype.name not in ELEMENTS or b.dtype.name not in WEIGHTS:
        return f"tensor cores take float16 or bfloat16 times fp8, or fp8 of one type, these are {a.dtype} and {b.dtype}"
    if left.by_block or (right.by_block and right.lines != BLOCK):
        return "beside a weight of fp8 the tile kernel takes scales of rows, of columns, or of blocks of 128 x 128 of b"
    return ""


def refusal(p: Problem) -> str:
    """Why the tile kernels do not make a product, "" where they do."""
    if p.family != "decoded":
        return "they multiply half precision with fp8 weights"
    return half.missing() or lost.why(DECODED)


def tiling(p: Problem) -> None:
    """Not told."""


def time_us(p: Problem) -> float:
    """0: nothing else makes these products on tensor cores."""
    return 0.0


def reason(p: Problem) -> str:
    """The computation in words."""
    return f"fp8 decoded to {p.dtype} on tensor cores, every 128 of k summed anew and added in float32"


def product(a: GPUArray, b: GPUArray, left: Scale, right: Scale, out: GPUArray) -> None:
    """out = (left a) @ (right b), where unscalable() is ""."""
    (m, k), n = a.shape, b.shape[1]
    rows, columns = readable(a, "rows", along_k=True), readable(b, "columns", along_k=True)
    results = (a.dtype, float32)
    direct = out.is_contiguous() and out.dtype in results
    dense = out if direct else native.empty((m, n), a.dtype if out.dtype == a.dtype else float32)
    chosen = next((chosen for chosen in _TILES if m <= chosen.rows), _TILES[-1])
    if chosen is _TILES[0] and n > chosen.columns * device.current().sm_count:
        chosen = _BUSY
    operands = [left.values, None if right.by_block else right.values, right.values if right.by_block else None]
    counts = (m, n, -(-k // BLOCK))
    steps = (left.steps[:1], right.steps[:1], right.steps)
    numbers = [m, n, k, rows.lead, columns.lead]
    for values, count, step in zip(operands, counts, steps, strict=True):
        numbers += [count if values is not None else 0, *step]
    launch(
        DECODED.of(_expression(b.dtype.name, a.dtype.name, dense.dtype.name, chosen)),
        (-(-m // chosen.rows) * -(-n // chosen.columns), 1, 1),
        (1, 1, 1),
        *(span(array)[0] for array in (rows.array, columns.array)),
        span(dense)[0],
        *(span(dense if values is None else values)[0] for values in operands),
        struct.pack("<f", left.number * right.number),
        *(struct.pack("<i", number) for number in numbers),
    )
    if not direct:
        copying.copy_to(dense, out)


def _expression(weight: str, element: str, result: str, tile: _Tile) -> str:
    types = f"{WEIGHTS[weight]}, {ELEMENTS[element]}, {ELEMENTS.get(result, 'float')}"
    return f"pk::decoded<{types}, {tile.rows}, {tile.columns}, {tile.warps}, {tile.blocks}>"


@DECODED.lists
def _listing() -> Iterator[tuple[str, ...]]:
    for weight, element, tile in product_of(WEIGHTS, ELEMENTS, (*_TILES, _BUSY)):
        for result in (element, "float32"):
            yield (_expression(weight, element, result, tile),)
