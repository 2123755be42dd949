"""Products of matrices that begin at any element: each block by itself, in every layout, with edges of every kind."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np
from sweep.engine import Call, Family, numbers

import pygpukit as gp
from pygpukit.ops.matmul.mma import unaligned

Values = np.ndarray[Any, Any]
_TYPES = {"half_t": "float16", "bfloat16_t": "bfloat16"}


def _variant(expression: str) -> str:
    kind, *sizes = expression.replace("pk::", "").split("<")[1].split(", ")
    return f"{_TYPES[kind]} {'x'.join(sizes[:3])}"


def beside(by: int, x: gp.GPUArray) -> gp.GPUArray:
    """The same numbers, `by` elements from where memory is aligned."""
    return gp.concatenate([gp.zeros(by, x.dtype), x.reshape(-1)])[by:].reshape(x.shape)


def _products(variant: str) -> Iterator[Call]:
    dtype, size = variant.split()
    (one,) = (one for one in unaligned.blocks() if str(one).endswith(size))

    def product(a: gp.GPUArray, b: gp.GPUArray) -> gp.GPUArray:
        shape = (*a.shape[:-1], b.shape[-1])
        out = gp.full(prod(shape) + 1, float("nan"), dtype)[1:].reshape(shape)
        unaligned.product(a, b, out, one)
        return out

    def both(x: Values, y: Values) -> Values:
        return x @ y

    k = one.depth * one.stages + 3  # stages come round
    for turned_a in (False, True):
        for turned_b in (False, True):
            m, n = (one.rows + 3, 5) if turned_a == turned_b else (7, one.columns + 5)
            a = numbers(dtype, k, m) if turned_a else numbers(dtype, m, k)
            b = numbers(dtype, n, k) if turned_b else numbers(dtype, k, n)
            a, b = beside(1, a), beside(2, b)
            yield Call(product, (a.T if turned_a else a, b.T if turned_b else b), both)
    yield Call(product, (numbers(dtype, 2, 3, 5, 17), numbers(dtype, 3, 17, 8)), both)
    # Whole packs of memory, and lines that all begin in the middle of a word.
    yield Call(product, (numbers(dtype, 8, 40), numbers(dtype, 40, 16)), both)
    yield Call(product, (numbers(dtype, 9, 44)[1:, 1:40], numbers(dtype, 6, 40)[:5, 1:].T), both)


FAMILIES = (Family("unaligned products", (unaligned.UNALIGNED.source,), _variant, _products),)
