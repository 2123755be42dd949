"""Products of half precision by unaligned.cu where there are no tile kernels: of every layout, copied if need be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.ops import copying
from pygpukit.ops.matmul.epilogue.epilogue import in_another_launch
from pygpukit.ops.matmul.layout.batch import is_one_product, matrix_of, rows_of
from pygpukit.ops.matmul.layout.operand import as_it_is
from pygpukit.ops.matmul.mma import aligned, unaligned
from pygpukit.ops.matmul.mma.block import Block, copies_us

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.matmul.epilogue.epilogue import Epilogue
    from pygpukit.ops.matmul.problem import Problem

BACKEND, reason, does = aligned.BACKEND, aligned.reason, aligned.does
finishes = in_another_launch


def refusal(p: Problem) -> str:
    """Why these kernels do not make a product, "" where they do."""
    return unaligned.missing() if p.family == "half" else f"these kernels multiply float16 and bfloat16, not {p.dtype}"


def time_us(p: Problem) -> float:
    """The time of the fastest block by the measured times, and of copies."""
    return unaligned.fastest(*_sizes(p))[0] + copies_us(p, p.dtype.itemsize)


def tiling(p: Problem) -> Block:
    """The tile of one block."""
    return unaligned.fastest(*_sizes(p))[1]


def _sizes(p: Problem) -> tuple[int, int, int, int, int]:
    batches, m, n, k = p.folded.extents
    return m, n, k, batches, p.device.sm_count


def run(p: Problem, a: GPUArray, b: GPUArray, out: GPUArray, epilogue: Epilogue | None = None) -> None:
    """out = a @ b, all of one type and with the same batch axes, wherever they lie."""
    if out.ndim > 2 and is_one_product(b, a, out):
        a, b, out = rows_of(a), matrix_of(b), rows_of(out)
    a, b = (
        operand if as_it_is(operand, operand.itemsize) is not None else copying.clone(operand) for operand in (a, b)
    )
    dense = out if out.is_contiguous() else native.empty(out.shape, out.dtype)
    unaligned.product(a, b, dense, tiling(p))
    if dense is not out:
        copying.copy_to(dense, out)
