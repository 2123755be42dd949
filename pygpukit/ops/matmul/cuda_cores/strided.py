"""Products of any type and strides on CUDA cores: the launch of their kernels, with an epilogue and without."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit.array import promotion
from pygpukit.core import device
from pygpukit.core.dtypes import float32, float64
from pygpukit.ops import copying
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.matmul.epilogue import fused
from pygpukit.ops.matmul.epilogue.epilogue import in_kernel
from pygpukit.ops.matmul.layout.strided import packed_layout, with_epilogue

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DataType
    from pygpukit.ops.matmul.epilogue.epilogue import Epilogue
    from pygpukit.ops.matmul.problem import Problem

SOURCE = kernels.KernelSpec(__file__, "strided.cu")
_LAYOUT = SOURCE.structure("GemmLayout", Operands=3)
_FUSED_LAYOUT = fused.SOURCE.structure("GemmLayout", Operands=4)
THREADS = (16, 16, 1)
_TILE = (4, 4)  # rows and columns of a thread. gemm.cuh: kPerThread
_TILES = (_TILE, (4, 2), (2, 2))  # of float32 and float64
_MAX_GRID_Y = 65535
finishes = in_kernel


def refusal(p: Problem) -> str:
    """ "": the kernels take every product."""
    return ""


def run(p: Problem, a: GPUArray, b: GPUArray, out: GPUArray, epilogue: Epilogue | None = None) -> None:
    """out = epilogue(a @ b): of one type, or out is int32, a and b int8."""
    n, chosen = out.shape[-1], tile(out)
    if epilogue is not None:
        packed, arrays = with_epilogue(_FUSED_LAYOUT, n, a, b, out, epilogue)
        spec = fused.SOURCE.of(f"pk::gemm_after<{CTYPES[out.dtype.name]}{sizes(chosen)}>")
        kernels.launch(spec, grid(out, chosen), THREADS, *arrays, packed, epilogue.packed(n))
        return
    if a.shape[-1] == 0:  # an empty sum; nothing of the operands may be read
        copying.fill(out, 0)
        return
    packed, spans = packed_layout(_LAYOUT, n, a, b, out)
    types = CTYPES[a.dtype.name]
    if out.dtype != a.dtype or chosen != _TILE:
        types += f", {CTYPES[out.dtype.name]}"
    kernels.launch(SOURCE.of(f"pk::gemm<{types}{sizes(chosen)}>"), grid(out, chosen), THREADS, *spans, packed)


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel without an epilogue that run() can ask for."""
    yield (*(f"pk::gemm<{ctype}>" for ctype in CTYPES.values()), "pk::gemm<signed char, int>")
    for dtype in (float32, float64):
        ctype = CTYPES[dtype.name]
        yield tuple(f"pk::gemm<{ctype}, {ctype}{sizes(extents)}>" for extents in tiles(dtype) if extents != _TILE)


@fused.SOURCE.lists
def _with_epilogue() -> Iterator[tuple[str, ...]]:
    for dtype in promotion.FLOATS:
        yield tuple(f"pk::gemm_after<{CTYPES[dtype.name]}{sizes(extents)}>" for extents in tiles(dtype))


def tile(out: GPUArray) -> tuple[int, int]:
    """Rows and columns of the result that a thread makes: the most that still give every multiprocessor a block. Sums
    are the same for all."""
    fitting = tiles(out.dtype)
    return next(
        (candidate for candidate in fitting if prod(grid(out, candidate)) >= device.current().sm_count), fitting[-1]
    )


def tiles(dtype: DataType) -> tuple[tuple[int, int], ...]:
    """All that tile() can give for results of a type."""
    return _TILES if dtype in (float32, float64) else (_TILE,)


def sizes(extents: tuple[int, int]) -> str:
    """Of a name expression's arguments those that say the tile."""
    return "" if extents == _TILE else f", {extents[0]}, {extents[1]}"


def grid(out: GPUArray, extents: tuple[int, int] = _TILE) -> tuple[int, int, int]:
    """Blocks for a result: its tiles, and its matrices."""
    *batch, m, n = out.shape
    rows, columns = (threads * per_thread for threads, per_thread in zip(THREADS, extents, strict=False))
    return -(-m // rows) * -(-n // columns), min(prod(batch), _MAX_GRID_Y), 1
