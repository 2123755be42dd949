"""Products of few rows, or of few columns, on CUDA cores: which ones have a kernel of their own, and its launch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from math import prod
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit.array import promotion
from pygpukit.core.dtypes import float32, float64
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.matmul.epilogue.epilogue import in_kernel
from pygpukit.ops.matmul.layout.strided import with_epilogue

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.matmul.epilogue.epilogue import Epilogue
    from pygpukit.ops.matmul.problem import Problem

SOURCE = kernels.KernelSpec(__file__, "gemv.cu")
LAYOUT = SOURCE.structure("GemmLayout", Operands=4)
_EPILOGUE = SOURCE.structure("Epilogue")
_COLUMNS, _ROWS, _THREADS, _STAGES = 32, 16, 128, 5  # gemv.cu: of a block
_STEP, _PITCH = 256, 272  # bytes of a line along k in a step, and from one line to the next
_MAX_ROWS = 32  # rows
_MAX_REAL_ROWS = 16  # of float32 and float64, of which real.py makes more rows in less time
_SHORTEST = 256  # a sum; below it too little is on its way for what a block costs
_MAX_GRID_Y = 65535
finishes = in_kernel


def refusal(p: Problem) -> str:
    """Why the kernel does not make a product, "" where it has as few rows or columns of floats as it makes. Its bits
    are those of strided.cu, which makes the others."""
    _, m, n, k = p.extents
    max_rows = _MAX_REAL_ROWS if p.result in (float32, float64) else _MAX_ROWS
    if p.epilogue == "gated" or (p.epilogue and m > n):
        return "it makes no such epilogue"
    if k < _SHORTEST or min(m, n) > max_rows or p.result not in promotion.FLOATS:
        return "it is for few rows or columns of floats and long sums"
    return ""


def run(p: Problem, a: GPUArray, b: GPUArray, out: GPUArray, epilogue: Epilogue | None = None) -> None:
    """out = epilogue(a @ b)."""
    if epilogue is None and out.shape[-1] < out.shape[-2]:  # the same sums with the operands' places exchanged
        a, b, out = (array.swapaxes(-1, -2) for array in (b, a, out))
    n = out.shape[-1]
    packed, arrays = with_epilogue(LAYOUT, n, a, b, out, epilogue)
    launch(a, b, arrays, packed, prod(out.shape[:-2]), None if epilogue is None else epilogue.packed(n))


def launch(
    a: GPUArray, b: GPUArray, arrays: Sequence[GPUArray], packed: bytes, batches: int, epilogue: bytes | None = None
) -> None:
    """c = epilogue(a @ b), of few rows. arrays: what its pointers point at. packed: a LAYOUT. epilogue: an Epilogue."""
    m, n = a.shape[-2], b.shape[-1]
    along_k = n == 1 or abs(b.strides[-2]) < abs(b.strides[-1])
    stage = _COLUMNS * (_PITCH if along_k else _STEP) + _ROWS * _PITCH
    spec = SOURCE.of(_expression(a.dtype.name, along_k), shared_bytes=_STAGES * stage)
    grid = (-(-n // _COLUMNS), min(batches, _MAX_GRID_Y), -(-m // _ROWS))
    kernels.launch(spec, grid, (_THREADS, 1, 1), *arrays, packed, nothing() if epilogue is None else epilogue)


@cache
def nothing() -> bytes:
    """epilogue.cuh: Epilogue, where the sums are the result."""
    return _EPILOGUE.pack(alpha=1, beta=0, columns=0, activation=0, has_bias=False, has_residual=False, unused=0)


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that launch() can ask for."""
    for dtype in promotion.FLOATS:
        yield _expression(dtype.name, False), _expression(dtype.name, True)


def _expression(dtype: str, along_k: bool) -> str:
    return f"pk::gemv<{CTYPES[dtype]}, {'true' if along_k else 'false'}>"
