"""What the CUDA C++ programming guide's appendix on texture fetching says of a fetch, in NumPy and float64."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
STEP = 1 / 256  # of a filter's fraction


def _index(index: NDArray[np.int64], count: int, mode: str) -> NDArray[np.int64]:
    """Elements that indices mean; -1 for the border."""
    if mode == "wrap":
        return index % count
    if mode == "mirror":
        period = index % (2 * count)
        return np.where(period < count, period, 2 * count - 1 - period)
    if mode == "border":
        return np.where((index >= 0) & (index < count), index, -1)
    return np.clip(index, 0, count - 1)


def _axis(at: Array, count: int, mode: str, normalized: bool, linear: bool) -> list[tuple[NDArray[np.int64], Array]]:
    """Which elements of one axis count for each place, and how much."""
    if not normalized and mode in ("wrap", "mirror"):
        mode = "clamp"
    place = at * count if normalized else at
    if not linear:
        return [(_index(np.floor(place).astype(np.int64), count, mode), np.ones_like(place))]
    shifted = place - 0.5
    first = np.floor(shifted)
    part = np.round((shifted - first) / STEP) * STEP  # 9 bits: 1 is among them
    low = first.astype(np.int64)
    return [(_index(low, count, mode), 1 - part), (_index(low + 1, count, mode), part)]


def fetched(
    elements: Array,
    places: list[Array],
    modes: list[str],
    *,
    normalized: bool = False,
    linear: bool = False,
    border: tuple[float, ...] = (0.0,) * 4,
) -> Array:
    """The elements, of shape (..., H, W, C), at places given as x, y and z: an array of (places, C)."""  # fmt: skip
    total = np.zeros((len(places[0]), elements.shape[-1]))
    sizes = elements.shape[-2::-1]
    axes = [_axis(at, size, mode, normalized, linear) for at, size, mode in zip(places, sizes, modes, strict=True)]
    for corner in np.ndindex(*(len(axis) for axis in axes)):
        chosen = [axis[number] for axis, number in zip(axes, corner, strict=True)]
        outside = np.any([index < 0 for index, _ in chosen], axis=0)
        values = elements[tuple(np.maximum(index, 0) for index, _ in reversed(chosen))]
        values = np.where(outside[:, None], np.asarray(border[: elements.shape[-1]]), values)
        total += values * np.prod([weight for _, weight in chosen], axis=0)[:, None]
    return total


def normalised(elements: NDArray[np.generic]) -> Array:
    """Integers as a texture reads them as floats."""
    most = np.iinfo(elements.dtype).max  # type: ignore[type-var]
    return np.maximum(elements.astype(np.float64) / most, -1.0)


def on_cube(direction: Array) -> tuple[NDArray[np.int64], Array, Array]:
    """Face, and the coordinates on it, of directions (places, 3) none of which meets an edge."""
    x, y, z = direction.T
    axis = np.argmax(np.abs(direction), axis=1)
    most = np.abs(direction)[np.arange(len(direction)), axis]
    negative = direction[np.arange(len(direction)), axis] < 0
    face = 2 * axis + negative
    s = np.choose(face, [-z, z, x, x, x, -x])
    t = np.choose(face, [-y, -y, z, -z, -y, -y])
    return face, (s / most + 1) / 2, (t / most + 1) / 2
