"""GemmLayout: operands of any strides, as the kernels of CUDA cores take them."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from pygpukit.array import layout
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.kernels.structure import Structure
    from pygpukit.ops.matmul.epilogue.epilogue import Epilogue


def packed_layout(structure: Structure, n: int, *operands: GPUArray) -> tuple[bytes, tuple[GPUArray, ...]]:
    """GemmLayout of stacks of matrices with the same batch axes, the first of which is a; and what the kernel's
    pointers point at."""
    steps = [[step // x.itemsize for step in x.strides] for x in operands]
    *batch, m, k = operands[0].shape
    extents, batch_steps = layout.collapse(tuple(batch), [tuple(strides[:-2]) for strides in steps])
    spans, starts = zip(*(span(x) for x in operands), strict=True)
    packed = structure.pack(
        m=m,
        n=n,
        k=k,
        batches=prod(batch),
        ndim=len(extents),
        shape=extents,
        start=starts,
        row=[strides[-2] for strides in steps],
        column=[strides[-1] for strides in steps],
        stride=batch_steps,
    )
    return packed, spans


def with_epilogue(
    structure: Structure, n: int, a: GPUArray, b: GPUArray, out: GPUArray, epilogue: Epilogue | None
) -> tuple[bytes, tuple[GPUArray, ...]]:
    """GemmLayout of a product with an epilogue, and what its pointers point at: a, b, bias, residual, out."""
    residual = out if epilogue is None or epilogue.residual is None else epilogue.residual
    packed, (left, right, target, other) = packed_layout(structure, n, a, b, out, residual)
    return packed, (left, right, target if epilogue is None or epilogue.bias is None else epilogue.bias, other, target)
