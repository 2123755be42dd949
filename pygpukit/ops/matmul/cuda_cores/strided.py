"""Matrix products for any strides: on CUDA cores, and float64 by real.py also on others; with NumPy on `sim`."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, Any

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.array import layout
from pygpukit.core import device
from pygpukit.core.dtypes import bfloat16, float16, float32, float64, int8, int32
from pygpukit.ops import copying, host
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.matmul.cuda_cores import gemv, real
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DataType
    from pygpukit.kernels.structure import Structure

SOURCE = kernels.KernelSpec(__file__, "strided.cu")
_LAYOUT = SOURCE.structure("GemmLayout", Operands=3)
THREADS = (16, 16, 1)
_TILE = (4, 4)  # rows and columns of a thread. gemm.cuh: kPerThread
_TILES = (_TILE, (4, 2), (2, 2))  # of float32 and float64
_MAX_GRID_Y = 65535


def product(a: GPUArray, b: GPUArray, out: GPUArray) -> None:
    """out = a @ b: stacks of matrices with the same batch axes, all of one type; or out is int32, a and b int8."""
    if host.computes():
        native.host_launch("matmul", lambda: host.store(out, on_host(a, b, out.dtype)), [a, b, out])
        return
    if a.shape[-1] == 0:  # an empty sum; nothing of the operands may be read
        copying.fill(out, 0)
        return
    (m, n), k = out.shape[-2:], a.shape[-1]
    if gemv.takes(out.dtype, m, n, k):
        if n < m:  # the same sums with the operands' places exchanged
            a, b, out = (one.swapaxes(-1, -2) for one in (b, a, out))
        packed, spans = packed_layout(gemv.LAYOUT, out.shape[-1], a, b, out, out)
        gemv.launch(a, b, (spans[0], spans[1], spans[2], spans[2], spans[2]), packed, prod(out.shape[:-2]))
        return
    if (found := real.operands(a, b)) is not None:
        a, b, read = found
        packed, spans = packed_layout(gemv.LAYOUT, n, a, b, out, out)
        real.launch(a, b, read, (spans[0], spans[1], spans[2], spans[2], spans[2]), packed)
        return
    packed, spans = packed_layout(_LAYOUT, n, a, b, out)
    types, one = CTYPES[a.dtype.name], tile(out)
    if out.dtype != a.dtype or one != _TILE:
        types += f", {CTYPES[out.dtype.name]}"
    kernels.launch(SOURCE.of(f"pk::gemm<{types}{sizes(one)}>"), grid(out, one), THREADS, *spans, packed)


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that product() can ask for."""
    yield (*(f"pk::gemm<{ctype}>" for ctype in CTYPES.values()), "pk::gemm<signed char, int>")
    for dtype in (float32, float64):
        ctype = CTYPES[dtype.name]
        yield tuple(f"pk::gemm<{ctype}, {ctype}{sizes(one)}>" for one in tiles(dtype) if one != _TILE)


def tile(out: GPUArray) -> tuple[int, int]:
    """Rows and columns of the result that a thread makes: the most that still give every multiprocessor a block. Sums
    are the same for all."""
    fitting = tiles(out.dtype)
    return next((one for one in fitting if prod(grid(out, one)) >= device.current().sm_count), fitting[-1])


def tiles(dtype: DataType) -> tuple[tuple[int, int], ...]:
    """All that tile() can give for results of a type."""
    return _TILES if dtype in (float32, float64) else (_TILE,)


def sizes(one: tuple[int, int]) -> str:
    """Of a name expression's arguments those that say the tile."""
    return "" if one == _TILE else f", {one[0]}, {one[1]}"


def grid(out: GPUArray, one: tuple[int, int] = _TILE) -> tuple[int, int, int]:
    """Blocks for a result: its tiles, and its matrices."""
    *batch, m, n = out.shape
    rows, columns = (threads * own for threads, own in zip(THREADS, one, strict=False))
    return -(-m // rows) * -(-n // columns), min(prod(batch), _MAX_GRID_Y), 1


def packed_layout(structure: Structure, n: int, *operands: GPUArray) -> tuple[bytes, tuple[GPUArray, ...]]:
    """GemmLayout of stacks of matrices with the same batch axes, the first of which is a; and what the kernel's
    pointers point at."""
    steps = [[step // x.itemsize for step in x.strides] for x in operands]
    *batch, m, k = operands[0].shape
    extents, batch_steps = layout.collapse(tuple(batch), [tuple(own[:-2]) for own in steps])
    spans, starts = zip(*(span(x) for x in operands), strict=True)
    packed = structure.pack(
        m=m,
        n=n,
        k=k,
        batches=prod(batch),
        ndim=len(extents),
        shape=extents,
        start=starts,
        row=[own[-2] for own in steps],
        column=[own[-1] for own in steps],
        stride=batch_steps,
    )
    return packed, spans


def on_host(a: GPUArray, b: GPUArray, dtype: DataType | None = None) -> Any:
    """a @ b by NumPy, of 16-bit floats in float32. dtype: of integers, where it is not theirs."""
    import numpy as np

    left, right = host.values(a), host.values(b)
    if a.dtype in (float16, bfloat16):
        left, right = left.astype(np.float32), right.astype(np.float32)
    elif dtype is int32 and a.dtype is int8:
        left, right = left.astype(np.int32), right.astype(np.int32)
    with np.errstate(all="ignore"):
        return np.matmul(left, right)
