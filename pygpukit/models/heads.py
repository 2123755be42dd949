"""Orders of the rows of queries and keys: rope turns neighbouring elements of a head, or those of its halves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


def halves(values: Array, heads: int) -> Array:
    """Rows ordered for rope on neighbouring pairs, as rows for rope on halves."""
    pairs = values.reshape(heads, len(values) // heads // 2, 2, *values.shape[1:])
    return pairs.swapaxes(1, 2).reshape(values.shape)
