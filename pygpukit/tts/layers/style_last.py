"""adapt() where channels are dense, as tensor cores read them: three launches, the first of which adds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, Any

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.core.dtypes import DataType, float16, float32
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.nn.spans import Spans

SOURCE = kernels.KernelSpec(__file__, "style_last.cu", options=kernels.SAME_BITS)
_STYLE = SOURCE.structure("StyleLast")
_PIECE, _LANES, _BLOCK = 256, 32, 256  # style_last.cu: kPiece, kLanes
_TYPES = (float32, float16)


def has(x: GPUArray) -> bool:
    """True if x (1, C, L) lies as these kernels read it."""
    channels, length = x.shape[1:]
    dense = x.strides[1] == x.itemsize and (length == 1 or x.strides[2] == channels * x.itemsize)
    return x.shape[0] == 1 and channels > 1 and dense


def like(x: GPUArray, dtype: DataType) -> GPUArray:
    """An empty array of the shape (1, C, L) and layout of x."""
    return native.empty((1, x.shape[2], x.shape[1]), dtype).transpose(0, 2, 1)


def run(
    x: GPUArray,
    other: GPUArray | None,
    weights: tuple[GPUArray | None, GPUArray | None],
    alpha: GPUArray | None,
    out: GPUArray,
    spans: Spans | None,
    fields: dict[str, Any],
) -> GPUArray:
    """Fill out; the sum of x and other, or x. fields: of the kernels' structure that depend on no layout."""
    channels, length = x.shape[1:]
    sentences, longest = (1, length) if spans is None else (len(spans), spans.longest)
    pieces = max(1, -(-longest // _PIECE))
    total = x if other is None else like(x, float32)
    parts, table = native.empty((sentences, pieces, 2, channels)), native.empty((sentences, 3, channels))
    packed = _STYLE.pack(
        **fields,
        channels=channels,
        length=length,
        spans=0 if spans is None else len(spans),
        pieces=pieces,
        has_other=other is not None,
    )
    places = parts if spans is None else spans.device
    n = 4 if channels % 4 == 0 else 1
    grid = (pieces, sentences, -(-channels // (_LANES * n)))
    scale, shift = (parts if array is None else array for array in weights)
    first, result = (span(array)[0] for array in (x, out))
    more, sums = (first, first) if other is None else (span(other)[0], span(total)[0])
    kind = CTYPES[x.dtype.name]
    kernels.launch(
        SOURCE.of(f"pk::style_moments<{kind}, {n}>"), grid, (_BLOCK, 1, 1), first, more, places, sums, parts, packed
    )
    kernels.launch(
        SOURCE.of("pk::style_table"),
        (-(-channels // 128), sentences, 1),
        (128, 1, 1),
        *(parts, scale, shift, places, table, packed),
    )
    kind = f"{CTYPES[total.dtype.name]}, {CTYPES[out.dtype.name]}"
    arrays = sums, table, table if alpha is None else alpha, places, result
    kernels.launch(SOURCE.of(f"pk::style_apply<{kind}, {n}>"), grid, (_BLOCK, 1, 1), *arrays, packed)
    return total


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """All kernels."""
    names = ["pk::style_table"]
    for n, kind in product((4, 1), _TYPES):
        names.append(f"pk::style_moments<{CTYPES[kind.name]}, {n}>")
        names += [f"pk::style_apply<{CTYPES[kind.name]}, {CTYPES[result_type.name]}, {n}>" for result_type in _TYPES]
    yield tuple(names)
