"""Products of half precision by CUTLASS on SM 9.0: which ones, by which tile, and the launch.

Its sums go over k in the order of the kernels in sm90/, so that a row's bits are theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product as product_of
from math import inf, prod
from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.core import device
from pygpukit.core.backend import is_sim
from pygpukit.core.choices import by_device
from pygpukit.jit.cutlass import place
from pygpukit.kernels import KernelSpec, builder, launch
from pygpukit.ops import copying, raw
from pygpukit.ops.matmul import precision, times
from pygpukit.ops.matmul.cutlass import raster
from pygpukit.ops.matmul.epilogue.epilogue import in_another_launch
from pygpukit.ops.matmul.layout.batch import is_one_product, matrix_of, rows_of
from pygpukit.ops.matmul.layout.operand import ALIGNMENT, Operand, aligned_length, readable
from pygpukit.ops.matmul.sm90 import common, tensor_maps
from pygpukit.ops.matmul.tile.tiling import Tile
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.matmul.epilogue.epilogue import Epilogue
    from pygpukit.ops.matmul.problem import Problem

BACKEND = "cutlass"
SOURCE = KernelSpec(
    __file__,
    "product.cu",
    shared_bytes=common.SHARED_BYTES,
    cluster=(common.CLUSTER, 1, 1),
    ahead=("sm_90a",),
    instead=True,
    wants=place.missing,
)
_CALL = SOURCE.structure("CutlassCall")
_DIVISION = SOURCE.structure("Division")
_ELEMENTS = {"bfloat16": "cutlass::bfloat16_t", "float16": "cutlass::half_t"}
_SIZE = 2  # bytes of a number
_PIECE_ROWS = 64  # cutlass_write.cuh: kPieceRows
finishes = in_another_launch


@dataclass(frozen=True)
class Shape:
    """The tile of a block of CUTLASS's kernels. str() as plans show it."""

    rows: int
    columns: int

    def __str__(self) -> str:
        return f"{self.rows}x{self.columns}"


# What the source is compiled for: the first for many tiles, the second where those leave multiprocessors idle.
SHAPES = (Shape(128, 256), Shape(128, 128))


def refusal(p: Problem) -> str:
    """Why plans do not take these kernels for a product, "" where they may."""
    return "" if _measured(p.family) and not unsupported(p) else "they were not measured to be faster on this device"


def unsupported(p: Problem) -> str:
    """Why these kernels cannot make a product, "" where they can."""
    if is_sim():
        return "the simulated device does not run CUTLASS's kernels for SM 9.0"
    if p.family != "half":
        return f"CUTLASS's kernels here multiply float16 and bfloat16, not {p.dtype}"
    return _unsupported(p.folded.extents) or _repeated(p.folded.a, p.folded.b)


@by_device
def _unsupported(extents: tuple[int, int, int, int]) -> str:
    if precision.switched_on("PYGPUKIT_NO_CUTLASS"):
        return "PYGPUKIT_NO_CUTLASS=1 forbids it"
    capability = device.current().capability
    if capability != common.SM:
        return f"its kernels are those of SM 9.0; this device is SM {capability / 10:.1f}"
    if max(extents) >= 2**31 - 2 * SHAPES[0].columns or prod(extents[:3]) >= 2**43:
        return f"extents of {extents} are more than these kernels count"
    return missing() or tensor_maps.refusal()


@by_device
def missing() -> str:
    """Why these kernels are not to be had here, "" where they are, as far as is known."""
    kernel = SOURCE.of(next(iter(_listing()))[0])
    if place.missing() and not builder.is_bundled(kernel):
        return place.missing()
    return builder.missing(kernel)


def _repeated(*operands: Operand) -> str:
    """A stack whose matrices repeat is not what a tensor map describes."""
    for operand in operands:
        steps = operand.strides[:-2]
        if any(extent > 1 and step == 0 for extent, step in zip(operand.shape, steps, strict=False)):
            return "CUTLASS's kernels read a stack of different matrices, and this one repeats some"
    return ""


def time_us(p: Problem) -> float:
    """The time of the fastest tile by the measured times, infinite where there are none."""
    return min((tile.time_us(*_sizes(p)) for tile in _measured(p.family)), default=inf)


def tiling(p: Problem) -> Shape:
    """The tile of a block."""
    return _fastest(p.folded.extents)


