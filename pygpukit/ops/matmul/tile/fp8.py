"""Products of fp8 with scales on tensor cores: which ones the tile kernels take, and their launch."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import product as product_of
from typing import TYPE_CHECKING, NamedTuple

from pygpukit._core import native
from pygpukit.core.dtypes import float32
from pygpukit.kernels import KernelSpec, launch, lost
from pygpukit.ops import copying, raw
from pygpukit.ops.indexing.padding import repeat
from pygpukit.ops.matmul.layout.operand import ALIGNMENT, aligned_length, readable
from pygpukit.ops.matmul.tile import half
from pygpukit.ops.matmul.tile.tiling import fastest
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.matmul.problem import Problem

SCALED = KernelSpec(__file__, "fp8.cu", front_end="tile", ahead=("sm_90a",), instead=True)
BLOCK = 128  # fp8.cu: kBlock
_ROWS, _COLUMNS, _WARPS = 64, 128, 4  # of the one tile: sums of fp8 are not alike in all tiles
ELEMENTS = {"float8_e4m3": "__nv_fp8_e4m3", "float8_e5m2": "__nv_fp8_e5m2"}
BACKEND = "tile"
_RESULTS = {"bfloat16": "__nv_bfloat16", "float16": "__half", "float32": "float"}


class Scale(NamedTuple):
    """Scales of an operand. values: float32, or None. lines: rows of a or columns of b that share one. steps: elements
    from one group of lines to the next, and from one block of k to the next. number: where there are no values."""

    values: GPUArray | None
    lines: int
    steps: tuple[int, int]
    number: float = 1.0

    @property
    def by_block(self) -> bool:
        """There is one for each block of k."""
        return self.values is not None and self.values.ndim == 2


def unscalable(a: GPUArray, b: GPUArray, left: Scale, right: Scale) -> str:
    """Why the tile kernels do not take these types and scales, "" where they do."""
    if a.dtype != b.dtype:
        return f"tensor cores take operands of one type, these are {a.dtype} and {b.dtype}"
    if (right.by_block and right.lines != BLOCK) or (left.by_block and right.steps[0] and not right.by_block):
        return "beside scales by blocks of k the tile kernel takes one for all of b, or one for blocks of 128 columns"
    return ""


def refusal(p: Problem) -> str:
    """Why the tile kernels do not make a product, "" where they do."""
    return half.missing() or lost.why(SCALED) if p.family == "fp8" else "they multiply two operands of fp8"


def tiling(p: Problem) -> None:
    """Not told: there is one tile."""


def time_us(p: Problem) -> float:
    """The time of the tile by the measured times."""
    products, m, n, k = p.folded.extents
    size, sms = p.dtype.itemsize, p.device.sm_count
    return fastest("fp8", m, n, k, products, size, sms).time_us(m, n, k, products, size, sms)


def reason(p: Problem) -> str:
    """The computation in words."""
    return f"{p.dtype} on tensor cores, every 128 of k summed anew and added in float32"


def product(a: GPUArray, b: GPUArray, left: Scale, right: Scale, out: GPUArray) -> None:
    """out = (left a) @ (right b), where unscalable() is ""."""
    (m, k), n = a.shape, b.shape[1]
    rows = readable(copying.contiguous(a), "rows", along_k=True)
    columns = readable(copying.contiguous(b.T).T, "columns", along_k=True)
    width = aligned_length(n, out.itemsize)
    direct = width == n and out.is_contiguous() and raw.address(out) % ALIGNMENT == 0
    dense = out if direct else native.empty((m, width), out.dtype)
    if left.values is not None and left.lines == BLOCK:  # the kernel takes one for each row
        values = repeat(left.values, BLOCK, axis=0)
        left = Scale(values, 1, (values.shape[1], 1))
    launch(
        SCALED.of(_expression(a.dtype.name, out.dtype.name, left.by_block or right.by_block)),
        (-(-m // _ROWS) * -(-n // _COLUMNS), 1, 1),
        (1, 1, 1),
        *(span(array)[0] for array in (rows.array, columns.array)),
        dense,
        *(_numbers(operand) for operand in (left, right)),
        *(struct.pack("<i", number) for number in (m, n, k, rows.lead, *left.steps, *right.steps)),
    )
    if not direct:
        copying.copy_to(native.view(dense, out.shape, dense.strides, dense.offset), out)


def _numbers(scale: Scale) -> GPUArray:
    """The scales on the device, from the first one on."""
    if scale.values is not None:
        return span(scale.values)[0]
    number = native.empty((1,), float32)
    copying.fill(number, scale.number)
    return number


def _expression(element: str, result: str, by_block: bool) -> str:
    types = f"{ELEMENTS[element]}, {_RESULTS[result]}"
    return f"pk::scaled<{types}, {_ROWS}, {_COLUMNS}, {_WARPS}, {'true' if by_block else 'false'}>"


@SCALED.lists
def _listing() -> Iterator[tuple[str, ...]]:
    for element, result, by_block in product_of(ELEMENTS, _RESULTS, (False, True)):
        yield (_expression(element, result, by_block),)
