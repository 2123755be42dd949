"""When tokens are spoken: the decoder's attention over the sound, followed by dynamic time warping."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

_FILTER = 7  # positions of the median


def starts(scores: Array, skipped: int) -> Array:
    """The position at which each token begins: int (tokens - skipped - 1,).

    scores: of attention before the softmax, float32 (heads, tokens, positions), of heads that follow the sound. They
    become weights over the positions, are normalised over the tokens, smoothed by a median over positions, and
    averaged over the heads; the path through what is left that adds up to most says when a token begins. The rows are
    what the decoder listened to when it chose the token after: of the first `skipped` and the last, nothing is asked.
    """
    import numpy as np

    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    spread = weights.std(axis=-2, keepdims=True)
    weights = (weights - weights.mean(axis=-2, keepdims=True)) / np.where(spread == 0, 1, spread)
    rows, columns = warp(-_median(weights).mean(axis=0, dtype=np.float64)[skipped:-1])
    first = np.concatenate([[True], np.diff(rows) > 0])
    return columns[first]


def warp(cost: Array) -> tuple[Array, Array]:
    """The cheapest path from the first to the last element of a matrix: its rows and its columns, in order.

    Each step goes one row down, one column on, or both; of steps that cost the same it takes the one along the row.
    """
    import numpy as np

    rows, columns = cost.shape
    total = np.full((rows + 1, columns + 1), np.inf)
    total[0, 0] = 0
    came = np.zeros((rows + 1, columns + 1), np.int8)
    for diagonal in range(rows + columns - 1):  # the elements of one do not depend on each other
        i = np.arange(max(0, diagonal - columns + 1), min(rows, diagonal + 1))
        j = diagonal - i
        both, down, on = total[i, j], total[i, j + 1], total[i + 1, j]
        step = np.where((both < down) & (both < on), 0, np.where((down < both) & (down < on), 1, 2))
        total[i + 1, j + 1] = cost[i, j] + np.where(step == 0, both, np.where(step == 1, down, on))
        came[i + 1, j + 1] = step
    came[0, :], came[:, 0] = 2, 1
    i, j = rows, columns
    path = []
    while i > 0 or j > 0:
        path.append((i - 1, j - 1))
        step = came[i, j]
        i, j = i - (step != 2), j - (step != 1)
    steps = np.array(path[::-1], np.int64)
    return steps[:, 0], steps[:, 1]


def _median(values: Array) -> Array:
    """A running median along the last axis, reflected at the ends; axes too short for that stay as they are."""
    import numpy as np

    reach = _FILTER // 2
    if values.shape[-1] <= reach:
        return values
    padded = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(reach, reach)], mode="reflect")
    return np.median(np.lib.stride_tricks.sliding_window_view(padded, _FILTER, axis=-1), axis=-1)
