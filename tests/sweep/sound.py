"""The kernels of sound, by their source."""

from __future__ import annotations

from collections.abc import Iterator

import pygpukit as gp
from pygpukit.ops.audio import median, overlap
from sweep.engine import Call, Family, numbers


def _overlap(_: str) -> Iterator[Call]:
    for dtype in ("float32", "float64"):
        for frames, length, hop, start, samples in ((7, 12, 5, 6, 31), (3, 9, 9, 0, 40), (2, 5, 8, 1, 17)):

            def add(x: gp.GPUArray, w: gp.GPUArray, *, hop: int = hop, start: int = start, n: int = samples) -> object:
                return overlap.added(x, w, hop, start, n)

            yield Call(add, (numbers(dtype, 2, frames, length), numbers(dtype, length)))


def _medians(_: str) -> Iterator[Call]:
    for dtype in ("float32", "float64"):
        for shape, width, axis in (((3, 5, 17), 7, -1), ((2, 19, 4), 8, 1), ((3, 2), 9, 0)):

            def median_of(x: gp.GPUArray, width: int = width, axis: int = axis) -> gp.GPUArray:
                return median.running_median(x, width, axis)

            yield Call(median_of, (numbers(dtype, *shape),))


OVERLAP = Family("overlap", (overlap.SOURCE.source,), lambda _: "all", _overlap)
MEDIAN = Family("median", (median.SOURCE.source,), lambda _: "all", _medians)
FAMILIES = (MEDIAN, OVERLAP)
