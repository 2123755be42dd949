"""Running medians along one axis, the border mirrored: what tells harmonic from percussive sound."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.array import layout
from pygpukit.ops import copying, host

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

SOURCE = kernels.KernelSpec(__file__, "median.cu")
_RUNNING = SOURCE.structure("Running")
_BLOCK = 256
_CTYPES = {"float32": "float", "float64": "double"}
_HOST_BYTES = 1 << 26  # of windows that are sorted at a time


def running_median(x: GPUArray, width: int, axis: int) -> GPUArray:
    """The value of rank width // 2 around each element of a float32 or float64 array, as scipy.ndimage.median_filter
    with mode "reflect" has it."""
    x = copying.contiguous(x)
    axis = layout.normalize_axis(axis, x.ndim, "running_median")
    out = native.empty(x.shape, x.dtype)
    if not x.size:
        return out
    if host.computes():
        native.host_launch("running_median", lambda: _on_host(x, width, axis, out), [x, out])
        return out
    packed = _RUNNING.pack(
        size=x.size, length=x.shape[axis], inner=prod(x.shape[axis + 1 :]), width=width, rank=width // 2
    )
    kernel = SOURCE.of(f"pk::running_rank<{_CTYPES[x.dtype.name]}>")
    kernels.launch(kernel, (-(-x.size // _BLOCK), 1, 1), (_BLOCK, 1, 1), x, out, packed)
    return out


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that running_median() can ask for."""
    yield tuple(f"pk::running_rank<{ctype}>" for ctype in _CTYPES.values())


def _on_host(x: GPUArray, width: int, axis: int, out: GPUArray) -> None:
    import numpy as np

    values = np.moveaxis(host.values(x), axis, -1)
    lines, medians = values.reshape(-1, values.shape[-1]), np.empty(values.shape, values.dtype)
    rows = medians.reshape(lines.shape)
    step = max(1, _HOST_BYTES // (width * lines.shape[-1] * lines.itemsize))
    for begin in range(0, len(lines), step):
        around = np.pad(lines[begin : begin + step], [(0, 0), (width // 2, width - width // 2 - 1)], "symmetric")
        windows = np.lib.stride_tricks.sliding_window_view(around, width, -1)
        rows[begin : begin + step] = np.partition(windows, width // 2, -1)[..., width // 2]
    host.store(out, np.moveaxis(medians, -1, axis))
