"""The element-wise kernels, by the type of their first operand, and the conversions of storage types."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sweep.engine import Call, Family, first_type, numbers

import pygpukit as gp
from pygpukit.array import promotion
from pygpukit.core.dtypes import DTYPES, STORAGE_ONLY, DataType
from pygpukit.ops import elementwise
from pygpukit.ops.elementwise import operations, pointwise, quotients

_STORAGE = "storage types"
_COMPUTING = [dtype for dtype in DTYPES if dtype not in STORAGE_ONLY]
_EXACT = [0.0, 1.0, 2.0, 3.0, 4.0, 6.0]  # in every storage type


def _variant(expression: str) -> str:
    stores = any(name in expression for name in ("e4m3", "e5m2", "e2m1", "int4"))
    return _STORAGE if stores else first_type(expression)


def _calls(variant: str) -> Iterator[Call]:
    if variant == _STORAGE:
        yield from _conversions_of_storage_types()
        return
    dtype = next(dtype for dtype in _COMPUTING if pointwise.CTYPES[dtype.name] == variant)
    x, y = _operands(dtype), _operands(dtype)
    for view in (np.s_[:], np.s_[:, ::2]):
        yield from _of_views(dtype, x[view], y[view])
    pack = 16 // dtype.itemsize
    wide = _operands(dtype, 3, 64 * pack + pack // 2 + 2)  # rows long enough for packs of neighbours
    for a, b in ((wide[:, 1:-1], wide[:, 2:]), (wide[:, ::-1], wide[:, :1])):
        yield Call(lambda a, b: a + b, (a, b))
        yield Call(lambda a: a.clone(), (a,))
    if dtype == "bool":  # choosing looks at bits only: one kernel an item size
        for one in (*promotion.UNSIGNED, *promotion.COMPLEX):
            yield Call(gp.where, (x[:, ::2], _operands(one)[:, ::2], _operands(one)[:, ::2]))
    for other in _COMPUTING:
        yield Call(lambda a, other=other: a.astype(other), (x,), widened=False)


def _of_views(dtype: DataType, a: gp.GPUArray, b: gp.GPUArray) -> Iterator[Call]:
    """What asks for every kernel of the type, in the forms that have kernels of their own, and for few others."""

    def has(op: operations.Op) -> bool:
        return dtype.name in op.computed() and (not op.by_size or dtype in promotion.UNSIGNED)

    for op in filter(has, (*operations.UNARY, operations.NEG)):
        yield Call(lambda a, op=op: elementwise.unary(op, a, None), (a,))
    for op in filter(has, (*operations.BINARY, *operations.ARITHMETIC)):
        widened = op is not operations.NEXTAFTER  # in each type another number
        yield Call(lambda a, b, op=op: elementwise.binary(op, a, b, None), (a, b), widened=widened)
        yield Call(lambda a, op=op: elementwise.binary(op, a, True, None), (a,), widened=widened)
        yield Call(lambda b, op=op: elementwise.binary(op, True, b, None), (b,), widened=widened)
    if has(operations.CLAMP):
        yield Call(lambda a, b: gp.clamp(a, b, True), (a, b))
    yield Call(lambda a: a.clone(), (a,))


def _operands(dtype: DataType, *shape: int) -> gp.GPUArray:
    """Numbers that most functions are defined for, and none whose results differ much between close arguments."""
    if dtype == "bool" or promotion.is_inexact(dtype):
        return numbers(dtype.name, *(shape or (5, 14)), low=0.1, high=0.9)
    return gp.from_numpy(np.random.default_rng().integers(1, 7, shape or (5, 14))).astype(dtype)


def _conversions_of_storage_types() -> Iterator[Call]:
    values = gp.from_numpy(np.random.default_rng().choice(np.array(_EXACT, np.float32), (3, 21)))
    for stored in STORAGE_ONLY:
        codes = values.astype(stored)
        for dtype in DTYPES:
            yield Call(lambda a, to=dtype: a.astype(to), (codes,), widened=False)
            yield Call(lambda a, to=stored: a.astype(to), (values.astype(dtype),), widened=False)


def _quotients(ctype: str) -> Iterator[Call]:
    dtype = next(dtype for dtype in _COMPUTING if pointwise.CTYPES[dtype.name] == ctype)
    x, y = _operands(dtype), _operands(dtype)
    yield Call(lambda a, b: [a / b, a / 3, 5 / b, a.reshape(-1)[1:] / b.reshape(-1)[1:]], (x, y))
    for number in (1, 3, 4):
        yield Call(lambda a, number=number: [a // number, a % number, a.reshape(-1)[1:] // number], (x,))


FAMILIES = (
    Family("elementwise", (pointwise.SOURCE.source,), _variant, _calls),
    Family("quotients", (quotients.SOURCE.source,), first_type, _quotients),
)
