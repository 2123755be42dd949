"""Products on the tensor cores of SM 9.0 by kernels of their own: which ones, and the launch.

Their bits are those of the tile kernels, so that plans take whichever of the two is faster.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product as product_of
from math import prod
from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.core import device
from pygpukit.core.backend import is_sim
from pygpukit.core.choices import by_device
from pygpukit.core.dtypes import bfloat16, float8_e4m3, float8_e5m2, float16, float32, int8
from pygpukit.kernels import GENERIC_LAMBDAS, KernelSpec, builder, launch
from pygpukit.ops import copying, raw
from pygpukit.ops.matmul import times
from pygpukit.ops.matmul.epilogue.epilogue import Epilogue
from pygpukit.ops.matmul.layout.batch import is_one_product, matrix_of, rows_of
from pygpukit.ops.matmul.layout.operand import ALIGNMENT, as_it_is, readable
from pygpukit.ops.matmul.sm90 import common, tensor_maps
from pygpukit.ops.matmul.tile import half
from pygpukit.ops.matmul.tile.fp8 import Scale
from pygpukit.ops.matmul.tile.tiling import Tile, cluster_tiles
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DataType
    from pygpukit.ops.matmul.epilogue.quantise import Conversion
    from pygpukit.ops.matmul.problem import Problem

BACKEND = "hopper"
SOURCE = KernelSpec(
    __file__,
    "cluster.cu",
    shared_bytes=common.SHARED_BYTES,
    cluster=(common.CLUSTER, 1, 1),
    ahead=("sm_90a",),
    options=GENERIC_LAMBDAS,
    instead=True,
)
_CALL = SOURCE.structure("HopperCall")
_ROWS, _BOX_LINES = 256, 128  # cluster.cu: kPairRows, kBoxLines
_UNSCALED, _BY_LINE, _BY_BLOCK = 0, 1, 2  # cluster.cu: Scaling
_ELEMENTS = {"float8_e4m3": "pk::e4m3_t", "float8_e5m2": "pk::e5m2_t", "float32": "float", **common.HALVES}
_ROUNDED, _GATED, _CONVERTED = 0, 1, 2  # hopper_write.cuh: Writing
CONVERTED = {float32: 0, float16: 1, bfloat16: 2, float8_e4m3: 3, float8_e5m2: 4, int8: 5}  # conversion.cuh: Converted
_RESULTS = ("float32", "bfloat16", "float16")  # of 8-bit floats
# What is computed, by a problem's family.
_FAMILIES = {
    "half": "{} summed in float32",
    "tf32": "{} rounded to tf32, summed in float32",
    "fp8": "{}, every 128 of k summed anew and added in float32",
}
_NO_SCALE = Scale(None, 1, (0, 0))


def refusal(p: Problem) -> str:
    """Why plans do not take these kernels for a product, "" where they may."""
    if is_sim():
        return "on the simulated device they are asked for by name alone"
    return unsupported(p)


def unsupported(p: Problem) -> str:
    """Why these kernels cannot make a product, "" where they can."""
    return _unsupported(p.family, p.dtype, p.folded.extents) or p.scales or missing()


def time_us(p: Problem) -> float:
    """The time of the fastest tile by the measured times."""
    return _time_us(p.family or "", p.folded.extents, tiling(p))


def tiling(p: Problem) -> Tile:
    """The tile of a cluster of two blocks."""
    return _fastest(p.family or "", p.folded.extents, p.family == "half" and p.a_transposed)


def reason(p: Problem) -> str:
    """The computation, and why not by tile kernels."""
    if lacking := half.missing():
        return f"{does(p)}, with the bits of the tile kernels: {lacking}"
    return f"{does(p)}; faster than the tile kernels by {times.source()}, with the same bits"


def does(p: Problem) -> str:
    """The computation in words."""
    return f"{_FAMILIES[p.family or ''].format(p.dtype)}, by kernels for the tensor cores of SM 9.0"


@by_device
def _fastest(family: str, extents: tuple[int, int, int, int], transposed: bool, halved: bool = False) -> Tile:
    """The tile of a pair of blocks whose measured times are shortest. transposed: a lies along m. halved: b lies along
    n, and gated or converted results are written."""
    fitting = [
        candidate
        for candidate in cluster_tiles(family)
        if candidate.general >= transposed and (not halved or _is_halved(candidate))
    ]
    return min(fitting, key=lambda candidate: _time_us(family, extents, candidate))


def _time_us(family: str, extents: tuple[int, int, int, int], tile: Tile) -> float:
    products, m, n, k = extents
    size, clusters = {"half": 2, "tf32": 4, "fp8": 1}[family], max(device.current().sm_count // common.CLUSTER, 1)
    return tile.time_us(m, n, k, products, size, clusters)


def finishes(a: GPUArray, b: GPUArray, out: GPUArray, epilogue: Epilogue) -> bool:
    """True if there is an epilogue, and product() applies it in its launch."""
    if (epilogue.is_nothing() and epilogue.conversion is None) or not epilogue.by_pieces(out):
        return False
    if epilogue.conversion is not None:
        return epilogue.act != "swiglu" and converts(a, b, epilogue.conversion)
    return epilogue.act != "swiglu" or _is_written_otherwise(a, b)


def converts(a: GPUArray, b: GPUArray, conversion: Conversion) -> bool:
    """True if product() converts a @ b in its launch, for a dense result."""
    aligned = all(b.shape[-1] * operand.itemsize % ALIGNMENT == 0 for operand in (a, conversion.dtype))
    return aligned and conversion.dtype in CONVERTED and _is_written_otherwise(a, b)


def _is_written_otherwise(a: GPUArray, b: GPUArray) -> bool:
    """True if there are kernels for these operands that write gated or converted results."""
    if a.dtype == float32:
        return False
    if a.ndim > 2 and is_one_product(b, a):
        a = rows_of(a)
    left = as_it_is(a)
    return left is None or not left.transposed


def _is_halved(tile: Tile) -> bool:
    """True if halves of a tile's columns are whole copies of operands along n."""
    return tile.columns % (2 * common.CHUNK) == 0


