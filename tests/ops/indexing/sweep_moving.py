"""The kernels that move elements without looking at them, by item size, and those that work with places."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from sweep.engine import Call, Family, first_type, numbers

import pygpukit as gp
from pygpukit.ops import raw
from pygpukit.ops.copying import transposing
from pygpukit.ops.indexing import finding, masks, padding, places, triangles
from pygpukit.ops.shape import side_by_side

_PLACES = "places"
_SIZES = {ctype: size for size, ctype in raw.RAW.items()}


def _variant(expression: str) -> str:
    ctype = first_type(expression)
    return ctype if ctype in _SIZES else _PLACES


def _calls(variant: str) -> Iterator[Call]:
    if variant == _PLACES:
        yield from _of_places()
        return
    x = numbers(raw.DTYPES[_SIZES[variant]], 4, 7)
    for index_type in ("int32", "int64"):
        index = gp.from_numpy(np.array([3, -1, 0, 3])).astype(index_type)
        yield Call(lambda x, i: [x[i], x[:, i], x.T[i], x[::-1, ::2][:, i]], (x, index))
        long = numbers(x.dtype.name, 4, places._LONG_ROW // x.itemsize + 3)
        yield Call(_in_packs, (long, index))
        yield Call(_written, (x, index, numbers(x.dtype.name, 4, 7)))
        yield Call(_written, (x, index[:1], numbers(x.dtype.name, 1, 7)))
        picks = np.random.default_rng().integers(-1030, 1030, (2, places._NEAR_ELEMENTS + 1))
        row = numbers(x.dtype.name, 2, 1030)
        yield Call(lambda x, i: gp.take_along_axis(x, i, 1), (row, gp.from_numpy(picks).astype(index_type)))
    mask = gp.from_numpy(np.random.default_rng().random((4, 7)) < np.array([1.0, 0.5, 0.5, 0.5])[:, None])
    yield Call(lambda x, m: [x[m], x[:, ::2][m[:, ::2]], x[m[:, 0]]], (x, mask))
    yield Call(_stored, (x, mask))
    for padded in (x, numbers(x.dtype.name, 2, 131)):
        yield Call(_padded, (padded,))
    yield Call(lambda x: [gp.roll(x, (1, 3), (0, 1)), gp.tril(x, 1), gp.triu(x.T, -1)], (x,))
    for shape in ((36, 68), (9, 67), (2, 17, 33)):
        yield Call(lambda x: x.swapaxes(-1, -2).clone(), (numbers(x.dtype.name, *shape),))
    yield Call(_joined, (x, numbers(x.dtype.name, 4, 71)))


def _padded(x: gp.GPUArray) -> list[gp.GPUArray]:
    return [gp.pad(x, 2, mode) for mode in ("constant", "edge", "reflect", "symmetric", "wrap")]


def _joined(x: gp.GPUArray, y: gp.GPUArray) -> list[gp.GPUArray]:
    """Rows of odd lengths side by side, and one below the other."""
    return [gp.concatenate((x, y, x[:, 1:4]), 1), gp.concatenate((y[1:], y))]


def _written(x: gp.GPUArray, index: gp.GPUArray, values: gp.GPUArray) -> list[gp.GPUArray]:
    """Rows and columns of a copy, written at an index."""
    by_rows, by_columns = x.clone(), x.clone()
    by_rows[index] = values[:, : x.shape[1]]
    by_columns.T[index] = values[:, : x.shape[0]]
    by_columns[:, index[:1]] = 3
    return [by_rows, by_columns]


def _in_packs(x: gp.GPUArray, index: gp.GPUArray) -> gp.GPUArray:
    """Rows put together to packs, as those of large results are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(places, "_LARGE", 0)
        return x[index]


def _stored(x: gp.GPUArray, mask: gp.GPUArray) -> gp.GPUArray:
    copy = x.clone()
    copy[mask] = 3
    return copy


def _of_places() -> Iterator[Call]:
    x = numbers("float32", 9, 5)
    rows, columns = (gp.from_numpy(np.random.default_rng().integers(-5, 5, (7, 1)[:n])) for n in (2, 1))
    for index_type in ("int32", "int64"):
        yield Call(lambda x, i, j: x[i, j], (x, rows.astype(index_type), columns.astype(index_type)))
    yield Call(_written, (x, columns, numbers("float32", 7, 9)))
    yield Call(lambda x: [x[[1, -2, 0]], x[:, [4, 4]]], (x,))
    chosen = gp.from_numpy(np.random.default_rng().random(5000) < 0.3)
    yield Call(lambda m: [masks.flatnonzero(m), gp.flatnonzero(m), *gp.nonzero(m[4:].reshape(4, -1))], (chosen,))


_SOURCES = tuple(one.SOURCE.source for one in (places, padding, triangles, masks, finding, transposing, side_by_side))
MOVING = Family(
    "moving",
    _SOURCES,
    _variant,
    _calls,
)
FAMILIES = (MOVING,)
