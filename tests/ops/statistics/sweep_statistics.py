"""The kernels of histograms, of medians and of interpolation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from sweep.engine import Call, Family, first_type, numbers

import pygpukit as gp
from pygpukit.ops.elementwise import pointwise
from pygpukit.ops.sampled import interpolating
from pygpukit.ops.statistics import counting, middle

_OF_ALL = "of places"
_NAMES = {"float": "float32", "double": "float64", "long long": "int64", "unsigned long long": "uint64"}


def _variant(expression: str) -> str:
    return first_type(expression) or _OF_ALL


def _counts(ctype: str) -> Iterator[Call]:
    if ctype == _OF_ALL:
        places = gp.from_numpy(np.random.default_rng().integers(0, 9, 700))
        many = gp.from_numpy(np.random.default_rng().integers(0, 5000, 300))
        yield Call(lambda x: counting.count_places(x, 9), (places,), widened=False)
        yield Call(lambda x: counting.count_places(x, 5000), (many,), widened=False)
        yield Call(lambda x, w: counting.sum_places(x, w, 9), (places, numbers("float64", 700)), widened=False)
        return
    x = numbers(_NAMES[ctype], 600)
    edges = gp.sort(numbers(_NAMES[ctype], 7))
    for inputs in ((x, edges), (x[::-3], edges), (edges, edges)):
        yield Call(counting.count_between, inputs, widened=False)
        yield Call(counting.places_between, inputs, widened=False)


def _lines(variant: str) -> Iterator[Call]:
    at, points, values = numbers("float64", 300), gp.sort(numbers("float64", 9)), numbers("float64", 9)
    yield Call(lambda x, p, v: gp.interp(x, p, v), (at, points, values))
    yield Call(lambda x, p, v: gp.interp(x, p, v, 5.0, 6.0), (points, points, values))
    yield Call(lambda x, p, v: gp.interp(x, p[:1], v[:1], 5.0, 6.0), (at, points, values))


def _middles(ctype: str) -> Iterator[Call]:
    dtype = next(name for name, one in pointwise.CTYPES.items() if one == ctype)
    for length in (7, 20, 100, 300, 450, 520):
        yield Call(_median_of_short_memory, (numbers(dtype, 3, length),))


def _median_of_short_memory(x: gp.GPUArray) -> gp.GPUArray:
    """As if shared memory held 512 elements, so that short rows have the kernels of long ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(middle, "_HELD_BYTES", 512 * x.itemsize)
        return gp.median(x, 1)


COUNTS = Family("counts", (counting.SOURCE.source,), _variant, _counts)
LINES = Family("lines", (interpolating.SOURCE.source,), _variant, _lines)
MIDDLES = Family("middles", (middle.SOURCE.source,), first_type, _middles)
FAMILIES = (COUNTS, LINES, MIDDLES)