def run(p: Problem, a: GPUArray, b: GPUArray, out: GPUArray, epilogue: Epilogue | None = None) -> None:
    """out = epilogue(a @ b), where finishes() says so."""
    product(a, b, out, epilogue)


def product(a: GPUArray, b: GPUArray, out: GPUArray, epilogue: Epilogue | None = None) -> None:
    """out = a @ b, stacks of matrices with the same batch axes: float16, bfloat16, or float32 rounded to tf32.

    epilogue: applied to the rounded product in the same launch, where finishes() says so.
    """
    if out.ndim > 2 and is_one_product(b, a, out):
        a, b, out = rows_of(a), matrix_of(b), rows_of(out)
        if epilogue is not None and epilogue.residual is not None:
            epilogue = replace(epilogue, residual=rows_of(epilogue.residual))
    scale = _NO_SCALE if epilogue is None or epilogue.conversion is None else _scale(epilogue.conversion.scale)
    _launch("tf32" if a.dtype == float32 else "half", a, b, scale, _NO_SCALE, out, _UNSCALED, epilogue)


def scaled(a: GPUArray, b: GPUArray, left: Scale, right: Scale, out: GPUArray) -> None:
    """out = (left a) @ (right b), of 8-bit floats of one type, where fp8_tile.refusal() is ""."""
    _launch("fp8", a, b, left, right, out, _BY_BLOCK if left.by_block or right.by_block else _BY_LINE)


def _scale(of_all: GPUArray | float) -> Scale:
    return Scale(None, 1, (0, 0), of_all) if isinstance(of_all, float) else Scale(of_all, 1, (0, 0))


