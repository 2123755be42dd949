"""Edges of bins: evenly spaced between two ends, by an estimator of their number, or those that were given.

Ends that are left out, estimators, and the order of edges that are on the device are read from there, which waits for a
few numbers. Estimators as NumPy names them: Freedman and Diaconis (fd), Scott, Doane, Sturges, Stone, Rice, the square
root, and auto, the narrower of fd and Sturges.
"""

from __future__ import annotations

import math
import operator
import warnings
from typing import TYPE_CHECKING, Any

from pygpukit.array import promotion
from pygpukit.array.factory import asarray, from_numpy
from pygpukit.core.dtypes import bfloat16, float64
from pygpukit.core.errors import ShapeError
from pygpukit.ops import elementwise, indexing, reduce
from pygpukit.ops.elementwise import logic
from pygpukit.ops.operands import is_array
from pygpukit.ops.shape import joining
from pygpukit.ops.statistics.counting import count_between
from pygpukit.ops.statistics.quantiles import percentile

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

    Ends = tuple[float, float]

_MIN_STONE = 100  # numbers of bins that Stone's rule tries, at least


def edges_of(a: GPUArray, bins: Any, ends: Any, weighted: bool, what: str) -> GPUArray:
    """The edges of bins for the 1-D array a, ascending, on the device. Raises ValueError, TypeError, ShapeError."""
    if not isinstance(bins, str) and not _is_number(bins):
        return edges_of_bins(bins, what)
    first, last = outer(a, ends, what)
    if isinstance(bins, str):
        if weighted:
            raise TypeError(f"{what}: bins={bins!r} estimates from elements that count once; give a number of bins")
        count = _estimated(bins, a, None if ends is None else (first, last), (first, last), what)
    else:
        try:
            count = operator.index(bins)
        except TypeError as error:
            raise TypeError(f"{what}: bins is {bins!r}; it must be an integer, an estimator's name or edges") from error
        if count < 1:
            raise ValueError(f"{what}: bins is {count}; it must be 1 or more")
    return _spaced(a, first, last, count, what)


def edges_of_bins(bins: Any, what: str) -> GPUArray:
    """Edges of a list, or of an array on the device, of which one truth value is read."""
    import numpy as np

    edges = bins if is_array(bins) else np.asarray(bins)
    if edges.ndim != 1:
        raise ShapeError(f"{what}: bins has shape {edges.shape}; edges must be 1-D")
    if edges.size > 1:
        falls = reduce.any(logic.less(edges[1:], edges[:-1])).item() if is_array(edges) else (np.diff(edges) < 0).any()
        if falls:
            raise ValueError(f"{what}: bins must increase monotonically")
    return edges if is_array(edges) else asarray(edges)


def outer(a: GPUArray, ends: Any, what: str) -> tuple[Any, Any]:
    """The outermost edges: those given, or the smallest and the largest element; half a unit apart of one value."""
    import numpy as np

    if ends is not None:
        first, last = ends
        if first > last:
            raise ValueError(f"{what}: range is {ends}; its end must not be below its begin")
        if not (np.isfinite(first) and np.isfinite(last)):
            raise ValueError(f"{what}: range is {ends}; it must be finite")
    elif not a.size:
        first, last = 0, 1
    else:
        first, last = joining.stack([reduce.min(a), reduce.max(a)]).to_numpy()
        if a.dtype == bfloat16:
            first, last = (np.uint32(int(x) << 16).view(np.float32) for x in (first, last))
        if not (np.isfinite(first) and np.isfinite(last)):
            raise ValueError(f"{what}: the elements are from {first} to {last}, which must be finite; give range=")
    return (first - 0.5, last + 0.5) if first == last else (first, last)


def _spaced(a: GPUArray, first: Any, last: Any, count: int, what: str) -> GPUArray:
    import numpy as np

    own = np.empty(0, np.float32 if a.dtype == bfloat16 else a.dtype.to_numpy_dtype())
    dtype = np.result_type(first, last, own)
    edges = np.linspace(first, last, count + 1, dtype=np.result_type(dtype, float) if dtype.kind in "iu" else dtype)
    if (edges[:-1] >= edges[1:]).any():
        raise ValueError(f"{what}: {count} bins from {first} to {last} are narrower than numbers there; use fewer bins")
    return from_numpy(edges)


def _is_number(bins: Any) -> bool:
    return getattr(bins, "ndim", 0) == 0 and not isinstance(bins, (list, tuple))


# ---- estimators of the number of bins ----


def _estimated(name: str, a: GPUArray, cut: Ends | None, ends: Ends, what: str) -> int:
    if name not in ("auto", "doane", "fd", "rice", "scott", "sqrt", "stone", "sturges"):
        raise ValueError(
            f"{what}: bins={name!r} is no estimator; use auto, fd, scott, doane, sturges, stone, rice, sqrt"
        )
    if cut is not None:
        a = indexing.get(a, logic.logical_and(logic.greater_equal(a, cut[0]), logic.less_equal(a, cut[1])))
    if not a.size:
        return 1
    width = _width(name, a, ends)
    if promotion.is_integer(a.dtype) and 0 < width < 1:
        width = 1
    return math.ceil((float(ends[1]) - float(ends[0])) / width) if width else 1


def _width(name: str, a: GPUArray, ends: Ends) -> float:
    n = a.size
    wide = elementwise.as_type(a, float64)
    if name == "scott":
        return (24 * math.pi**0.5 / n) ** (1 / 3) * reduce.std(wide).item()
    low, high = reduce.min(wide).item(), reduce.max(wide).item()
    reach = high - low
    if name == "sqrt":
        return reach / math.sqrt(n)
    if name == "rice":
        return reach / (2 * n ** (1 / 3))
    if name == "sturges":
        return reach / (math.log2(n) + 1)
    if name == "doane":
        return _doane(wide, n, reach)
    if name == "stone":
        return _stone(a, n, reach, ends)
    upper, lower = percentile(wide, [75, 25]).to_numpy()
    fd = 2 * float(upper - lower) * n ** (-1 / 3)
    if name == "fd":
        return fd
    sturges = reach / (math.log2(n) + 1)
    return min(max(fd, reach / math.sqrt(n) / 2), sturges)


def _doane(wide: GPUArray, n: int, reach: float) -> float:
    deviation = reduce.std(wide).item()
    if n <= 2 or deviation <= 0:
        return 0.0
    distance = elementwise.div(elementwise.sub(wide, reduce.mean(wide)), deviation)
    skew = reduce.mean(elementwise.mul(elementwise.square(distance), distance)).item()
    error = math.sqrt(6 * (n - 2) / ((n + 1) * (n + 3)))
    return reach / (1 + math.log2(n) + math.log2(1 + abs(skew) / error))


def _stone(a: GPUArray, n: int, reach: float, ends: Ends) -> float:
    """The number of bins of the least estimated risk (Stone, An asymptotically optimal histogram selection rule)."""
    if n <= 1 or not reach:
        return 0.0
    max_bins = max(_MIN_STONE, math.isqrt(n))

    def risk(bins: int) -> float:
        edges = _spaced(a, *ends, bins, "histogram")
        shares = count_between(a, edges).to_numpy() / n
        return float((2 - (n + 1) * shares.dot(shares)) / (reach / bins))

    best = min(range(1, max_bins + 1), key=risk)
    if best == max_bins:
        warnings.warn("histogram: the best number of bins may lie beyond those tried", RuntimeWarning, stacklevel=3)
    return reach / best
