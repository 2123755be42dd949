"""Products of half precision by mma.sync where there are no tile kernels: of every layout, copied where it must be."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.ops import copying
from pygpukit.ops.matmul.epilogue.epilogue import in_another_launch
from pygpukit.ops.matmul.layout.batch import is_one_product, matrix_of, rows_of
from pygpukit.ops.matmul.layout.operand import as_it_is
from pygpukit.ops.matmul.mma import unaligned
from pygpukit.ops.matmul.tile import half

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.matmul.epilogue.epilogue import Epilogue
    from pygpukit.ops.matmul.problem import Problem

BACKEND = "mma"
finishes = in_another_launch
COST = "products of half precision take mma.sync, at about half the speed of tile kernels"


def refusal(p: Problem) -> str:
    """Why these kernels do not make a product, "" where they do."""
    return unaligned.missing() if p.family == "half" else "they multiply float16 and bfloat16"


def time_us(p: Problem) -> float:
    """0: nothing else makes products of these bits."""
    return 0.0


def tiling(p: Problem) -> None:
    """Not told."""


def reason(p: Problem) -> str:
    """The computation, and why not by tiles."""
    return f"{p.dtype} on tensor cores, summed in float32, by mma.sync: {half.missing()}"


def run(p: Problem, a: GPUArray, b: GPUArray, out: GPUArray, epilogue: Epilogue | None = None) -> None:
    """out = a @ b, all of one type and with the same batch axes, wherever they lie."""
    if out.ndim > 2 and is_one_product(b, a, out):
        a, b, out = rows_of(a), matrix_of(b), rows_of(out)
    a, b = (
        operand if as_it_is(operand, operand.itemsize) is not None else copying.clone(operand) for operand in (a, b)
    )
    dense = out if out.is_contiguous() else native.empty(out.shape, out.dtype)
    m, n, k = out.shape[-2], out.shape[-1], a.shape[-1]
    unaligned.product(a, b, dense, unaligned.fastest(m, n, k, prod(out.shape[:-2]), p.device.sm_count)[1])
    if dense is not out:
        copying.copy_to(dense, out)
