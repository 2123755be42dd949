"""histogram, histogram2d, histogramdd, bincount and digitize, as NumPy's functions; the same bits on every run.

Counts come from integer atomics; weights are sorted by bin and added in float64 in a fixed order. bins: a number, which
needs range= or reads two numbers for it; edges as a list or an array; an estimator's name. What is read waits.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import reduce as reduced
from math import prod
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.array import promotion
from pygpukit.array.factory import asarray
from pygpukit.core.dtypes import bool_, float64, int64, uint8
from pygpukit.core.errors import DTypeError, ShapeError
from pygpukit.ops import copying, elementwise, reduce, shape, sorting
from pygpukit.ops.elementwise import logic
from pygpukit.ops.operands import check_array, check_devices, is_array
from pygpukit.ops.scan.differences import diff
from pygpukit.ops.shape import joining
from pygpukit.ops.statistics.counting import count_between, count_places, places_between, sum_places
from pygpukit.ops.statistics.edges import edges_of
from pygpukit.ops.statistics.rows import check_real

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

    Range = tuple[float, float] | None

__all__ = ["bincount", "digitize", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd"]


def histogram(
    a: GPUArray, bins: Any = 10, range: Range = None, density: bool = False, weights: GPUArray | None = None
) -> tuple[GPUArray, GPUArray]:
    """(counts, edges) of the flattened array: int64, or sums of weights in their type; with density over an area of 1.

    A bin has its lower edge, the last both. NaN is in no bin. range: the outermost edges of a number of bins. Raises
    ValueError (no bin, falling edges, an end that is not finite), TypeError, ShapeError, DTypeError (complex).
    """
    a, weights = _flat(a, weights, "histogram")
    edges = edges_of(a, bins, range, weights is not None, "histogram")
    if weights is None:
        counts = count_between(a, edges)
    else:
        counts = _weighted(places_between(a, edges), weights, edges.size - 1)
    if density:
        widths = elementwise.as_type(diff(edges), float64)
        counts = elementwise.div(elementwise.div(counts, widths), reduce.sum(counts))
    return counts, edges


def histogram_bin_edges(a: GPUArray, bins: Any = 10, range: Range = None, weights: GPUArray | None = None) -> GPUArray:
    """The edges that histogram() would use. Arguments and errors as there."""
    a, weights = _flat(a, weights, "histogram_bin_edges")
    return edges_of(a, bins, range, weights is not None, "histogram_bin_edges")


def histogramdd(
    sample: Any,
    bins: Any = 10,
    range: Sequence[Range] | None = None,
    density: bool = False,
    weights: GPUArray | None = None,
) -> tuple[GPUArray, list[GPUArray]]:
    """(counts, edges of each axis): float64 counts of points in a grid of bins, with an axis for each coordinate.

    sample: (points, coordinates), or a sequence of 1-D arrays, one a coordinate. bins: for all coordinates, or a list
    with an entry for each. range: an entry for each, None for the outermost points. Else as histogram().
    """
    parts = list(sample) if isinstance(sample, (list, tuple)) else _columns(sample)
    parts = [check_real(part, "histogramdd") for part in parts]
    if not parts or any(part.ndim != 1 or part.shape != parts[0].shape for part in parts):
        raise ShapeError(f"histogramdd: coordinates have shapes {[p.shape for p in parts]}; they must be 1-D and equal")
    common = reduced(promotion.promote, (part.dtype for part in parts))
    parts = [elementwise.as_type(part, common) for part in parts]
    each = list(bins) if isinstance(bins, (list, tuple)) else [bins] * len(parts)
    if len(each) != len(parts) or (range is not None and len(range) != len(parts)):
        raise ValueError(f"histogramdd: bins and range must have an entry for each of {len(parts)} coordinates")
    ends = [None] * len(parts) if range is None else list(range)
    # Edges between Python numbers are float64, as in NumPy.
    parts = [part if end is None else elementwise.as_type(part, float64) for part, end in zip(parts, ends, strict=True)]
    edges = [edges_of(*one, weights is not None, "histogramdd") for one in zip(parts, each, ends, strict=True)]
    extents = tuple(edge.size - 1 for edge in edges)
    place, inside = None, None
    for part, edge, extent in zip(parts, edges, extents, strict=True):
        own = places_between(part, edge)
        holds = logic.not_equal(own, extent)
        place = own if place is None else elementwise.add(elementwise.mul(place, extent), own)
        inside = holds if inside is None else logic.logical_and(inside, holds)
    assert place is not None and inside is not None
    place = elementwise.where(inside, place, prod(extents))
    if weights is None:
        counts = elementwise.as_type(count_places(place, prod(extents)), float64)
    else:
        weights = check_array(weights, "histogramdd: weights")
        if weights.shape != parts[0].shape:
            raise ShapeError(f"histogramdd: weights have shape {weights.shape}; it must be {parts[0].shape}")
        counts = elementwise.as_type(_weighted(place, weights, prod(extents)), float64)
    counts = shape.reshape(counts, extents)
    if density:
        counts = elementwise.div(counts, reduce.sum(counts))
        for axis, edge in enumerate(edges):
            along = tuple(-1 if k == axis else 1 for k, _ in enumerate(edges))
            counts = elementwise.div(counts, diff(edge).reshape(along))
    return counts, edges


def histogram2d(
    x: GPUArray,
    y: GPUArray,
    bins: Any = 10,
    range: Sequence[Range] | None = None,
    density: bool = False,
    weights: GPUArray | None = None,
) -> tuple[GPUArray, GPUArray, GPUArray]:
    """(counts, edges of x, edges of y) of the points (x, y). bins: for both, [for x, for y], or edges for both."""
    pair = isinstance(bins, (list, tuple)) and len(bins) == 2
    counts, edges = histogramdd([x, y], bins if pair else [bins, bins], range, density, weights)
    return counts, edges[0], edges[1]


def bincount(x: GPUArray, weights: GPUArray | None = None, minlength: int = 0) -> GPUArray:
    """The count of each number from 0 to the largest in the 1-D array x, int64; or float64 sums of weights.

    minlength: numbers that the result has at least. Waits for the smallest and the largest. Raises ValueError (negative
    numbers, another number of weights), ShapeError, TypeError (floats).
    """
    x = check_array(x, "bincount")
    check_devices("bincount", x, *([] if weights is None else [check_array(weights, "bincount: weights")]))
    if x.ndim != 1:
        raise ShapeError(f"bincount: x has shape {x.shape}; it must be 1-D")
    if not (promotion.is_integer(x.dtype) or x.dtype == bool_):
        raise DTypeError(f"bincount: {x.dtype} is not safely int64; convert with .astype('int64')")
    if minlength < 0:
        raise ValueError(f"bincount: minlength is {minlength}; it must not be negative")
    if weights is not None and weights.shape != x.shape:
        raise ShapeError(f"bincount: weights have shape {weights.shape}; it must be {x.shape}, as that of x")
    if weights is not None and weights.dtype in promotion.COMPLEX:
        raise DTypeError(f"bincount: weights are {weights.dtype}; convert to real numbers")
    places = elementwise.as_type(x, int64)
    low, high = joining.stack([reduce.min(places), reduce.max(places)]).to_numpy() if x.size else (0, -1)
    if low < 0:
        raise ValueError(f"bincount: x has {int(low)} as int64; numbers must not be negative")
    bins = max(int(high) + 1, int(minlength))
    if weights is None or not x.size:  # as in NumPy, without elements there is nothing to add up
        return count_places(places, bins)
    return sum_places(places, elementwise.as_type(weights, float64), bins)


def digitize(x: GPUArray, bins: Any, right: bool = False) -> GPUArray:
    """The index, int64, of the bin of each element: of the first edge above it (with right: not below it).

    bins: 1-D edges that rise or fall, a list or an array; those on the device are read, which waits.
    """
    import numpy as np

    x = check_real(x, "digitize")
    edges = bins if is_array(bins) else np.asarray(bins)
    if edges.ndim != 1:
        raise ShapeError(f"digitize: bins has shape {edges.shape}; edges must be 1-D")
    falls = _falls(edges)
    edges = edges if is_array(edges) else asarray(edges)
    side = "left" if right else "right"
    if not falls:
        return sorting.searchsorted(edges, x, side)
    index = sorting.searchsorted(shape.flip(edges), x, side)
    return elementwise.sub(edges.size, index)


# ---- common parts ----


def _falls(edges: Any) -> bool:
    """True where edges fall; raises ValueError where they do neither fall nor rise."""
    values = edges.to_numpy() if is_array(edges) else edges
    before, behind = values[:-1], values[1:]
    changes = (before != behind).nonzero()[0]
    if not changes.size:
        return False
    # As in NumPy the first change decides, and a NaN after it neither rises nor falls.
    falls = not before[changes[0]] < behind[changes[0]]
    if ((before < behind) if falls else (before > behind)).any():
        raise ValueError("digitize: bins must increase or decrease monotonically")
    return falls


def _flat(a: Any, weights: Any, what: str) -> tuple[GPUArray, GPUArray | None]:
    a = check_real(a, what)
    if a.dtype == bool_:
        warnings.warn(f"{what}: bool is counted as uint8", RuntimeWarning, stacklevel=3)
        a = elementwise.as_type(a, uint8)
    if weights is not None:
        weights = check_array(weights, f"{what}: weights")
        check_devices(what, a, weights)
        if weights.shape != a.shape:
            raise ShapeError(f"{what}: weights have shape {weights.shape}; it must be {a.shape}, as that of the array")
        weights = shape.ravel(weights)
    return shape.ravel(a), weights


def _weighted(places: GPUArray, weights: GPUArray, bins: int) -> GPUArray:
    """Sums of weights by place, in the weights' type."""
    if weights.dtype not in promotion.COMPLEX:
        return elementwise.as_type(sum_places(places, elementwise.as_type(weights, float64), bins), weights.dtype)
    sums = native.empty(bins, weights.dtype)
    for part, target in ((weights.real, sums.real), (weights.imag, sums.imag)):
        copying.copy_to(sum_places(places, elementwise.as_type(part, float64), bins), target)
    return sums


def _columns(sample: Any) -> list[GPUArray]:
    sample = check_array(sample, "histogramdd")
    if sample.ndim > 2:
        raise ShapeError(f"histogramdd: sample has shape {sample.shape}; it must be (points, coordinates)")
    return [sample] if sample.ndim < 2 else [sample[:, k] for k in range(sample.shape[1])]
