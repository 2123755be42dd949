"""Products of half precision and in tf32 by CUTLASS on SM 9.0: which ones, by which tile, and the launch.

Its sums go over k in the order of the kernels in sm90/, so that a row's bits are theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product as product_of
from math import inf, prod
from typing import TYPE_CHECKING

from pygpukit.core import device
from pygpukit.kernels import launch
from pygpukit.ops import plans
from pygpukit.ops.matmul import times
from pygpukit.ops.matmul.cutlass import room
from pygpukit.ops.matmul.cutlass.room import Shape
from pygpukit.ops.matmul.epilogue.epilogue import in_another_launch
from pygpukit.ops.matmul.layout.batch import is_one_product, matrix_of, rows_of
from pygpukit.ops.matmul.layout.operand import Operand, readable
from pygpukit.ops.matmul.sm90 import common

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.matmul.epilogue.epilogue import Epilogue
    from pygpukit.ops.matmul.problem import Problem

BACKEND, FAMILIES = room.BACKEND, ("half", "tf32")
SOURCE = room.source(__file__, "product.cu")
_ELEMENTS = {"bfloat16": "cutlass::bfloat16_t", "float16": "cutlass::half_t", "float32": "float"}
finishes = in_another_launch
# What the source is compiled for: the first for many tiles, the second where those leave multiprocessors idle.
SHAPES = (Shape(128, 256), Shape(128, 128))


def refusal(p: Problem) -> str:
    """Why plans do not take these kernels for a product, "" where they may."""
    if p.epilogue:
        return "the kernels in sm90/ finish a product in their launch, with the same bits"
    return unsupported(p) if room.measured(p.family or "") else room.UNMEASURED


def unsupported(p: Problem) -> str:
    """Why these kernels cannot make a product, "" where they can."""
    if p.family not in FAMILIES:
        return f"CUTLASS's kernels multiply 8-bit floats, float16, bfloat16, and float32 with tf32=True, not {p.dtype}"
    first = SOURCE.of(next(iter(_listing()))[0])
    return room.missing(first, p.folded.extents) or _repeated(p.folded.a, p.folded.b)


def _repeated(*operands: Operand) -> str:
    """A stack whose matrices repeat is not what a tensor map describes."""
    for operand in operands:
        steps = operand.strides[:-2]
        if any(extent > 1 and step == 0 for extent, step in zip(operand.shape, steps, strict=False)):
            return "CUTLASS's kernels read a stack of different matrices, and this one repeats some"
    return ""


def time_us(p: Problem) -> float:
    """The time of the fastest tile by the measured times, infinite where there are none."""
    return min((tile.time_us(*_sizes(p)) for tile in room.measured(p.family or "")), default=inf)


def tiling(p: Problem) -> Shape:
    """The tile of a block."""
    return _fastest(p.family or "", p.dtype.itemsize, p.folded.extents)


def reason(p: Problem) -> str:
    """The computation, and why by these kernels."""
    return f"{does(p)}; faster than the other kernels by {times.source()}, with the same bits"


def does(p: Problem) -> str:
    """The computation in words."""
    rounded = " rounded to tf32," if p.family == "tf32" else ""
    return f"{p.dtype}{rounded} summed in float32, by CUTLASS for the tensor cores of SM 9.0"


def _sizes(p: Problem) -> tuple[int, int, int, int, int, int]:
    products, m, n, k = p.folded.extents
    return m, n, k, products, p.dtype.itemsize, room.clusters()


@plans.follows
def _fastest(family: str, itemsize: int, extents: tuple[int, int, int, int]) -> Shape:
    products, m, n, k = extents
    if measured := room.measured(family):
        best = min(measured, key=lambda tile: tile.time_us(m, n, k, products, itemsize, room.clusters()))
        return Shape(best.rows // common.CLUSTER, best.columns)
    wide = SHAPES[0]
    return wide if products * -(-m // wide.rows) * -(-n // wide.columns) >= device.current().sm_count else SHAPES[1]


def run(p: Problem, a: GPUArray, b: GPUArray, out: GPUArray, epilogue: Epilogue | None = None) -> None:
    """out = a @ b, of arrays that unsupported() takes."""
    if out.ndim > 2 and is_one_product(b, a, out):
        a, b, out = rows_of(a), matrix_of(b), rows_of(out)
    product(a, b, out, tiling(p))


def product(a: GPUArray, b: GPUArray, out: GPUArray, shape: Shape) -> None:
    """out = a @ b by tiles of one shape: stacks of matrices of one type with the same batch axes."""
    m, n, k, products = out.shape[-2], out.shape[-1], a.shape[-1], prod(out.shape[:-2])
    along_k = a.itemsize != 2  # only numbers of 16 bits are read along m and n, too
    stacks = readable(a, "rows", along_k), readable(b, "columns", along_k)
    transposed = stacks[0].transposed, not stacks[1].transposed
    tma_boxes = (
        common.CHUNK if transposed[0] else shape.rows,
        common.CHUNK // common.CLUSTER if transposed[1] else shape.columns // common.CLUSTER,
    )
    call, blocks = room.call((products, m, n, k), shape)
    into = room.target(out)
    launch(
        SOURCE.of(_expression(a.dtype.name, shape, transposed)),
        (blocks, 1, 1),
        common.THREADS,
        call,
        *common.mapped(stacks, tma_boxes, (m, n), transposed, k),
        *room.result(into, out),
    )
    room.finish(into, out)


def _expression(element: str, shape: Shape, transposed: tuple[bool, bool]) -> str:
    flags = ", ".join("true" if side else "false" for side in transposed)
    sizes = f"{shape.rows}, {shape.columns}, {common.CLUSTER}"
    return f"pk::cutlass_product<{_ELEMENTS[element]}, {sizes}, {flags}>"


@SOURCE.lists
def _listing() -> Iterator[tuple[str, ...]]:
    for element, shape, a_transposed, b_transposed in product_of(_ELEMENTS, SHAPES, (False, True), (False, True)):
        if element != "float32" or not (a_transposed or b_transposed):
            yield (_expression(element, shape, (a_transposed, b_transposed)),)
