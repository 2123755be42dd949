"""The epilogue of a product (scale, bias, activation, residual): in the launch that sums, or in a second launch."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.array import layout
from pygpukit.core.dtypes import bfloat16, float16, float32
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.matmul.layout.operand import ALIGNMENT
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.matmul.choose import Kernel
    from pygpukit.ops.matmul.epilogue.epilogue import Epilogue
    from pygpukit.ops.matmul.problem import Problem

SOURCE = kernels.KernelSpec(__file__, "fused.cu", options=kernels.GENERIC_LAMBDAS)
_ROWS = SOURCE.structure("Layout", Operands=2)
_BLOCK = 256
FINISHED = (float16, bfloat16, float32)  # types that finish() is compiled for


def run(kernel: Kernel, p: Problem, a: GPUArray, b: GPUArray, out: GPUArray, epilogue: Epilogue) -> None:
    """out = epilogue(a @ b), by a kernel and what it leaves to do."""
    if epilogue.is_nothing() and epilogue.conversion is None:
        kernel.run(p, a, b, out)
    elif kernel.finishes(a, b, out, epilogue):
        kernel.run(p, a, b, out, epilogue)
    elif epilogue.conversion is not None:
        rounded = native.empty(out.shape, a.dtype)
        run(kernel, p, a, b, rounded, replace(epilogue, conversion=None))
        epilogue.conversion.of(rounded, out)
    else:
        sums = native.empty((*out.shape[:-1], b.shape[-1]), out.dtype)
        kernel.run(p, a, b, sums)
        finish(sums, out, epilogue)


def finish(sums: GPUArray, out: GPUArray, epilogue: Epilogue) -> None:
    """out = epilogue(sums): of a kernel's product, dense and rounded to the type."""
    residual = out if epilogue.residual is None else epilogue.residual
    ctype, packed_epilogue = CTYPES[out.dtype.name], epilogue.packed(out.shape[-1])
    if epilogue.act != "swiglu" and epilogue.by_pieces(out):
        pieces = out.size * out.itemsize // ALIGNMENT
        spec = SOURCE.of(f"pk::finish_pieces<{ctype}>")
        arrays = (sums, out if epilogue.bias is None else epilogue.bias, residual, out)
        kernels.launch(spec, _grid(pieces), (_BLOCK, 1, 1), *arrays, struct.pack("<q", pieces), packed_epilogue)
        return
    steps = [tuple(step // x.itemsize for step in x.strides) for x in (out, residual)]
    extents, strides = layout.collapse(out.shape, steps)
    (target, first), (other, second) = span(out), span(residual)
    packed = _ROWS.pack(size=out.size, ndim=len(extents), shape=extents, start=(first, second), stride=strides)
    spec = SOURCE.of(f"pk::finish<{ctype}>")
    arrays = (sums, target if epilogue.bias is None else epilogue.bias, other, target)
    kernels.launch(spec, _grid(out.size), (_BLOCK, 1, 1), *arrays, packed, packed_epilogue)


def _grid(threads: int) -> tuple[int, int, int]:
    return -(-threads // _BLOCK), 1, 1


@SOURCE.lists
def _listing() -> Iterator[tuple[str, ...]]:
    for name in ("finish", "finish_pieces"):
        yield tuple(f"pk::{name}<{CTYPES[dtype.name]}>" for dtype in FINISHED)
