"""Sums of arrays of one layout, multiplied, with an activation and silence between sentences: one launch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.core.dtypes import DataType, float16, float32
from pygpukit.core.errors import DTypeError, ShapeError
from pygpukit.ops import copying, host
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.nn.spans import Spans
from pygpukit.ops.operands import check_array, check_devices, span
from pygpukit.tts.layers import style_last

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

SOURCE = kernels.KernelSpec(__file__, "merge.cu", options=kernels.SAME_BITS)
_MERGE = SOURCE.structure("Merge")
_MAX_INPUTS, _BLOCK = 6, 256


def merge(
    arrays: Sequence[GPUArray],
    factor: float = 1.0,
    slope: float = 1.0,
    spans: Spans | None = None,
    dtype: DataType = float32,
) -> GPUArray:
    """The sum of 1 to 6 arrays (B, C, L) float32, times factor, times slope where that is negative; zero where no
    sentence of spans is.

    The result has the layout of the first. Additions are in order. Raises ShapeError, DTypeError, DeviceMismatchError.
    """
    first = arrays[0]
    for array in arrays:
        check_array(array, "merge")
        if array.dtype != float32:
            raise DTypeError(f"merge: arrays of float32, not {array.dtype}")
        if array.ndim != 3 or array.shape != first.shape:
            raise ShapeError(f"merge: arrays of shapes {first.shape} and {array.shape}; they must be one (B, C, L)")
    check_devices("merge", *arrays)
    if len(arrays) > _MAX_INPUTS or (spans is not None and spans.total != first.shape[2]):
        raise ShapeError(
            f"merge: {len(arrays)} arrays of shape {first.shape}; at most {_MAX_INPUTS}, as long as the spans"
        )
    last = style_last.has(first)
    out = style_last.like(first, dtype) if last else native.empty(first.shape, dtype)
    if not out.size:
        return out
    inside = None if spans is None or spans.gapless else spans.inside
    if host.computes():
        work = lambda: _on_host(arrays, factor, slope, inside, out)  # noqa: E731
        native.host_launch("merge", work, [*arrays, out, *(() if inside is None else (inside,))])
        return out
    arrays = [copying.contiguous(x.transpose(0, 2, 1) if last else x) for x in arrays]
    channels, length = first.shape[1:]
    n = 4 if (channels if last else length) % 4 == 0 else 1
    packs = out.size // n
    packed = _MERGE.pack(
        packs=packs,
        channels=channels,
        length=length,
        last=last,
        count=len(arrays),
        has_inside=inside is not None,
        factor=factor,
        slope=slope,
    )
    inputs = [arrays[min(k, len(arrays) - 1)] for k in range(_MAX_INPUTS)]
    kernels.launch(
        SOURCE.of(f"pk::merge<{CTYPES[dtype.name]}, {n}>"),
        (-(-packs // _BLOCK), 1, 1),
        (_BLOCK, 1, 1),
        *(*inputs, *(inputs[:1] if inside is None else (inside,)), span(out)[0]),
        packed,
    )
    return out


def _on_host(arrays: Sequence[GPUArray], factor: float, slope: float, inside: GPUArray | None, out: GPUArray) -> None:
    import numpy as np

    total = host.values(arrays[0]).copy()
    for array in arrays[1:]:
        total += host.values(array)
    total *= np.float32(factor)
    if slope != 1:
        np.maximum(total, total * np.float32(slope), out=total)
    if inside is not None:
        total *= host.values(inside)
    host.store(out, total)


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """All kernels."""
    yield tuple(f"pk::merge<{CTYPES[kind.name]}, {n}>" for kind in (float32, float16) for n in (4, 1))
