"""Products of half precision by mma.sync of operands whose lines begin at multiples of 16 bytes: by which block, and
the launch of their kernels. Other operands are copied first.

They need no other parts than NVRTC and run from SM 8.0 on. Their bits are those of unaligned.cu.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product as product_of
from math import prod
from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.core import device
from pygpukit.core.choices import by_device
from pygpukit.kernels import GENERIC_LAMBDAS, KernelSpec, builder, launch
from pygpukit.ops import copying
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.matmul import times
from pygpukit.ops.matmul.epilogue.epilogue import Epilogue
from pygpukit.ops.matmul.layout.batch import is_one_product, matrix_of, rows_of
from pygpukit.ops.matmul.layout.operand import readable
from pygpukit.ops.matmul.mma.block import Block, copies_us, fastest
from pygpukit.ops.matmul.tile import half
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.matmul.problem import Problem

ALIGNED = KernelSpec(__file__, "aligned.cu", options=GENERIC_LAMBDAS, instead=True)
_CALL = ALIGNED.structure("AlignedCall")
_TYPES = ("bfloat16", "float16")
_GROUP = 8  # tiles above each other, whose columns of b are read together
BACKEND = "mma"
COST = "products of half precision take mma.sync, at about half the speed of tile kernels"


@by_device
def blocks() -> tuple[Block, ...]:
    """As the table has them, of those that the device's shared memory holds; the smallest one last."""
    room = device.current().shared_bytes
    return tuple(block for each in times.table()["mma"] if shared_bytes(block := Block(**each)) <= room)


def shared_bytes(block: Block) -> int:
    """Of dynamic shared memory: stages of both operands, each of 16 bits."""
    return (block.rows + block.columns) * block.depth * block.stages * 2


def refusal(p: Problem) -> str:
    """Why these kernels do not make a product, "" where they do."""
    return missing() if p.family == "half" else f"these kernels multiply float16 and bfloat16, not {p.dtype}"


def time_us(p: Problem) -> float:
    """The time of the fastest block by the measured times, and of copies."""
    return _fastest(p)[0] + copies_us(p)


def tiling(p: Problem) -> Block:
    """The tile of one block."""
    return _fastest(p)[1]


def reason(p: Problem) -> str:
    """The computation, and why not by tiles."""
    return f"{does(p)}: {half.missing()}"


def does(p: Problem) -> str:
    """The computation in words."""
    return f"{p.dtype} on tensor cores, summed in float32, by mma.sync"


def finishes(a: GPUArray, b: GPUArray, out: GPUArray, epilogue: Epilogue) -> bool:
    """True if there is an epilogue, and product() applies it in its launch."""
    follows = not epilogue.is_nothing() and epilogue.conversion is None
    return follows and epilogue.act != "swiglu" and epilogue.by_pieces(out)


def run(p: Problem, a: GPUArray, b: GPUArray, out: GPUArray, epilogue: Epilogue | None = None) -> None:
    """out = epilogue(a @ b), where finishes() says so."""
    dense = out if out.is_contiguous() else native.empty(out.shape, out.dtype)
    left, right, result = a, b, dense
    if out.ndim > 2 and is_one_product(b, a, dense):
        left, right, result = rows_of(a), matrix_of(b), rows_of(dense)
        if epilogue is not None and epilogue.residual is not None:
            epilogue = replace(epilogue, residual=rows_of(epilogue.residual))
    product(left, right, result, tiling(p), epilogue)
    if dense is not out:
        copying.copy_to(dense, out)


@by_device
def _fastest(p: Problem) -> tuple[float, Block]:
    batches, m, n, k = p.folded.extents
    return fastest(blocks(), m, n, k, batches, p.device.sm_count)


@by_device
def missing() -> str:
    """Why these kernels are not to be had here, "" where they are, as far as is known."""
    return builder.missing(ALIGNED.of(next(iter(_listing()))[0]))


def product(
    a: GPUArray, b: GPUArray, out: GPUArray, block: Block, epilogue: Epilogue | None = None, group: int = _GROUP
) -> None:
    """out = epilogue(a @ b), all of one type and with the same batch axes. out: dense."""
    m, n, k = out.shape[-2], out.shape[-1], a.shape[-1]
    left, right = readable(a, "rows"), readable(b, "columns")
    (first, start), (second, other) = span(left.array), span(right.array)
    epilogue = epilogue or Epilogue()
    call = _CALL.pack(
        start=(start, other),
        line=(left.lead, right.lead),
        step=(left.step, right.step),
        matrices=(left.matrices, right.matrices),
        repeat=(left.repeat, right.repeat),
        m=m,
        n=n,
        k=k,
        group=group,
    )
    launch(
        ALIGNED.of(
            _expression(out.dtype.name, block, not left.transposed, right.transposed), shared_bytes=shared_bytes(block)
        ),
        (block.tiles(m, n), prod(out.shape[:-2]), 1),
        (block.threads(), 1, 1),
        first,
        second,
        *(out if array is None else array for array in (epilogue.bias, epilogue.residual)),
        out,
        call,
        epilogue.packed(n),
    )


def _expression(dtype: str, block: Block, a_along_k: bool, b_along_k: bool) -> str:
    return f"pk::mma_aligned<{CTYPES[dtype]}, {block.numbers()}, {str(a_along_k).lower()}, {str(b_along_k).lower()}>"


@ALIGNED.lists
def _listing() -> Iterator[tuple[str, ...]]:
    for dtype, each in product_of(_TYPES, times.table()["mma"]):
        for along in product_of((False, True), repeat=2):
            yield (_expression(dtype, Block(**each), *along),)
