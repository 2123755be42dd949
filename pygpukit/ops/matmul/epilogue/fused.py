"""Matrix products with an epilogue (scale, bias, activation, an array added): in the plain kernel, or after others."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.array import layout, promotion
from pygpukit.core.dtypes import bfloat16, float16, float32
from pygpukit.ops import host
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.matmul.cuda_cores import gemv, real, strided
from pygpukit.ops.matmul.epilogue.epilogue import After
from pygpukit.ops.matmul.layout.operand import ALIGNMENT
from pygpukit.ops.matmul.sm90 import cluster
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

Product = Callable[["GPUArray", "GPUArray", "GPUArray"], None]  # out = a @ b
SOURCE = kernels.KernelSpec(__file__, "fused.cu", options=kernels.GENERIC_LAMBDAS)
_LAYOUT = SOURCE.structure("GemmLayout", Operands=4)
_ROWS = SOURCE.structure("Layout", Operands=2)
_BLOCK = 256
FINISHED = (float16, bfloat16, float32)  # types that finish() is compiled for


def product(plan: Product, a: GPUArray, b: GPUArray, out: GPUArray, after: After) -> None:
    """out = after(a @ b): as plain.product(), of floats. plan: what makes a @ b by its plan."""
    if host.computes() and plan is strided.product and after.conversion is None:
        native.host_launch("matmul", lambda: _on_host(a, b, out, after), [a, b, out, *after.arrays()])
        return
    if plan is cluster.product and cluster.finishes(a, b, out, after):
        cluster.product(a, b, out, after)
        return
    if after.conversion is not None:
        made = native.empty(out.shape, a.dtype)
        product(plan, a, b, made, replace(after, conversion=None))
        after.conversion.of(made, out)
        return
    residual = out if after.residual is None else after.residual
    if after.is_nothing():
        plan(a, b, out)
        return
    if plan is not strided.product:
        sums = native.empty((*out.shape[:-1], b.shape[-1]), out.dtype)
        plan(a, b, sums)
        finish(sums, out, after)
        return
    (m, n), k = out.shape[-2:], a.shape[-1]
    simple = after.act != "swiglu"
    is_few = simple and m <= n and gemv.takes(out.dtype, m, n, k)
    read = None
    if simple and not is_few and (found := real.operands(a, b)) is not None:
        a, b, read = found
    packed, (left, right, target, other) = strided.packed_layout(_LAYOUT, n, a, b, out, residual)
    arrays = (left, right, target if after.bias is None else after.bias, other, target)
    if is_few:
        gemv.launch(a, b, arrays, packed, prod(out.shape[:-2]), after.packed(n))
        return
    if read is not None:
        real.launch(a, b, read, arrays, packed, after.packed(n))
        return
    one = strided.tile(out)
    spec = SOURCE.of(f"pk::gemm_after<{CTYPES[out.dtype.name]}{strided.sizes(one)}>")
    kernels.launch(spec, strided.grid(out, one), strided.THREADS, *arrays, packed, after.packed(n))


def finish(sums: GPUArray, out: GPUArray, after: After) -> None:
    """out = after(sums): of a kernel's product, dense and rounded to the type."""
    residual = out if after.residual is None else after.residual
    ctype, packed_after = CTYPES[out.dtype.name], after.packed(out.shape[-1])
    if after.act != "swiglu" and after.by_pieces(out):
        pieces = out.size * out.itemsize // ALIGNMENT
        spec = SOURCE.of(f"pk::finish_pieces<{ctype}>")
        arrays = (sums, out if after.bias is None else after.bias, residual, out)
        kernels.launch(spec, _grid(pieces), (_BLOCK, 1, 1), *arrays, struct.pack("<q", pieces), packed_after)
        return
    steps = [tuple(step // x.itemsize for step in x.strides) for x in (out, residual)]
    extents, strides = layout.collapse(out.shape, steps)
    (target, first), (other, second) = span(out), span(residual)
    packed = _ROWS.pack(size=out.size, ndim=len(extents), shape=extents, start=(first, second), stride=strides)
    spec = SOURCE.of(f"pk::finish<{ctype}>")
    arrays = (sums, target if after.bias is None else after.bias, other, target)
    kernels.launch(spec, _grid(out.size), (_BLOCK, 1, 1), *arrays, packed, packed_after)


def _grid(threads: int) -> tuple[int, int, int]:
    return -(-threads // _BLOCK), 1, 1


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that product() can ask for."""
    for dtype in promotion.FLOATS:
        ctype = CTYPES[dtype.name]
        yield tuple(f"pk::gemm_after<{ctype}{strided.sizes(one)}>" for one in strided.tiles(dtype))
    for name in ("finish", "finish_pieces"):
        yield tuple(f"pk::{name}<{CTYPES[dtype.name]}>" for dtype in FINISHED)


def _on_host(a: GPUArray, b: GPUArray, out: GPUArray, after: After) -> None:
    import numpy as np

    with np.errstate(all="ignore"):
        host.store(out, after.on_host(strided.on_host(a, b)))
