"""Products of groups of rows, each group with a weight of its own: the experts of a mixture."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.array import promotion
from pygpukit.core.dtypes import int32, int64
from pygpukit.core.errors import DTypeError, ShapeError
from pygpukit.ops import copying, host
from pygpukit.ops.elementwise import clamp
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.matmul import grouped_hopper, grouped_tile, plain
from pygpukit.ops.operands import check_array, check_devices, span
from pygpukit.ops.prepared import prepared

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["grouped_matmul"]

SOURCE = kernels.KernelSpec(__file__, "grouped.cu")
_CALL = SOURCE.structure("GroupedCall")
_TILE = 64  # gemm.cuh: kTile


@prepared
def grouped_matmul(x: GPUArray, w: GPUArray, counts: GPUArray) -> GPUArray:
    """x (R, k) in groups of neighbouring rows, each times its weight of w (G, k, n), gives (R, n).

    counts (G,) of int32 or int64, on the device: rows of each group; it is not read by the host, so that a router's
    result can be used at once. A group may be empty. Rows that no group has become 0; a count below 0 is 0, and counts
    end with the rows. x and w: one float type, any strides. Summed in float32 (float64 for it); float16 and bfloat16 on
    tensor cores where matmul_plan() says "tile". A row's bits are those of matmul() by the same plan, whatever the
    groups. Asynchronous. Raises ShapeError, DTypeError, DeviceMismatchError.
    """
    what = "grouped_matmul"
    x, w, counts = (check_array(one, f"{what}: {name}") for name, one in (("x", x), ("w", w), ("counts", counts)))
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
    out = native.empty((x.shape[0], w.shape[2]), x.dtype)
    if not out.size:
        return out
    if host.computes():
        native.host_launch(what, lambda: _on_host(x, w, counts, out), [x, w, counts, out])
    else:
        if counts.dtype == int64:  # what int32 cannot hold is more than all rows, or less than none
            counts = copying.astype(clamp(counts, 0, min(x.shape[0], 2**31 - 1)), int32)
        _product_of(x, w)(x, w, copying.contiguous(counts), out)
    return out


def _product_of(x: GPUArray, w: GPUArray) -> Callable[[GPUArray, GPUArray, GPUArray, GPUArray], None]:
    planned = grouped_tile.planned(x, w)
    if planned in ("tile", "hopper") and grouped_hopper.takes(x, w):
        return grouped_hopper.product
    return grouped_tile.product if planned == "tile" else _on_device


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that grouped_matmul() can ask for."""
    yield tuple(f"pk::gemm_grouped<{CTYPES[dtype.name]}>" for dtype in promotion.FLOATS)


def _on_host(x: GPUArray, w: GPUArray, counts: GPUArray, out: GPUArray) -> None:
    import numpy as np

    result, first = np.zeros(out.shape, np.float64 if x.dtype.itemsize == 8 else np.float32), 0
    for group, count in enumerate(host.values(counts).tolist()):
        end = min(first + max(count, 0), x.shape[0])
        if end > first:
            result[first:end] = plain.on_host(x[first:end], w[group])
        first = end
    host.store(out, result)


def _on_device(x: GPUArray, w: GPUArray, counts: GPUArray, out: GPUArray) -> None:
    (rows, k), (groups, _, n) = x.shape, w.shape
    arrays = (x, w, out)
    steps = [[step // one.itemsize for step in one.strides] for one in arrays]
    spans, starts = zip(*(span(one) for one in arrays), strict=True)
    call = _CALL.pack(
        rows=rows,
        n=n,
        k=k,
        start=starts,
        row=[own[-2] for own in steps],
        column=[own[-1] for own in steps],
        group=steps[1][0],
        groups=groups,
        unused=0,
    )
    tiles = (rows // _TILE + groups + 1) * -(-n // _TILE)  # a group's last tile may be a part
    spec = SOURCE.of(f"pk::gemm_grouped<{CTYPES[x.dtype.name]}>")
    kernels.launch(spec, (tiles, 1, 1), plain.THREADS, spans[0], spans[1], counts, spans[2], call)
