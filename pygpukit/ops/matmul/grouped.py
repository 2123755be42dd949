"""Products of groups of rows, each group with a weight of its own: the experts of a mixture."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.array import promotion
from pygpukit.core.dtypes import int32, int64
from pygpukit.core.errors import DTypeError, GPUError, ShapeError
from pygpukit.kernels import lost
from pygpukit.ops import copying, host
from pygpukit.ops.elementwise import clamp
from pygpukit.ops.matmul.cuda_cores import grouped as cuda_grouped
from pygpukit.ops.matmul.cutlass import grouped as cutlass_grouped
from pygpukit.ops.matmul.host import on_host
from pygpukit.ops.matmul.problem import MAX_BATCH, family
from pygpukit.ops.matmul.sm90 import grouped as sm90_grouped
from pygpukit.ops.matmul.tile import grouped as tile_grouped
from pygpukit.ops.matmul.tile import half
from pygpukit.ops.operands import check_array, check_devices
from pygpukit.ops.prepared import prepared

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["grouped_matmul"]


@prepared
def grouped_matmul(x: GPUArray, w: GPUArray, counts: GPUArray, *, backend: str | None = None) -> GPUArray:
    """x (R, k) in groups of neighbouring rows, each times its weight of w (G, k, n), gives (R, n).

    counts (G,) of int32 or int64, on the device: rows of each group; it is not read by the host, so that a router's
    result can be used at once. A group may be empty. Rows that no group has become 0; a count below 0 is 0, and counts
    end with the rows. x and w: one float type, any strides. Summed in float32 (float64 for it); float16 and bfloat16 on
    tensor cores where matmul_plan() says "tile". A row's bits are those of matmul() by the same plan, whatever the
    groups. backend: None for the fastest, or "cutlass": float16 and bfloat16 by CUTLASS's kernel on SM 9.0, where its
    headers were fetched. Asynchronous. Raises ShapeError, DTypeError, DeviceMismatchError, ValueError for another
    backend, GPUError where that one does not take the product.
    """
    what = "grouped_matmul"
    x, w, counts = (check_array(array, f"{what}: {name}") for name, array in (("x", x), ("w", w), ("counts", counts)))
    if x.dtype not in promotion.FLOATS or w.dtype != x.dtype or counts.dtype not in (int32, int64):
        raise DTypeError(
            f"{what}: x is {x.dtype}, w {w.dtype}, counts {counts.dtype}; "
            "x and w must be one float type, counts int32 or int64"
        )
    if x.ndim != 2 or w.ndim != 3 or x.shape[1] != w.shape[1] or counts.shape != w.shape[:1]:
        raise ShapeError(
            f"{what}: x has shape {x.shape}, w {w.shape} and counts {counts.shape}; "
            "they must be (R, k), (G, k, n) and (G,)"
        )
    check_devices(what, x, w, counts)
    if backend not in (None, cutlass_grouped.BACKEND):
        raise ValueError(
            f"{what}: backend={backend!r}; it is {cutlass_grouped.BACKEND!r}, or None for the fastest kernel"
        )
    if backend and x.shape[0] and w.shape[2] and (why := cutlass_grouped.unsupported(x, w)):
        raise GPUError(f"{what}: backend={backend!r}: {why}; leave backend out for the fastest kernel")
    out = native.empty((x.shape[0], w.shape[2]), x.dtype)
    if not out.size:
        return out
    if backend:
        cutlass_grouped.product(x, w, counts, out)
    elif host.computes():
        native.host_launch(what, lambda: _on_host(x, w, counts, out), [x, w, counts, out])
    else:
        if counts.dtype == int64:  # what int32 cannot hold is more than all rows, or less than none
            counts = copying.astype(clamp(counts, 0, min(x.shape[0], 2**31 - 1)), int32)
        _product_of(x, w)(x, w, copying.contiguous(counts), out)
    return out


def grouped_rows(x: GPUArray, w: GPUArray, counts: GPUArray, out: GPUArray) -> None:
    """grouped_matmul() on a device by a kernel that follows from w alone: a row's bits do not depend on how many rows
    there are. counts: contiguous int32; out: contiguous (R, n)."""
    if family(x.dtype, x.dtype, False) is not None and w.shape[0] <= MAX_BATCH:
        if sm90_grouped.takes(x, w):
            sm90_grouped.product(x, w, counts, out)
            return
        if not (half.missing() or lost.why(tile_grouped.GROUPED)):
            tile_grouped.product(x, w, counts, out)
            return
    cuda_grouped.product(x, w, counts, out)


def _product_of(x: GPUArray, w: GPUArray) -> Callable[[GPUArray, GPUArray, GPUArray, GPUArray], None]:
    """Which kernel: of those that give a row the bits of matmul(), the fastest there is."""
    tensor = tile_grouped.has_bits_of_tiles(x, w)
    if tensor and sm90_grouped.takes(x, w):
        return sm90_grouped.product
    missing = half.missing() or lost.why(tile_grouped.GROUPED)
    return tile_grouped.product if tensor and not missing else cuda_grouped.product


def _on_host(x: GPUArray, w: GPUArray, counts: GPUArray, out: GPUArray) -> None:
    import numpy as np

    result, first = np.zeros(out.shape, np.float64 if x.dtype.itemsize == 8 else np.float32), 0
    for group, count in enumerate(host.values(counts).tolist()):
        end = min(first + max(count, 0), x.shape[0])
        if end > first:
            result[first:end] = on_host(x[first:end], w[group])
        first = end
    host.store(out, result)
