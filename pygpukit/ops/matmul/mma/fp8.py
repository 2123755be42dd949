"""Products of fp8 with scales by mma.sync, from SM 8.9 on: by which block, and the launch of their kernels."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product as product_of
from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.core import device
from pygpukit.core.backend import is_sim
from pygpukit.core.choices import by_device
from pygpukit.core.dtypes import bfloat16, float8_e4m3, float8_e5m2, float16, float32
from pygpukit.kernels import KernelSpec, builder, launch, lost
from pygpukit.ops import copying, plans
from pygpukit.ops.elementwise.pointwise import CTYPES, STORAGE_CTYPES
from pygpukit.ops.matmul import times
from pygpukit.ops.matmul.layout.operand import readable
from pygpukit.ops.matmul.mma import aligned
from pygpukit.ops.matmul.mma.block import Block, copies_us, fastest
from pygpukit.ops.matmul.problem import FP8_SINCE
from pygpukit.ops.matmul.tile import fp8, half
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DataType
    from pygpukit.ops.matmul.problem import Problem
    from pygpukit.ops.matmul.tile.fp8 import Scale

SCALED = KernelSpec(__file__, "fp8.cu", ahead=("sm_89", "sm_90a", "sm_100a", "sm_120a"), instead=True)
_CALL = SCALED.structure("ScaledProduct")
_ELEMENTS, _RESULTS = (float8_e4m3, float8_e5m2), (float32, bfloat16, float16)
BACKEND, FAMILIES = aligned.BACKEND, ("fp8",)


@plans.follows
def blocks() -> tuple[Block, ...]:
    """As the table has them, of those that the device's shared memory holds; the smallest one last."""
    room = device.current().shared_bytes
    return tuple(block for block in _listed() if aligned.shared_bytes(block, 1) <= room)


def _listed() -> Iterator[Block]:
    return (Block(**fields) for fields in times.table()["mma fp8"])


def refusal(p: Problem) -> str:
    """Why these kernels do not make a product, "" where they do."""
    if p.family not in FAMILIES:
        return f"these kernels multiply two operands of fp8, not {p.dtype}"
    if p.scales:
        return p.scales
    if p.device.capability < FP8_SINCE and not is_sim():
        return f"mma.sync takes fp8 from SM 8.9 on; this device is SM {p.device.capability / 10:.1f}"
    return missing()


def time_us(p: Problem) -> float:
    """The time of the fastest block by the measured times, and of copies."""
    return _fastest(*p.folded.extents)[0] + copies_us(p, along_k=True)


def tiling(p: Problem) -> Block:
    """The tile of one block."""
    return _fastest(*p.folded.extents)[1]


def reason(p: Problem) -> str:
    """The computation, and why not by tiles."""
    return f"{does(p)}: {half.missing() or lost.why(fp8.SCALED)}"


def does(p: Problem) -> str:
    """The computation in words."""
    return f"{p.dtype} on tensor cores, every 128 of k summed anew and added in float32, by mma.sync"


@plans.follows
def _fastest(products: int, m: int, n: int, k: int) -> tuple[float, Block]:
    return fastest(blocks(), m, n, k, products, device.current().sm_count)


@by_device
def missing() -> str:
    """Why these kernels are not to be had here, "" where they are, as far as is known."""
    return builder.missing(SCALED.of(next(iter(_listing()))[0]))


def product(a: GPUArray, b: GPUArray, left: Scale, right: Scale, out: GPUArray, block: Block | None = None) -> None:
    """out = (left a) @ (right b), where fp8.unscalable() is "". block: the fastest one by default."""
    (m, n), k = out.shape, a.shape[1]
    block = block or _fastest(1, m, n, k)[1]
    rows, columns = readable(a, "rows", along_k=True), readable(b, "columns", along_k=True)
    (first, start), (second, other) = span(rows.array), span(columns.array)
    dense = out if out.is_contiguous() else native.empty(out.shape, out.dtype)
    scales = left, right
    call = _CALL.pack(
        start=(start, other),
        line=(rows.lead, columns.lead),
        m=m,
        n=n,
        k=k,
        group=aligned.GROUP,
        line_shift=[scale.lines.bit_length() - 1 for scale in scales],  # of 1 or 128
        scale_line=[scale.steps[0] for scale in scales],
        scale_depth=[scale.steps[1] for scale in scales],
        has_scale=[scale.values is not None for scale in scales],
        factor=left.number * right.number,
        unused=0,
    )
    by_block = left.by_block or right.by_block
    launch(
        SCALED.of(_expression(a.dtype, out.dtype, block, by_block), shared_bytes=aligned.shared_bytes(block, 1)),
        (block.tiles(m, n), 1, 1),
        (block.threads(), 1, 1),
        first,
        second,
        *(dense if scale.values is None else span(scale.values)[0] for scale in scales),
        dense,
        call,
    )
    if dense is not out:
        copying.copy_to(dense, out)


def _expression(element: DataType, result: DataType, block: Block, by_block: bool) -> str:
    types = f"{STORAGE_CTYPES[element.name]}, {CTYPES[result.name]}"
    return f"pk::mma_scaled<{types}, {block.numbers()}, {str(by_block).lower()}>"


@SCALED.lists
def _listing() -> Iterator[tuple[str, ...]]:
    for element, block, by_block in product_of(_ELEMENTS, _listed(), (False, True)):
        yield tuple(_expression(element, result, block, by_block) for result in _RESULTS)
