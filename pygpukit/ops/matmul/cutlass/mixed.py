"""Products of half precision with weights of 8-bit floats by CUTLASS on SM 9.0: which ones, and the launch.

Tensor cores sum all of k, as no other kernel of such products does: a row's bits are its own by this backend, and it is
taken by name alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product as product_of
from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.core.dtypes import float32
from pygpukit.kernels import launch
from pygpukit.ops import copying
from pygpukit.ops.matmul.cutlass import room, scaled
from pygpukit.ops.matmul.cutlass.room import Shape
from pygpukit.ops.matmul.layout.operand import readable
from pygpukit.ops.matmul.sm90 import common
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.matmul.problem import Problem
    from pygpukit.ops.matmul.tile.fp8 import Scale

BACKEND, FAMILIES = room.BACKEND, ("decoded",)
SOURCE = room.source(__file__, "mixed.cu")
_SCALES = SOURCE.structure("MixedScales")
_WEIGHTS = scaled.ELEMENTS
_ELEMENTS = {"bfloat16": "cutlass::bfloat16_t", "float16": "cutlass::half_t"}
_SHAPE = Shape(128, 128)  # lines of the weight, rows of the other operand


def unscalable(a: GPUArray, b: GPUArray, left: Scale, right: Scale) -> str:
    """Why the kernels do not take these types and scales, "" where they do."""
    if a.dtype.name not in _ELEMENTS or b.dtype.name not in _WEIGHTS:
        return f"CUTLASS's kernels take bfloat16 or float16 times fp8, these are {a.dtype} and {b.dtype}"
    if left.by_block or right.by_block:
        return "beside a weight of fp8 CUTLASS's kernels take scales of all, of rows and of columns, not of blocks of k"
    return ""


def unsupported(p: Problem) -> str:
    """Why these kernels cannot make a product, "" where they can."""
    if p.family not in FAMILIES:
        return f"these kernels multiply half precision with weights of fp8, not {p.dtype}"
    return p.scales or room.missing(SOURCE.of(next(iter(_listing()))[0]), p.folded.extents)


def time_us(p: Problem) -> float:
    """0: the backend has no other kernel for these products."""
    return 0.0


def tiling(p: Problem) -> Shape:
    """The tile of a block."""
    return _SHAPE


def reason(p: Problem) -> str:
    """The computation in words."""
    return does(p)


def does(p: Problem) -> str:
    """The computation in words."""
    return f"fp8 decoded to {p.dtype} on the way to tensor cores, summed in float32, by CUTLASS for SM 9.0"


def product(a: GPUArray, b: GPUArray, left: Scale, right: Scale, out: GPUArray) -> None:
    """out = (left a) @ (right b), where unscalable() is ""."""
    (m, k), n = a.shape, b.shape[1]
    stacks = readable(b, "columns", along_k=True), readable(a, "rows", along_k=True)
    dense = out if out.dtype in (a.dtype, float32) else native.empty(out.shape, float32)
    call, blocks = room.call((1, n, m, k), _SHAPE)
    into = room.target(dense)
    packed = _SCALES.pack(
        weight_step=right.steps[0],
        row_step=left.steps[0],
        has_weight=right.values is not None,
        has_row=left.values is not None,
        factor=left.number * right.number,
    )
    launch(
        SOURCE.of(_expression(b.dtype.name, a.dtype.name, dense.dtype.name)),
        (blocks, 1, 1),
        common.THREADS,
        call,
        *common.mapped(stacks, (_SHAPE.rows, _SHAPE.columns // common.CLUSTER), (n, m), (False, False), k),
        *room.result(into, dense),
        packed,
        *(into if scale.values is None else span(scale.values)[0] for scale in (right, left)),
    )
    room.finish(into, dense)
    if dense is not out:
        copying.copy_to(dense, out)


def _expression(weight: str, element: str, result: str) -> str:
    types = f"{_WEIGHTS[weight]}, {_ELEMENTS[element]}, {_ELEMENTS.get(result, 'float')}"
    return f"pk::cutlass_mixed<{types}, {_SHAPE.columns}, {common.CLUSTER}>"


@SOURCE.lists
def _listing() -> Iterator[tuple[str, ...]]:
    for weight, element in product_of(_WEIGHTS, _ELEMENTS):
        for result in (element, "float32"):
            yield (_expression(weight, element, result),)
