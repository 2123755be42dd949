"""Products of half precision of matrices that begin at any element, with rows of any length: which ones, by which
block, and the launch of their kernels.

Their bits are those of half.cu and of the kernels in sm90/, as far as they were compared: on SM 9.0. So plans may take
any of them there.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product as product_of
from math import prod
from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.core import device
from pygpukit.core.choices import by_device
from pygpukit.kernels import KernelSpec, builder, launch
from pygpukit.ops import copying
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.matmul import times
from pygpukit.ops.matmul.epilogue.epilogue import in_another_launch
from pygpukit.ops.matmul.layout.batch import is_one_product, matrix_of, rows_of
from pygpukit.ops.matmul.layout.operand import ALIGNMENT, as_it_is
from pygpukit.ops.matmul.mma.block import Block, copies_us
from pygpukit.ops.matmul.mma.block import fastest as fastest_block
from pygpukit.ops.matmul.sm90 import cluster
from pygpukit.ops.matmul.tile import half
from pygpukit.ops.matmul.tile.tiling import fastest as fastest_tile
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.matmul.epilogue.epilogue import Epilogue
    from pygpukit.ops.matmul.problem import Problem

UNALIGNED = KernelSpec(__file__, "unaligned.cu", instead=True)
_CALL = UNALIGNED.structure("UnalignedCall")
_PACK = 8  # unaligned.cu: kUnalignedPack
_TYPES = ("bfloat16", "float16")
_SAME_BITS = 90  # where the bits were compared with those of the tiles
BACKEND = "tile"
finishes = in_another_launch


@by_device
def blocks() -> tuple[Block, ...]:
    """As the table has them."""
    return tuple(Block(**fields) for fields in times.table()["odd"])


def fastest(m: int, n: int, k: int, batches: int, multiprocessors: int) -> tuple[float, Block]:
    """The block whose measured times are shortest, and these."""
    return fastest_block(_fitting(), m, n, k, batches, multiprocessors)


@by_device
def _fitting() -> tuple[Block, ...]:
    """The blocks whose operands the device's shared memory holds, however they lie; the smallest one last."""
    room = device.current().shared_bytes
    size = {
        candidate: max(_shared_bytes(candidate, *along) for along in product_of((False, True), repeat=2))
        for candidate in blocks()
    }
    smallest = min(blocks(), key=lambda candidate: size[candidate])
    return (*(candidate for candidate in blocks() if size[candidate] <= room and candidate != smallest), smallest)


def refusal(p: Problem) -> str:
    """Why these kernels do not make a product, "" where they take less time than tiles, or where there are none the
    kernels in sm90/, and copies of what these cannot read: only where their bits are those of the tiles."""
    if p.family != "half" or p.device.capability != _SAME_BITS or (half.missing() and cluster.refusal(p)):
        return "their bits are those of the tiles on SM 9.0 alone"
    if why := missing():
        return why
    return "" if _faster(p) is not None else "tiles, and copies of what they cannot read, take less time"


def time_us(p: Problem) -> float:
    """0: refusal() has compared times."""
    return 0.0


def tiling(p: Problem) -> Block | None:
    """The tile of one block."""
    return _faster(p)


def reason(p: Problem) -> str:
    """The computation, and how the block was chosen."""
    lacking = half.missing()
    return half.reason(p) + (f", with the bits of the tile kernels: {lacking}" if lacking else "")


def run(p: Problem, a: GPUArray, b: GPUArray, out: GPUArray, epilogue: Epilogue | None = None) -> None:
    """out = a @ b."""
    block = _faster(p)
    assert block is not None
    dense = out if out.is_contiguous() else native.empty(out.shape, out.dtype)
    left, right, result = a, b, dense
    if out.ndim > 2 and is_one_product(b, a, dense):
        left, right, result = rows_of(a), matrix_of(b), rows_of(dense)
    product(left, right, result, block)
    if dense is not out:
        copying.copy_to(dense, out)


@by_device
def _faster(p: Problem) -> Block | None:
    """The block that makes a product, None where tiles are faster, or an operand is not read where it lies."""
    batches, m, n, k = p.folded.extents
    size, sms = p.dtype.itemsize, p.device.sm_count
    if any(side.in_place(size) is None for side in (p.folded.a, p.folded.b)):
        return None
    copies, general = copies_us(p), n * size % ALIGNMENT != 0
    if not copies and not general:
        return None
    time, block = fastest(m, n, k, batches, sms)
    if half.missing():
        return block if time < cluster.time_us(p) + copies else None
    tiles_us = fastest_tile("half", m, n, k, batches, size, sms, general).time_us(m, n, k, batches, size, sms)
    return block if time < tiles_us * (half.UNALIGNED if general else 1.0) + copies else None


@by_device
def missing() -> str:
    """Why these kernels are not to be had here, "" where they are, as far as is known."""
    return builder.missing(UNALIGNED.of(next(iter(_listing()))[0]))


def product(a: GPUArray, b: GPUArray, out: GPUArray, block: Block) -> None:
    """out = a @ b, all of one type and with the same batch axes; a and b as reading.as_it_is() reads whole elements.
    out: dense."""
    m, n, k = out.shape[-2], out.shape[-1], a.shape[-1]
    left, right = as_it_is(a, a.itemsize), as_it_is(b, b.itemsize)
    assert left is not None and right is not None
    along = not left.transposed, right.transposed
    (first, start), (second, other) = span(a), span(b)
    call = _CALL.pack(
        start=(start, other),
        line=(left.lead, right.lead),
        step=(left.step, right.step),
        matrices=(left.matrices, right.matrices),
        repeat=(left.repeat, right.repeat),
        m=m,
        n=n,
        k=k,
    )
    launch(
        UNALIGNED.of(_expression(out.dtype.name, block, *along), shared_bytes=_shared_bytes(block, *along)),
        (block.tiles(m, n), prod(out.shape[:-2]), 1),
        (block.threads(), 1, 1),
        first,
        second,
        out,
        call,
    )


def _expression(dtype: str, block: Block, a_along_k: bool, b_along_k: bool) -> str:
    return f"pk::unaligned<{CTYPES[dtype]}, {block.numbers()}, {str(a_along_k).lower()}, {str(b_along_k).lower()}>"


def _shared_bytes(block: Block, a_along_k: bool, b_along_k: bool) -> int:
    """Of dynamic shared memory: pieces of both operands."""
    sizes = (
        (extent * (block.depth + _PACK) if along_k else block.depth * (extent + _PACK))
        for extent, along_k in ((block.rows, a_along_k), (block.columns, b_along_k))
    )
    return sum(sizes) * block.stages * 2


@UNALIGNED.lists
def _listing() -> Iterator[tuple[str, ...]]:
    for dtype, block in product_of(_TYPES, blocks()):
        yield tuple(_expression(dtype, block, *along) for along in product_of((False, True), repeat=2))
