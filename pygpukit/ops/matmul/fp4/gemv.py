"""Products of half precision with weights of fp4 on tensor cores, as fast as the weight can be read: their launch."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product as product_of
from typing import TYPE_CHECKING

from pygpukit.core.dtypes import bfloat16, float16, float32, uint8
from pygpukit.kernels import KernelSpec, launch
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.matmul.fp4.encoding import FORMATS, SCALES, Fp4Matrix
from pygpukit.ops.matmul.layout.operand import readable
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DataType

SOURCE = KernelSpec(__file__, "gemv.cu")
_CALL = SOURCE.structure("Fp4Gemv")
_WEIGHTS, _ROWS, _THREADS = 16, 8, 256  # gemv.cu: kFp4Weights, kFp4Rows
_TILES = (1, 4)  # of rows, in a block: the first that has all, or the last
_MAX_BLOCKS = 65535  # of a grid's second extent
MAX_ROWS = _MAX_BLOCKS * _TILES[-1] * _ROWS


def takes(dtype: DataType, scales: DataType) -> bool:
    """True if a type has the numbers of weights with such scales: float16 has not the powers of two of MXFP4."""
    return dtype == bfloat16 or (dtype == float16 and scales != uint8)


def product(a: GPUArray, w: Fp4Matrix, out: GPUArray) -> None:
    """out = a @ w^T: a (m, k), out (m, n) dense, of a's type or float32. w: as matrices.filled() gives it."""
    (m, k), n = a.shape, w.codes.shape[0]
    rows = readable(a, "rows", along_k=True)
    tiles = next((tiles for tiles in _TILES if m <= tiles * _ROWS), _TILES[-1])
    of_all, factor = w.scale_parts()
    call = _CALL.pack(
        m=m,
        n=n,
        k=w.columns,
        a_columns=-(-k // 8) * 8,
        a_row=rows.lead,
        factor=factor,
        scaled=of_all is not None,
        wide=out.dtype == float32,
        unused=0,
    )
    spec = SOURCE.of(_expression(a.dtype, w.scales.dtype, w.block, tiles))
    grid = (-(-n // _WEIGHTS), -(-m // (tiles * _ROWS)), 1)
    scale = w.scales if of_all is None else span(of_all)[0]
    launch(spec, grid, (_THREADS, 1, 1), span(rows.array)[0], w.codes, w.scales, scale, out, call)


def _expression(dtype: DataType, scales: DataType, block: int, tiles: int) -> str:
    return f"pk::fp4_gemv<{CTYPES[dtype.name]}, {SCALES[scales.name]}, {block}, {tiles}>"


@SOURCE.lists
def _listing() -> Iterator[tuple[str, ...]]:
    for dtype, (scales, block) in product_of((bfloat16, float16), FORMATS):
        if takes(dtype, scales):
            yield tuple(_expression(dtype, scales, block, tiles) for tiles in _TILES)
