"""Pinned host memory: NumPy arrays that the device copies to and from at full speed, beside compute."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pygpukit import _core

if TYPE_CHECKING:
    import numpy as np

_FIELDS = (
    "total_allocated", "current_used", "peak_used", "total_allocations", "total_frees", "pool_hits", "pool_misses",
    "pool_size", "pooled_blocks",
)  # fmt: skip


def pinned_empty(shape: int | Sequence[int], dtype: Any = "float32") -> np.ndarray[Any, Any]:
    """A NumPy array with undefined contents in pinned memory; its memory is used again once nobody has it any more.

    dtype: NumPy's or this package's (those NumPy does not know become the unsigned integer with the same bits).
    Raises OutOfMemoryError, which says what to do, when the system refuses to pin so much.
    """
    import numpy as np

    host_dtype = np.dtype(dtype.to_numpy_dtype() if hasattr(dtype, "to_numpy_dtype") else dtype)
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    nbytes = math.prod(extents) * host_dtype.itemsize
    if any(extent < 0 for extent in extents):
        from pygpukit.core.errors import ShapeError

        raise ShapeError(f"pinned_empty: shape {extents} has a negative extent")
    return np.ndarray(extents, host_dtype, buffer=memoryview(_core.PinnedBuffer(max(1, nbytes))))


def is_pinned(array: np.ndarray[Any, Any]) -> bool:
    """True where a contiguous NumPy array lies in this package's pinned memory."""
    return _core.pinned_holds(array.__array_interface__["data"][0], array.nbytes)


def pinned_stats() -> dict[str, Any]:
    """Figures of the pinned memory behind pinned_empty(): bytes, counts, and hit_rate."""
    stats = _core.pinned_stats()
    return {**{field: getattr(stats, field) for field in _FIELDS}, "hit_rate": stats.hit_rate()}


def pinned_trim() -> int:
    """Unpin what is kept for reuse; returns how many blocks."""
    return _core.pinned_trim()
