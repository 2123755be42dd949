"""Attention on tensor cores: when the tile kernels take it, what is copied for them first, and their launch."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.core.backend import is_sim
from pygpukit.core.choices import by_device
from pygpukit.core.dtypes import DataType, bfloat16, float16
from pygpukit.kernels import KernelSpec, builder, launch
from pygpukit.ops.nn.attention import tiles
from pygpukit.ops.nn.attention.extras import LOG2_E
from pygpukit.ops.nn.attention.problem import Call, Problem
from pygpukit.ops.nn.attention.tiles import TILES, Tile
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

ATTENTION = KernelSpec(__file__, "tile.cu", front_end="tile", ahead=("sm_90a",), instead=True)
_ELEMENTS = {bfloat16: "__nv_bfloat16", float16: "__half"}
_ROW = 8  # elements that steps and the head dimension are multiples of
_ALIGNMENT = 16  # bytes
_COUNTABLE = 2**31 - 1  # elements of an array
_ONE = (1, 1, 1)


def refusal(p: Problem) -> str:
    """Why the tile kernels do not take this attention, "" where they do.

    It follows from types, the head dimension, what changes the scores, and the device; never from the numbers of
    queries and keys, unless they cannot be counted.
    """
    return unsupported(p) or missing()


def unsupported(p: Problem) -> str:
    """Why no kernel on tensor cores takes this attention, "" where one does."""
    if is_sim():
        return "the simulated device computes with NumPy"
    if p.dtype not in _ELEMENTS:
        return f"{p.dtype} is computed as it is, on CUDA cores"
    if p.dim % _ROW:
        return f"rows of {p.dim} elements are no whole {_ALIGNMENT} bytes"
    if p.weighed:
        return "masks, capped scores and sinks are computed on CUDA cores"
    if p.reach > _COUNTABLE:
        return "an operand has more elements than a tile kernel counts"
    return ""


def tiling(p: Problem) -> Tile | None:
    """The tile that is fastest; None where no key is seen."""
    if p.seen <= 0:
        return None
    return tiles.fastest(_width(p), p.heads, p.queries, p.seen, p.causal, p.device.sm_count)


def run(p: Problem, call: Call, tiling: Tile | None) -> None:
    """Fill the result, which has elements."""
    from pygpukit.ops import copying

    Q, K, V, out, scale, offset, more = call
    if not readable(out):
        result = native.empty(out.shape, out.dtype)
        run(p, call._replace(out=result), tiling)
        copying.copy_to(result, out)
        return
    if tiling is None:
        copying.fill(out, 0)
        return
    heads, keys = Q.shape[-3], p.seen
    together = tiles.together(p.heads, p.group, 2 * keys * p.dim * K.itemsize) if p.causal else 1
    lengths = more.lengths
    step = 0 if lengths is None or lengths.size == 1 else lengths.strides[0] // lengths.itemsize
    arrays = [array if readable(array) else dense(array) for array in (Q, K, V)] + [out]
    shape = p.heads // heads, heads, p.group, p.queries, keys, p.dim
    integers = (*shape, p.place, p.ahead, p.behind, offset is None, step, together)
    launch(
        ATTENTION.of(_expression(p.dtype, _width(p), tiling, p.lengths)),
        (-(-p.queries // tiling.queries) * p.heads, 1, 1),
        _ONE,
        *(span(array)[0] for array in (*arrays, arrays[0] if lengths is None else lengths)),
        *(struct.pack("<i", number) for number in integers),
        struct.pack("<f", scale * LOG2_E),
        *(struct.pack("<i", number) for array in arrays for number in steps(array)),
    )


def _width(p: Problem) -> int:
    return next(width for width in TILES if p.dim <= width)


def readable(array: GPUArray) -> bool:
    """True where the kernels can read or write it where it lies: dense rows of whole 16 bytes, forward."""
    if array.device_ptr % _ALIGNMENT or array.strides[-1] != array.itemsize:
        return False
    outer = zip(array.shape[:-1], array.strides[:-1], strict=True)
    return all(extent == 1 or (stride > 0 and stride % _ALIGNMENT == 0) for extent, stride in outer)


def dense(array: GPUArray) -> GPUArray:
    """A dense copy."""
    from pygpukit.ops import copying

    copy = native.empty(array.shape, array.dtype)
    copying.copy_to(array, copy)
    return copy


def steps(array: GPUArray) -> tuple[int, ...]:
    """Elements between neighbours in batch, heads and positions; of a single one a row's."""
    each = tuple(
        array.shape[-1] if extent == 1 else stride // array.itemsize
        for extent, stride in zip(array.shape[:-1], array.strides[:-1], strict=True)
    )
    return each if array.ndim == 4 else (array.shape[-1], *each)


def _expression(dtype: DataType, width: int, one: Tile, has_lengths: bool) -> str:
    numbers = f"{one.queries}, {one.keys}, {width}, {one.warps}, {one.resident}"
    return f"pk::attention<{_ELEMENTS[dtype]}, {numbers}, {str(has_lengths).lower()}>"


@ATTENTION.lists
def _listing() -> Iterator[tuple[str, ...]]:
    for dtype, (width, every), has_lengths in product(_ELEMENTS, TILES.items(), (False, True)):
        for one in every:
            yield (_expression(dtype, width, one, has_lengths),)


@by_device
def missing() -> str:
    """Why there are no tile kernels here, "" where there are."""
    return builder.missing(ATTENTION.of(next(iter(_listing()))[0]))
