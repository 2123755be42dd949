"""Products of 8-bit floats with scales by CUTLASS on SM 9.0: which ones, and the launch.

Every 128 of k is summed anew and added in float32, as by the kernels in sm90/: a row's bits are theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product as product_of
from math import inf
from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.core.dtypes import float32
from pygpukit.kernels import launch
from pygpukit.ops import copying, plans
from pygpukit.ops.indexing.padding import repeat
from pygpukit.ops.matmul import times
from pygpukit.ops.matmul.cutlass import room
from pygpukit.ops.matmul.cutlass.room import Shape
from pygpukit.ops.matmul.layout.operand import readable
from pygpukit.ops.matmul.sm90 import common
from pygpukit.ops.matmul.tile.fp8 import BLOCK, Scale
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.matmul.problem import Problem

BACKEND, FAMILIES = room.BACKEND, ("fp8",)
SOURCE = room.source(__file__, "scaled.cu")
_SCALES = SOURCE.structure("Scales")
ELEMENTS = {"float8_e4m3": "cutlass::float_e4m3_t", "float8_e5m2": "cutlass::float_e5m2_t"}
_RESULTS = {"bfloat16": "cutlass::bfloat16_t", "float16": "cutlass::half_t", "float32": "float"}
# What the source is compiled for: the second, whose operands take a sixth less of the L2 cache's bandwidth, where it
# takes no longer and scales are not those of blocks.
SHAPES = (Shape(128, 128), Shape(128, 192))
_WIDE = 1.37  # of the time of a tile of the first shape, a tile of the second: measured on an H200


def refusal(p: Problem) -> str:
    """Why plans do not take these kernels for a product, "" where they may."""
    return unsupported(p) if p.family == "fp8" and room.measured("fp8") else room.UNMEASURED


def unsupported(p: Problem) -> str:
    """Why these kernels cannot make a product, "" where they can."""
    if p.family != "fp8":
        return f"these kernels multiply 8-bit floats, not {p.dtype}"
    if p.scales:
        return p.scales
    return room.missing(SOURCE.of(next(iter(_listing()))[0]), p.folded.extents)


def time_us(p: Problem) -> float:
    """The time by the measured times, infinite where there are none."""
    products, m, n, k = p.folded.extents
    sizes = m, n, k, products, p.dtype.itemsize, room.clusters()
    return min((tile.time_us(*sizes) for tile in room.measured("fp8")), default=inf)


def tiling(p: Problem) -> Shape:
    """The tile of a block, where scales are not those of blocks."""
    return _fastest(*p.folded.extents[1:3])


@plans.follows
def _fastest(m: int, n: int) -> Shape:
    """The shape whose turns on all multiprocessors end first."""

    def turns(shape: Shape) -> int:
        clusters = -(-m // (common.CLUSTER * shape.rows)) * -(-n // shape.columns)
        return -(-clusters // room.clusters())

    narrow, wide = SHAPES
    return wide if _WIDE * turns(wide) < turns(narrow) else narrow


def reason(p: Problem) -> str:
    """The computation, and why by these kernels."""
    return f"{does(p)}; faster than the other kernels by {times.source()}, with the same bits"


def does(p: Problem) -> str:
    """The computation in words."""
    return f"{p.dtype}, every 128 of k summed anew and added in float32, by CUTLASS for the tensor cores of SM 9.0"


def product(a: GPUArray, b: GPUArray, left: Scale, right: Scale, out: GPUArray) -> None:
    """out = (left a) @ (right b), of matrices of 8-bit floats of one type, where fp8_tile.unscalable() is ""."""
    (m, k), n = a.shape, b.shape[1]
    stacks = readable(a, "rows", along_k=True), readable(b, "columns", along_k=True)
    by_block = left.by_block or right.by_block
    if by_block and left.values is not None and left.lines == BLOCK:  # the kernel takes one for each row
        values = repeat(left.values, BLOCK, axis=0)
        left = Scale(values, 1, (values.shape[1], 1), left.number)
    scales = left, right
    packed = _SCALES.pack(
        line=[scale.steps[0] for scale in scales],
        depth=[scale.steps[1] for scale in scales],
        has=[scale.values is not None for scale in scales],
        factor=left.number * right.number,
    )
    shape = SHAPES[0] if by_block else _fastest(m, n)
    call, blocks = room.call((1, m, n, k), shape)
    into = room.target(out)
    launch(
        SOURCE.of(_expression(a.dtype.name, out.dtype.name, shape, by_block)),
        (blocks, 1, 1),
        common.THREADS,
        call,
        *common.mapped(stacks, (shape.rows, shape.columns // common.CLUSTER), (m, n), (False, False), k),
        *room.result(into, out),
        packed,
        *(into if values is None else values for values in (_values(scale, by_block) for scale in scales)),
    )
    room.finish(into, out)


def _values(scale: Scale, by_block: bool) -> GPUArray | None:
    """The scales on the device, from the first one on; 1 where blocks are scaled and there are none, else None."""
    if scale.values is not None:
        return span(scale.values)[0]
    if not by_block:
        return None
    one = native.empty((1,), float32)
    copying.fill(one, 1.0)
    return one


def _expression(element: str, result: str, shape: Shape, by_block: bool) -> str:
    flag = "true" if by_block else "false"
    types = f"{ELEMENTS[element]}, {_RESULTS[result]}"
    return f"pk::cutlass_scaled<{types}, {shape.columns}, {common.CLUSTER}, {flag}>"


@SOURCE.lists
def _listing() -> Iterator[tuple[str, ...]]:
    for element, result in product_of(ELEMENTS, _RESULTS):
        yield (_expression(element, result, SHAPES[0], True),)
        for shape in SHAPES:
            yield (_expression(element, result, shape, False),)
