"""Products of 8-bit floats with scales on CUDA cores, of one with wider floats, too: the launch of their kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit.core.dtypes import bfloat16, float8_e4m3, float8_e5m2, float16, float32
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.matmul.cuda_cores import strided
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.matmul.tile.fp8 import Scale

SOURCE = kernels.KernelSpec(__file__, "fp8.cu")
_CALL = SOURCE.structure("ScaledCall")
_RESULTS = (float16, bfloat16, float32)
_TYPES = (float8_e4m3, float8_e5m2, *_RESULTS)  # in the order of fp8.cu: ElementType


def product(a: GPUArray, b: GPUArray, left: Scale, right: Scale, out: GPUArray) -> None:
    """out = (left a) @ (right b), of any strides."""
    arrays = (a, b, out)
    spans, starts = zip(*(span(array) for array in arrays), strict=True)
    steps = [[step // array.itemsize for step in array.strides] for array in arrays]
    scales = (left, right)
    call = _CALL.pack(
        m=a.shape[0],
        n=b.shape[1],
        k=a.shape[1],
        start=starts,
        row=[strides[0] for strides in steps],
        column=[strides[1] for strides in steps],
        scale_line=[part.steps[0] for part in scales],
        scale_depth=[part.steps[1] for part in scales],
        lines=[part.lines for part in scales],
        type=[_TYPES.index(array.dtype) for array in (a, b)],
        has_scale=[part.values is not None for part in scales],
        factor=left.number * right.number,
        unused=0,
    )
    pointers = [spans[2] if part.values is None else span(part.values)[0] for part in scales]
    spec = SOURCE.of(f"pk::gemm_scaled<{CTYPES[out.dtype.name]}>")
    kernels.launch(spec, strided.grid(out), strided.THREADS, spans[0], spans[1], *pointers, spans[2], call)


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that matmul_fp8() can ask for."""
    yield tuple(f"pk::gemm_scaled<{CTYPES[dtype.name]}>" for dtype in _RESULTS)
