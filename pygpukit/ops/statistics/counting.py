"""Elements by bin: counts, and sums of weights, for histograms. Kernels of count.cu; NumPy on the simulated device.

Counts are integers that atomics add, in any order the same. Weights are sorted by bin, stably, and each bin's are added
in a tree that their number gives: the same bits on every run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.array import promotion
from pygpukit.core.dtypes import DataType, float32, float64, int64, uint64
from pygpukit.ops import copying, elementwise, host, indexing, sorting
from pygpukit.ops.elementwise.pointwise import CTYPES

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray

SOURCE = kernels.KernelSpec(__file__, "count.cu")
_CALL = SOURCE.structure("CountCall")
_BLOCK = 256  # count.cu: kThreads
_MAX_BLOCKS = 2048  # that count side by side; each takes several elements of a thread
_COMPARED = (float32, float64, int64, uint64)


def count_between(x: GPUArray, edges: GPUArray) -> GPUArray:
    """The number of elements between neighbours of ascending edges, int64; the last bin has both its ends."""
    x, edges = _comparable(x, edges)
    bins = edges.size - 1
    counts = _zeros(bins, int64)
    if not x.size:
        return counts
    if host.computes():

        def compute() -> None:
            import numpy as np

            places = _places(host.values(x), host.values(edges))
            host.memory(counts)[...] = np.bincount(places, minlength=bins + 1)[:bins]

        native.host_launch("histogram", compute, [x, edges, counts])
    else:
        blocks = min(-(-x.size // _BLOCK), _MAX_BLOCKS)
        _launch(f"pk::count_between<{CTYPES[x.dtype.name]}>", blocks, x, edges, counts, size=x.size, bins=bins)
    return counts


def places_between(x: GPUArray, edges: GPUArray) -> GPUArray:
    """The bin of each element, int64; the number of bins for those in none."""
    x, edges = _comparable(x, edges)
    places = native.empty(x.shape, int64)
    if not x.size:
        return places
    if host.computes():

        def compute() -> None:
            host.memory(places)[...] = _places(host.values(x), host.values(edges))

        native.host_launch("histogram", compute, [x, edges, places])
    else:
        kernel = f"pk::place_between<{CTYPES[x.dtype.name]}>"
        _launch(kernel, -(-x.size // _BLOCK), x, edges, places, size=x.size, bins=edges.size - 1)
    return places


def count_places(places: GPUArray, bins: int) -> GPUArray:
    """The count of each number from 0 up to `bins` among int64 places; others are left out."""
    counts = _zeros(bins, int64)
    if not places.size or not bins:
        return counts
    places = copying.contiguous(places)
    if host.computes():

        def compute() -> None:
            import numpy as np

            host.memory(counts)[...] = np.bincount(host.memory(places), minlength=bins)[:bins]

        native.host_launch("bincount", compute, [places, counts])
    else:
        blocks = min(-(-places.size // _BLOCK), _MAX_BLOCKS)
        _launch("pk::count_places", blocks, places, counts, size=places.size, bins=bins)
    return counts


def sum_places(places: GPUArray, weights: GPUArray, bins: int) -> GPUArray:
    """The sums of the float64 weights at each number from 0 up to `bins` among int64 places."""
    sums = _zeros(bins, float64)
    if not places.size or not bins:
        return sums
    weights = copying.contiguous(weights)
    if host.computes():

        def compute() -> None:
            import numpy as np

            with np.errstate(all="ignore"):
                host.memory(sums)[...] = np.bincount(host.memory(places), host.memory(weights), bins)[:bins]

        native.host_launch("bincount", compute, [places, weights, sums])
    else:
        order = sorting.argsort(places)
        ordered, own = indexing.take(places, order), indexing.take(weights, order)
        _launch("pk::sum_runs", min(bins, _MAX_BLOCKS), ordered, own, sums, size=places.size, bins=bins)
    return sums


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that the functions above can ask for."""
    names = [CTYPES[dtype.name] for dtype in _COMPARED]
    yield tuple(f"pk::{kind}_between<{name}>" for kind in ("count", "place") for name in names)
    yield ("pk::count_places", "pk::sum_runs")


def _comparable(x: GPUArray, edges: GPUArray) -> tuple[GPUArray, GPUArray]:
    """Both in the type that they are compared in, which holds all values of their common one."""
    common = promotion.promote(x.dtype, edges.dtype)
    if common not in _COMPARED:
        common = float32 if promotion.is_inexact(common) else int64
    return tuple(copying.contiguous(elementwise.as_type(each, common)) for each in (x, edges))  # type: ignore[return-value]


def _places(x: np.ndarray[Any, Any], edges: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    import numpy as np

    bins = len(edges) - 1
    places = np.minimum(np.searchsorted(edges, x, "right") - 1, bins - 1)
    return np.where((x >= edges[0]) & (x <= edges[-1]), places, bins)


def _zeros(count: int, dtype: DataType) -> GPUArray:
    counts = native.empty(count, dtype)
    if count:
        native.fill(counts, bytes(8))
    return counts


def _launch(kernel: str, blocks: int, *arrays: GPUArray, size: int, bins: int) -> None:
    fields = _CALL.pack(size=size, bins=bins)
    kernels.launch(SOURCE.of(kernel), (blocks, 1, 1), (_BLOCK, 1, 1), *arrays, fields)