def reason(p: Problem) -> str:
    """The computation, and why by these kernels."""
    return f"{does(p)}; faster than the other kernels by {times.source()}, with the same bits"


def does(p: Problem) -> str:
    """The computation in words."""
    return f"{p.dtype} summed in float32, by CUTLASS for the tensor cores of SM 9.0"


def _sizes(p: Problem) -> tuple[int, int, int, int, int, int]:
    products, m, n, k = p.folded.extents
    return m, n, k, products, _SIZE, device.current().sm_count


@by_device
def _measured(family: str | None) -> tuple[Tile, ...]:
    """The tiles that the device's table has times of."""
    return tuple(Tile(**fields) for fields in times.table().get("cutlass", {}).get(family or "", []))


@by_device
def _fastest(extents: tuple[int, int, int, int]) -> Shape:
    products, m, n, k = extents
    multiprocessors = device.current().sm_count
    if measured := _measured("half"):
        best = min(measured, key=lambda tile: tile.time_us(m, n, k, products, _SIZE, multiprocessors))
        return Shape(best.rows, best.columns)
    wide = SHAPES[0]
    return wide if products * -(-m // wide.rows) * -(-n // wide.columns) >= multiprocessors else SHAPES[1]


def run(p: Problem, a: GPUArray, b: GPUArray, out: GPUArray, epilogue: Epilogue | None = None) -> None:
    """out = a @ b, of arrays that unsupported() takes."""
    if out.ndim > 2 and is_one_product(b, a, out):
        a, b, out = rows_of(a), matrix_of(b), rows_of(out)
    product(a, b, out, tiling(p))


def product(a: GPUArray, b: GPUArray, out: GPUArray, shape: Shape) -> None:
    """out = a @ b by tiles of one shape: stacks of matrices of bfloat16 or float16 with the same batch axes."""
    m, n, k, products = out.shape[-2], out.shape[-1], a.shape[-1], prod(out.shape[:-2])
    stacks = readable(a, "rows"), readable(b, "columns")
    transposed = stacks[0].transposed, not stacks[1].transposed
    tma_boxes = (
        common.CHUNK if transposed[0] else shape.rows,
        common.CHUNK // common.CLUSTER if transposed[1] else shape.columns // common.CLUSTER,
    )
    into = out if _is_written(out) else native.empty((*out.shape[:-1], aligned_length(n, _SIZE)), out.dtype)
    lead = into.shape[-1]
    tiles = raster.of(m, n, products, shape.rows, shape.columns, common.CLUSTER)
    call = _CALL.pack(
        batch=_DIVISION.pack(**raster.division(tiles.product)),
        line=_DIVISION.pack(**raster.division(tiles.line)),
        m=m,
        n=n,
        k=k,
        products=products,
        tiles=products * tiles.product,
        swizzle=tiles.swizzle,
        along_m=tiles.along_m,
    )
    blocks = min(products * tiles.product, device.current().sm_count // common.CLUSTER * common.CLUSTER)
    launch(
        SOURCE.of(_expression(a.dtype.name, shape, transposed)),
        (blocks, 1, 1),
        common.THREADS,
        call,
        *common.mapped(stacks, tma_boxes, (m, n), transposed, k),
        span(into)[0],
        tensor_maps.tail(_SIZE, _PIECE_ROWS, n, m, lead, products, m * lead),
    )
    if into is not out:
        strides = tuple(into.strides)
        copying.copy_to(native.view(into, out.shape, strides, into.offset), out)


def _is_written(out: GPUArray) -> bool:
    """The kernel writes the array itself: rows are whole 16 bytes."""
    return out.is_contiguous() and out.shape[-1] * _SIZE % ALIGNMENT == 0 and raw.address(out) % ALIGNMENT == 0


def _expression(element: str, shape: Shape, transposed: tuple[bool, bool]) -> str:
    flags = ", ".join("true" if side else "false" for side in transposed)
    sizes = f"{shape.rows}, {shape.columns}, {common.CLUSTER}"
    return f"pk::cutlass_product<{_ELEMENTS[element]}, {sizes}, {flags}>"


@SOURCE.lists
def _listing() -> Iterator[tuple[str, ...]]:
    for element, shape, a_transposed, b_transposed in product_of(_ELEMENTS, SHAPES, (False, True), (False, True)):
        yield (_expression(element, shape, (a_transposed, b_transposed)),)
