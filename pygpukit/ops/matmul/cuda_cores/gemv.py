"""Products of few rows, or of few columns, on CUDA cores: which ones have a kernel of their own, and its launch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit.array import promotion
from pygpukit.core.dtypes import float32, float64
from pygpukit.ops.elementwise.pointwise import CTYPES

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DataType

SOURCE = kernels.KernelSpec(__file__, "gemv.cu")
LAYOUT = SOURCE.structure("GemmLayout", Operands=4)
_AFTER = SOURCE.structure("After")
_COLUMNS, _ROWS, _THREADS, _STAGES = 32, 16, 128, 5  # gemv.cu: of a block
_STEP, _PITCH = 256, 272  # bytes of a line along k in a step, and from one line to the next
_MOST = 32  # rows
_MOST_REAL = 16  # of float32 and float64, of which real.py makes more rows in less time
_SHORTEST = 256  # a sum; below it too little is on its way for what a block costs
_MAX_GRID_Y = 65535


def takes(dtype: DataType, m: int, n: int, k: int) -> bool:
    """Whether a product of floats, with results of that type, has as few rows or columns as the kernel makes. Its bits
    are those of strided.cu, which makes the others."""
    most = _MOST_REAL if dtype in (float32, float64) else _MOST
    return k >= _SHORTEST and min(m, n) <= most and dtype in promotion.FLOATS


def launch(
    a: GPUArray, b: GPUArray, arrays: Sequence[GPUArray], packed: bytes, batches: int, after: bytes | None = None
) -> None:
    """c = after(a @ b), of few rows. arrays: what its pointers point at. packed: a LAYOUT. after: an After."""
    m, n = a.shape[-2], b.shape[-1]
    along_k = n == 1 or abs(b.strides[-2]) < abs(b.strides[-1])
    stage = _COLUMNS * (_PITCH if along_k else _STEP) + _ROWS * _PITCH
    spec = SOURCE.of(_expression(a.dtype.name, along_k), shared_bytes=_STAGES * stage)
    grid = (-(-n // _COLUMNS), min(batches, _MAX_GRID_Y), -(-m // _ROWS))
    kernels.launch(spec, grid, (_THREADS, 1, 1), *arrays, packed, nothing() if after is None else after)


@cache
def nothing() -> bytes:
    """epilogue.cuh: After, where the sums are the result."""
    return _AFTER.pack(alpha=1, beta=0, columns=0, activation=0, has_bias=False, has_residual=False, unused=0)


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that launch() can ask for."""
    for dtype in promotion.FLOATS:
        yield _expression(dtype.name, False), _expression(dtype.name, True)


def _expression(dtype: str, along_k: bool) -> str:
    return f"pk::few<{CTYPES[dtype]}, {'true' if along_k else 'false'}>"