def _launch(
    kind: str,
    a: GPUArray,
    b: GPUArray,
    left: Scale,
    right: Scale,
    out: GPUArray,
    scaling: int,
    epilogue: Epilogue | None = None,
) -> None:
    m, n, k = out.shape[-2], out.shape[-1], a.shape[-1]
    along_k = kind != "half"  # only numbers of 16 bits are read along m and n, too
    stacks = readable(a, "rows", along_k), readable(b, "columns", along_k)
    transposed = stacks[0].transposed, not stacks[1].transposed
    products, across_b = prod(out.shape[:-2]), b.shape[-1]
    epilogue = epilogue or Epilogue()
    how = _GATED if epilogue.act == "swiglu" else _CONVERTED if epilogue.conversion is not None else _ROUNDED
    tile = _fastest(kind, (products, m, across_b, k), transposed[0], how != _ROUNDED and transposed[1])
    operands = common.mapped(stacks, _tma_boxes(tile, scaling, transposed), (m, across_b), transposed, k)
    dense = out if out.is_contiguous() else native.empty(out.shape, out.dtype)
    scales, result = (left, right), a.dtype if how == _CONVERTED else out.dtype
    call = _CALL.pack(
        row=n,
        matrix=m * n,
        scale_line=[part.steps[0] for part in scales],
        scale_depth=[part.steps[1] for part in scales],
        m=m,
        n=n,
        k=k,
        products=products,
        matrices=[stack.matrices for stack in stacks],
        repeat=[stack.repeat for stack in stacks],
        line_shift=[part.lines.bit_length() - 1 for part in scales],  # of 1 or 128
        has_scale=[part.values is not None for part in scales],
        factor=left.number * right.number,
        whole=n * out.itemsize % ALIGNMENT == 0 and raw.address(dense) % ALIGNMENT == 0,
        follows=not epilogue.is_nothing(),
        type=CONVERTED.get(out.dtype, 0),
        bytes=out.itemsize,
        after=epilogue.packed(n),
    )
    clusters = products * -(-m // tile.rows) * -(-across_b // tile.columns)
    launch(
        SOURCE.of(_expression(a.dtype.name, result.name, scaling, tile.columns, transposed, how)),
        (min(clusters, max(device.current().sm_count // common.CLUSTER, 1)) * common.CLUSTER, 1, 1),
        common.THREADS,
        call,
        *operands,
        *(dense if part.values is None else span(part.values)[0] for part in scales),
        *(dense if array is None else array for array in (epilogue.bias, epilogue.residual)),
        dense,
    )
    if dense is not out:
        copying.copy_to(dense, out)


def _tma_boxes(tile: Tile, scaling: int, transposed: tuple[bool, bool]) -> tuple[int, int]:
    """Lines of a and of b that are copied at a time: cluster.cu, Copier."""
    if scaling != _UNSCALED and tile.columns > _BOX_LINES:
        return _BOX_LINES, _BOX_LINES
    return common.CHUNK if transposed[0] else _BOX_LINES, common.CHUNK // common.CLUSTER if transposed[
        1
    ] else tile.columns // common.CLUSTER


def _expression(
    element: str, result: str, scaling: int, columns: int, transposed: tuple[bool, bool], how: int = _ROUNDED
) -> str:
    flags = ", ".join("true" if flag else "false" for flag in transposed) + (f", {how}" if how else "")
    return f"pk::hopper_product<{_ELEMENTS[element]}, {_ELEMENTS[result]}, {scaling}, {columns}, {flags}>"


@SOURCE.lists
def _listing() -> Iterator[tuple[str, ...]]:
    straight = False, False
    for name, tile, b_transposed in product_of(common.HALVES, cluster_tiles("half"), (False, True)):
        for a_transposed in (False, True)[: 1 + tile.general]:
            yield (_expression(name, name, _UNSCALED, tile.columns, (a_transposed, b_transposed)),)
        for how in (_GATED, _CONVERTED) if _is_halved(tile) or not b_transposed else ():
            yield (_expression(name, name, _UNSCALED, tile.columns, (False, b_transposed), how),)
    for tile in cluster_tiles("tf32"):
        yield (_expression("float32", "float32", _UNSCALED, tile.columns, straight),)
    for element, result, scaling, tile in product_of(
        ("float8_e4m3", "float8_e5m2"), _RESULTS, (_BY_LINE, _BY_BLOCK), cluster_tiles("fp8")
    ):
        yield (_expression(element, result, scaling, tile.columns, straight),)


@by_device
def missing() -> str:
    """Why these kernels are not to be had here, "" where they are, as far as is known."""
    return builder.missing(SOURCE.of(next(iter(_listing()))[0]))


@by_device
def _unsupported(family: str | None, dtype: DataType, extents: tuple[int, int, int, int]) -> str:
    if family not in _FAMILIES:
        return f"these kernels multiply 8-bit floats, float16, bfloat16, and float32 with tf32=True, not {dtype}"
    capability = device.current().capability
    if not is_sim() and capability != common.SM:
        return f"its instructions are those of SM 9.0; this device is SM {capability / 10:.1f}"
    products, m, n, _ = extents
    smallest = min(tile.columns for tile in cluster_tiles(family))
    if max(extents) >= 2**31 - 2 * _ROWS or products * -(-m // _ROWS) * -(-n // smallest) >= 2**31:
        return f"extents of {extents} are more than these kernels count"
    return "" if is_sim() else tensor_maps.refusal()
