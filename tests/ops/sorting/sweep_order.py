"""The kernels of scans, sorting, searching and selecting, by the type of the elements."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sweep.engine import Call, Family, first_type, numbers

import pygpukit as gp
from pygpukit.ops import scan, sorting
from pygpukit.ops.elementwise import pointwise
from pygpukit.ops.sorting import selecting

_DTYPES = {ctype: name for name, ctype in pointwise.CTYPES.items()}
_NO_TYPE = "of int64"  # kernels of positions


def _scans(ctype: str) -> Iterator[Call]:
    if ctype == _NO_TYPE:  # several tiles, whose slots are cleared
        yield Call(lambda x: gp.cumsum(x), (numbers("float32", 40_000),))
        return
    dtype = _DTYPES[ctype]
    for function in (gp.cumsum, gp.cumprod):
        for shape, axis in (((3, 100), 1), ((2, 3001), 1), ((5, 7), 1), ((700, 3), 0)):
            x = _ones(dtype, *shape) if function is gp.cumprod else numbers(dtype, *shape)
            for view in (x, x[::-1, 1:]):
                yield Call(lambda a, f=function, axis=axis: f(a, axis), (view,))


def _ones(dtype: str, *shape: int) -> gp.GPUArray:
    """Of magnitude one: products neither grow nor vanish, and are exact."""
    values = np.random.default_rng().choice([1, 1j, -1] if "complex" in dtype else [1, -1], shape)
    return gp.from_numpy(values if dtype[0] not in "ub" else np.abs(values).astype(int)).astype(dtype)


def _type_or_none(expression: str) -> str:
    return first_type(expression) or _NO_TYPE


def _sorts(ctype: str) -> Iterator[Call]:
    if ctype == _NO_TYPE:
        yield Call(lambda x: gp.unique(x, return_inverse=True), (_many_equal("int64", 300),))
        return
    dtype = _DTYPES[ctype]
    short, flat = _many_equal(dtype, 7, 33), _many_equal(dtype, 300)
    yield Call(lambda x: [gp.sort(x), gp.argsort(x, descending=True)], (short,))
    yield Call(lambda x: gp.argsort(x, 0), (short[:, ::3],))
    long = _many_equal(dtype, 1, sorting._MAX_THREADS * sorting._items(short.itemsize, indexed=False) + 9)
    yield Call(lambda x: [gp.sort(x), gp.argsort(x)], (long,))
    yield Call(lambda x: gp.unique(x), (flat,))
    for side in ("left", "right"):
        yield Call(lambda a, v, side=side: gp.searchsorted(gp.sort(a), v, side), (flat, _many_equal(dtype, 5, 9)))


def _selects(ctype: str) -> Iterator[Call]:
    for largest, k in ((True, 5), (False, 64)):
        x = _many_equal(_DTYPES[ctype], 2, selecting._SHORT + 99)
        yield Call(lambda a, k=k, largest=largest: gp.topk(a, k, largest=largest), (x,))


def _many_equal(dtype: str, *shape: int) -> gp.GPUArray:
    """Few different values, NaN among them."""
    x = numbers(dtype, *shape)
    if "float" not in dtype and "complex" not in dtype:
        return x
    values = np.round(x.astype("complex128").to_numpy() * 5)
    values[np.random.default_rng().random(shape) < 0.1] = np.nan
    return gp.from_numpy(values if "complex" in dtype else values.real).astype(dtype)


SCANS = Family("scans", (scan.SOURCE.source,), _type_or_none, _scans)
SORTS = Family("sorts", (sorting.SOURCE.source, sorting.SEARCH.source), _type_or_none, _sorts)
SELECTS = Family("selects", (selecting.SOURCE.source,), first_type, _selects)
FAMILIES = (SCANS, SORTS, SELECTS)
