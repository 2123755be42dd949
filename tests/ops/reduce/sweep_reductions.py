"""The kernels of reductions, by the operation, and those that normalise rows, by the type of the rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from sweep.engine import Call, Family, first_type, numbers

import pygpukit as gp
from pygpukit.core.dtypes import DataType
from pygpukit.ops.elementwise import pointwise
from pygpukit.ops.nn import norm, rowwise
from pygpukit.ops.nn.softmax import SOURCE as SOFTMAX
from pygpukit.ops.nn.softmax import across
from pygpukit.ops.reduce import plan, reducer

_REDUCERS: dict[str, tuple[reducer.Reducer, tuple[Callable[..., gp.GPUArray], ...]]] = {
    "pk::Sum": (reducer.SUM, (gp.sum, gp.mean)),
    "pk::Product": (reducer.PRODUCT, (gp.prod,)),
    "pk::Extreme": (reducer.EXTREME, (gp.max, gp.min)),
    "pk::ArgExtreme": (reducer.ARG_EXTREME, (gp.argmax, gp.argmin)),
    "pk::Nonzero": (reducer.COUNT, (gp.count_nonzero, gp.any, gp.all)),
    "pk::Moments": (reducer.MOMENTS, (gp.var, gp.std)),
    "pk::Norm": (reducer.NORM, (gp.norm,)),
    "pk::LogSumExp": (reducer.LOG_SUM_EXP, (gp.logsumexp,)),
}
_PARTS = 16_500  # elements that are reduced in two parts, which are merged


def _functor(expression: str) -> str:
    found = re.search("|".join(rf"{name}(?=<)" for name in _REDUCERS), expression)
    return found[0] if found else first_type(expression)


def _reductions(functor: str) -> Iterator[Call]:
    op, functions = _REDUCERS[functor]
    for dtype in op.types:
        make = _factors if functor == "pk::Product" else numbers
        rows, columns = make(dtype, 3, 64), make(dtype, 67, 16)
        # Not about zero: their one sum may come to nearly nothing, and its error is told of what it comes to.
        long = make(dtype, _PARTS) if make is _factors else numbers(dtype, _PARTS, low=-0.25)
        views = ((rows, 1), (rows[:, 1::3], 1), (columns, 0), (columns[:, 1::3], 0), (long, 0))
        for function in functions if _keeps(dtype, functor) else functions[:1]:
            for view, axis in views:
                yield Call(lambda x, f=function, axis=axis: f(x, axis), (view,))
            yield Call(lambda x, f=function: _in_packs(x, f), (make(dtype, 67, 32),))


def _in_packs(x: gp.GPUArray, function: Callable[..., gp.GPUArray]) -> list[gp.GPUArray]:
    """Columns four at a time, as those of larger arrays are; of shapes that have no prepared call."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "_MIN_BLOCKS", 0)
        plan.plan.cache_clear()
        found = [function(x, 0), function(x[:, 1:], 0)]
    plan.plan.cache_clear()
    return found


def _keeps(dtype: str, functor: str) -> bool:
    """True where all functions of the reducer read the type itself."""
    return functor != "pk::Sum" or "int" not in dtype


def _factors(dtype: str, *shape: int) -> gp.GPUArray:
    """1 and -1, of unsigned types 1: their products are exact."""
    signs = np.random.default_rng().choice([1, -1], shape)
    return gp.from_numpy(signs if dtype[0] != "u" else abs(signs)).astype(dtype)


def _rows(ctype: str) -> Iterator[Call]:
    dtype = next(name for name in rowwise.FLOATS if pointwise.CTYPES[name] == ctype)
    # Short rows, four at a time; of a block of 128 threads and of 256, two at a time; of the largest block; and ones
    # read several times, in parts.
    itemsize = DataType.from_string(dtype).itemsize
    loads = (
        rowwise._BLOCK * rowwise._HELD // 2,
        rowwise._PAIRED * rowwise._HELD // 2,
        rowwise._max_threads(itemsize) * rowwise._HELD // 2,
        rowwise._max_threads(itemsize) * rowwise._HELD,
    )
    for length in (48, 1024 // itemsize, *(64 + each * 16 // itemsize for each in loads)):
        for extra in (0, 1):
            x = numbers(dtype, 2, length + extra)
            yield Call(gp.softmax, (x,))
            yield Call(gp.log_softmax, (x,))
            yield Call(lambda x: gp.softmax(x[:, 1:]), (x,))  # rows do not follow each other
            for weights in dict.fromkeys((dtype, "float32" if dtype != "float64" else dtype)):
                scale, shift = numbers(weights, length + extra), numbers(weights, length + extra)
                yield Call(gp.rmsnorm, (x, scale))
                yield Call(gp.layernorm, (x, scale, shift))
                yield Call(lambda x, g, b: gp.groupnorm(x.reshape(2, 1, -1), 1, g[:1], b[:1]), (x, scale, shift))
        yield Call(lambda x: [gp.l2norm(x), gp.l2norm(x[:, ::-1])], (numbers(dtype, 3, length),))
    for length in (70, 300):  # rows side by side, in registers and in chunks
        yield Call(lambda x: [gp.softmax(x, 1), gp.log_softmax(x, 1)], (numbers(dtype, 3, length, 5),))
    for spatial in (8, 9):
        yield Call(
            lambda x, g, b: gp.groupnorm(x, 2, g, b),
            (numbers(dtype, 2, 4, spatial), numbers(dtype, 4), numbers(dtype, 4)),
        )


REDUCTIONS = Family("reductions", (reducer.SOURCE.source,), _functor, _reductions)
ROWS = Family("rows", (norm.SOURCE.source, SOFTMAX.source, across.SOURCE.source), first_type, _rows)
FAMILIES = (REDUCTIONS, ROWS)
