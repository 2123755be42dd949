"""Products of groups of rows on CUDA cores, for any type of float and any strides: the launch of their kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit.array import promotion
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.matmul.cuda_cores import strided
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

SOURCE = kernels.KernelSpec(__file__, "grouped.cu")
_CALL = SOURCE.structure("GroupedCall")
_TILE = 64  # gemm.cuh: kTile


def product(x: GPUArray, w: GPUArray, counts: GPUArray, out: GPUArray) -> None:
    """out = the rows of x, each group of them times its matrix of w. counts: contiguous int32."""
    (rows, k), (groups, _, n) = x.shape, w.shape
    arrays = (x, w, out)
    steps = [[step // array.itemsize for step in array.strides] for array in arrays]
    spans, starts = zip(*(span(array) for array in arrays), strict=True)
    call = _CALL.pack(
        rows=rows,
        n=n,
        k=k,
        start=starts,
        row=[strides[-2] for strides in steps],
        column=[strides[-1] for strides in steps],
        group=steps[1][0],
        groups=groups,
        unused=0,
    )
    tiles = (rows // _TILE + groups + 1) * -(-n // _TILE)  # a group's last tile may be a part
    spec = SOURCE.of(f"pk::gemm_grouped<{CTYPES[x.dtype.name]}>")
    kernels.launch(spec, (tiles, 1, 1), strided.THREADS, spans[0], spans[1], counts, spans[2], call)


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that grouped_matmul() can ask for."""
    yield tuple(f"pk::gemm_grouped<{CTYPES[dtype.name]}>" for dtype in promotion.FLOATS)
