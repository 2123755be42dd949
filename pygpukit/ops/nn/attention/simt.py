"""Attention on CUDA cores, with everything that changes scores: the launch of its kernel, and what those of decoding
pack as it does."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit.core.dtypes import DataType, bfloat16, float16, float32
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.nn.attention.extras import LOG2_E, Extras
from pygpukit.ops.nn.attention.problem import Call, Problem
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

SOURCE = kernels.KernelSpec(__file__, "attention.cu")
_PLACE, _EXTRAS = SOURCE.structure("AttentionPlace"), SOURCE.structure("AttentionExtras")
_ATTENTION = SOURCE.structure("Attention")
TYPES = (float32, float16, bfloat16)
_LANES = 8  # attention.cu: kLanes
# Head dimensions up to this one: queries and keys at a time, as many as fit 48 KiB of shared memory.
_TILES = {64: (32, 32), 128: (32, 32), 256: (16, 16)}
MAX_HEAD_DIM = max(_TILES)


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that attention can ask for."""
    for dtype in TYPES:
        for more in (False, True):
            yield tuple(_expression(dtype, width, more) for width in _TILES)


def _expression(dtype: DataType, width: int, more: bool) -> str:
    rows, keys = _TILES[width]
    return f"pk::attention<{CTYPES[dtype.name]}, {width}, {rows}, {keys}, {str(more).lower()}>"


def factor(scale: float, dim: int) -> float:
    """The factor of scores: 1 / sqrt(dim) when scale is 0 or below."""
    return scale if scale > 0 else 1 / math.sqrt(dim)


def place(array: GPUArray) -> tuple[GPUArray, bytes]:
    """The storage of a ([batch,] heads, rows, columns) array, and where in it the elements are."""
    storage, start = span(array)
    steps = [step // array.itemsize for step in array.strides]
    return storage, _PLACE.pack(start=start, step=steps if array.ndim == 4 else [0, *steps])


def packed_extras(more: Extras, scale: float, mask_place: bytes | None) -> bytes:
    """The kernels' AttentionExtras. scale: as factor() gives it."""
    return _EXTRAS.pack(
        ahead=more.ahead,
        behind=more.behind,
        has_mask=more.mask is not None,
        has_sinks=more.sinks is not None,
        mask=_PLACE.pack(start=0, step=[0]) if mask_place is None else mask_place,
        scale=scale / more.cap if more.cap else scale * LOG2_E,
        cap=more.cap * LOG2_E,
    )


def _length_step(lengths: GPUArray | None) -> int:
    """0 where one length is for all."""
    return 0 if lengths is None or lengths.size == 1 else lengths.strides[0] // lengths.itemsize


def refusal(p: Problem) -> str:
    """It takes everything."""
    return ""


def tiling(p: Problem) -> None:
    """There is none to choose."""


def run(p: Problem, call: Call, tiling: None) -> None:
    """Fill the result, which has elements."""
    Q, K, V, out, scale, offset, more = call
    heads = Q.shape[-3]
    width = next(width for width in _TILES if p.dim <= width)
    rows = _TILES[width][0]
    (q, k, v, result), places = zip(*(place(array) for array in (Q, K, V, out)), strict=True)
    mask, mask_place = (q, None) if more.mask is None else place(more.mask)
    packed = _ATTENTION.pack(
        heads=heads,
        group=p.group,
        queries=p.queries,
        keys=p.keys,
        dim=p.dim,
        offset=p.keys - p.queries if offset is None else offset,
        has_length=more.lengths is not None,
        length_step=_length_step(more.lengths),
        at_end=offset is None,
        **dict(zip(("q", "k", "v", "out"), places, strict=True)),
        more=packed_extras(more, scale, mask_place),
    )
    lengths = q if more.lengths is None else more.lengths
    kernels.launch(
        SOURCE.of(_expression(Q.dtype, width, more.change_scores)),
        (-(-p.queries // rows) * p.heads, 1, 1),
        (rows * _LANES, 1, 1),
        *(q, k, v, result, lengths, mask, q if more.sinks is None else more.sinks, packed),
    )
