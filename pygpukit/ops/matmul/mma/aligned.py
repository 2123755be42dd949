"""Products by mma.sync of operands whose lines begin at multiples of 16 bytes: by which block, and the launch of their
kernels. Other operands are copied first.

They need no other parts than NVRTC and run from SM 8.0 on. Half precision has the bits of unaligned.cu.
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
from pygpukit.kernels import GENERIC_LAMBDAS, KernelSpec, builder, launch, lost
from pygpukit.ops import copying, plans
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.matmul import times
from pygpukit.ops.matmul.epilogue.epilogue import Epilogue
from pygpukit.ops.matmul.layout.batch import is_one_product, matrix_of, rows_of
from pygpukit.ops.matmul.layout.operand import readable
from pygpukit.ops.matmul.mma.block import Block, copies_us, fastest
from pygpukit.ops.matmul.tile import half, int8_tf32
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.matmul.problem import Problem

ALIGNED = KernelSpec(__file__, "aligned.cu", options=GENERIC_LAMBDAS, instead=True)
_CALL = ALIGNED.structure("AlignedCall")
_HALF = 2  # bytes: elements that ldmatrix transposes, and of which the table has the steps' depth
_TYPES = {"bfloat16": 2, "float16": 2, "int8": 1, "float32": 4}  # their bytes
_FAMILIES = {
    "half": "{} on tensor cores, summed in float32, by mma.sync",
    "int8": "{} on tensor cores, summed in int32, exactly, by mma.sync",
    "tf32": "{} rounded to tf32 on tensor cores, summed in float32, by mma.sync",
}
GROUP = 8  # tiles above each other, whose columns of b are read together
BACKEND = "mma"


@plans.follows
def blocks(itemsize: int = _HALF) -> tuple[Block, ...]:
    """As the table has them, of those that the device's shared memory holds; the smallest one last."""
    room = device.current().shared_bytes
    return tuple(block for block in listed(itemsize) if shared_bytes(block, itemsize) <= room)


def listed(itemsize: int) -> Iterator[Block]:
    """Every one that the table has for elements of that size; of 8 bits those of half precision, twice as deep."""
    for fields in times.table()["mma" if itemsize <= _HALF else "mma tf32"]:
        block = Block(**fields)
        yield replace(block, depth=block.depth * _HALF) if itemsize < _HALF else block


def shared_bytes(block: Block, itemsize: int = _HALF) -> int:
    """Of dynamic shared memory: stages of both operands."""
    return (block.rows + block.columns) * block.depth * block.stages * itemsize


def refusal(p: Problem) -> str:
    """Why these kernels do not make a product, "" where they do."""
    if p.family not in _FAMILIES:
        return f"these kernels multiply float16, bfloat16, int8 into int32, and float32 with tf32=True, not {p.dtype}"
    return missing()


def time_us(p: Problem) -> float:
    """The time of the fastest block by the measured times, and of copies."""
    return _fastest(p)[0] + copies_us(p, along_k=p.dtype.itemsize != _HALF)


def tiling(p: Problem) -> Block:
    """The tile of one block."""
    return _fastest(p)[1]


def reason(p: Problem) -> str:
    """The computation, and why not by tiles."""
    return f"{does(p)}: {half.missing() or lost.why(int8_tf32.NARROW)}"


def does(p: Problem) -> str:
    """The computation in words."""
    return _FAMILIES[p.family or ""].format(p.dtype)


def finishes(a: GPUArray, b: GPUArray, out: GPUArray, epilogue: Epilogue) -> bool:
    """True if there is an epilogue, and product() applies it in its launch."""
    follows = a.itemsize == _HALF and not epilogue.is_nothing() and epilogue.conversion is None
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


@plans.follows
def _fastest(p: Problem) -> tuple[float, Block]:
    batches, m, n, k = p.folded.extents
    return fastest(blocks(p.dtype.itemsize), m, n, k, batches, p.device.sm_count)


@by_device
def missing() -> str:
    """Why these kernels are not to be had here, "" where they are, as far as is known."""
    return builder.missing(ALIGNED.of(next(iter(_listing()))[0]))


def product(
    a: GPUArray, b: GPUArray, out: GPUArray, block: Block, epilogue: Epilogue | None = None, group: int = GROUP
) -> None:
    """out = epilogue(a @ b), with the same batch axes: of the operands' type, of int8 int32. out: dense."""
    m, n, k = out.shape[-2], out.shape[-1], a.shape[-1]
    along_k = a.itemsize != _HALF
    left, right = readable(a, "rows", along_k), readable(b, "columns", along_k)
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
            _expression(a.dtype.name, block, not left.transposed, right.transposed),
            shared_bytes=shared_bytes(block, a.itemsize),
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
    for dtype, itemsize in _TYPES.items():
        for block in listed(itemsize):
            for along in product_of((False, True), repeat=2) if itemsize == _HALF else ((True, True),):
                yield (_expression(dtype, block, *along),)
