"""Products of half precision with weights of 8-bit floats or of integers by CUTLASS on SM 9.0: which, and the launch.

Tensor cores sum all of k, as no other kernel of such products does: a row's bits are its own by this backend, and it is
taken by name alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product as product_of
from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.core.dtypes import float32, uint8
from pygpukit.kernels import launch
from pygpukit.ops import copying
from pygpukit.ops.matmul.cutlass import room, scaled
from pygpukit.ops.matmul.cutlass.room import Shape
from pygpukit.ops.matmul.layout.operand import readable
from pygpukit.ops.matmul.sm90 import common, tensor_maps
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.matmul.problem import Problem
    from pygpukit.ops.matmul.tile.fp8 import Scale

BACKEND, FAMILIES = room.BACKEND, ("decoded",)
SOURCE = room.source(__file__, "mixed.cu")
_SCALES = SOURCE.structure("MixedScales")
_INTEGERS = {"int8": "signed char", "int4": "cutlass::int4b_t"}
_WEIGHTS = {**scaled.ELEMENTS, **_INTEGERS}
_ELEMENTS = {"bfloat16": "cutlass::bfloat16_t", "float16": "cutlass::half_t"}
_SHAPE = Shape(128, 128)  # lines of the weight, rows of the other operand
DEPTH = 128  # of k, a step: mixed.cu


def unscalable(a: GPUArray, b: GPUArray, left: Scale, right: Scale) -> str:
    """Why the kernels do not take these types and scales, "" where they do."""
    if a.dtype.name not in _ELEMENTS or b.dtype.name not in scaled.ELEMENTS:
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


def integers(a: GPUArray, n: int) -> str:
    """Why the kernels do not multiply half precision with a weight of integers of n columns, "" where they do."""
    first = next(expression for expression, *_ in _listing() if _INTEGERS["int8"] in expression)
    return room.missing(SOURCE.of(first), (1, *a.shape[:1], n, a.shape[1]))


def product(
    a: GPUArray, b: GPUArray, left: Scale, right: Scale, out: GPUArray, of_groups: GPUArray | None = None
) -> None:
    """out = (left a) @ (right b), where unscalable() is "".

    b: of 8-bit floats or int8; or uint8, two numbers of int4 along k in a byte, the first in its low bits. of_groups:
    of integers, (groups, n) scales of a's type, each of as many whole steps of k, or one of all.
    """
    (m, k), n = a.shape, b.shape[1]
    kind = "int4" if b.dtype == uint8 else b.dtype.name
    weight, rows = readable(b, "columns", along_k=True), readable(a, "rows", along_k=True)
    line = DEPTH // 2 if kind == "int4" else DEPTH  # bytes
    lies = weight.lead, weight.matrices, weight.step
    of_weight: list[GPUArray | bytes] = [
        span(weight.array)[0],
        tensor_maps.tail(1, _SHAPE.rows, b.shape[0], n, *lies, line=line),
    ]
    dense = out if out.dtype in (a.dtype, float32) else native.empty(out.shape, float32)
    call, blocks = room.call((1, n, m, k), _SHAPE)
    into = room.target(dense)
    groups = 1 if of_groups is None else of_groups.shape[0]
    packed = _SCALES.pack(
        weight_step=right.steps[0],
        row_step=left.steps[0],
        has_weight=right.values is not None,
        has_row=left.values is not None,
        of_group=-(-k // (groups * DEPTH)),
        groups=groups,
        factor=left.number * right.number,
    )
    launch(
        SOURCE.of(_expression(kind, of_groups is not None, a.dtype.name, dense.dtype.name)),
        (blocks, 1, 1),
        common.THREADS,
        call,
        *of_weight,
        *common.mapped((rows,), (_SHAPE.columns // common.CLUSTER,), (m,), (False,), k),
        *(of_weight if of_groups is None else _mapped(of_groups)),
        *room.result(into, dense),
        packed,
        *(into if scale.values is None else span(scale.values)[0] for scale in (right, left)),
    )
    room.finish(into, dense)
    if dense is not out:
        copying.copy_to(dense, out)


def _mapped(of_groups: GPUArray) -> list[GPUArray | bytes]:
    """The scales of groups, and the tail of their map: of 128 columns at a time, as they lie."""
    groups, n = of_groups.shape
    lines = readable(of_groups, "rows", along_k=True)
    line = _SHAPE.rows * of_groups.itemsize
    return [
        span(lines.array)[0],
        tensor_maps.tail(of_groups.itemsize, 1, n, groups, lines.lead, 1, 0, line=line, swizzled=False),
    ]


def _expression(weight: str, in_groups: bool, element: str, result: str) -> str:
    operand = f"{_WEIGHTS[weight]}, {_ELEMENTS[element] if in_groups else 'void'}"
    types = f"{operand}, {_ELEMENTS[element]}, {_ELEMENTS.get(result, 'float')}"
    return f"pk::cutlass_mixed<{types}, {_SHAPE.columns}, {common.CLUSTER}>"


@SOURCE.lists
def _listing() -> Iterator[tuple[str, ...]]:
    for weight, element in product_of(_WEIGHTS, _ELEMENTS):
        for result in (element, "float32"):
            for in_groups in (False, True) if weight in _INTEGERS else (False,):
                yield (_expression(weight, in_groups, element, result),)
