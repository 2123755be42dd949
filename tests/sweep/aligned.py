"""Products by mma.sync of operands of whole 16 bytes: each block by itself, in every layout, with edges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import pygpukit as gp
from pygpukit.ops.matmul.epilogue.epilogue import Epilogue
from pygpukit.ops.matmul.mma import aligned
from sweep.engine import Call, Family, numbers

Values = np.ndarray[Any, Any]
_TYPES = {"half_t": "float16", "bfloat16_t": "bfloat16"}


def _variant(expression: str) -> str:
    kind, *sizes = expression.replace("pk::", "").split("<")[1].split(", ")
    return f"{_TYPES[kind]} {'x'.join(sizes[:3])}"


def _products(variant: str) -> Iterator[Call]:
    dtype, size = variant.split()
    (one,) = (one for one in aligned.blocks() if str(one) == size)

    def product(a: gp.GPUArray, b: gp.GPUArray) -> gp.GPUArray:
        out = gp.full((*a.shape[:-1], b.shape[-1]), float("nan"), dtype)
        aligned.product(a, b, out, one)
        return out

    def both(x: Values, y: Values) -> Values:
        return x @ y

    k = one.depth * one.stages + 8  # stages come round
    for turned_a in (False, True):
        for turned_b in (False, True):
            m, n = (one.rows + 8, 16) if turned_a == turned_b else (16, one.columns + 8)
            a = numbers(dtype, k, m) if turned_a else numbers(dtype, m, k)
            b = numbers(dtype, n, k) if turned_b else numbers(dtype, k, n)
            yield Call(product, (a.T if turned_a else a, b.T if turned_b else b), both)
    yield Call(product, (numbers(dtype, 2, 3, 5, 16), numbers(dtype, 3, 16, 7)), both)  # b and the result: any rows
    bias, residual = numbers(dtype, 24), numbers(dtype, 9, 24)

    def finished(a: gp.GPUArray, b: gp.GPUArray, bias: gp.GPUArray, residual: gp.GPUArray) -> gp.GPUArray:
        out = gp.full((9, 24), float("nan"), dtype)
        aligned.product(a, b, out, one, Epilogue(0.5, bias, "relu", residual, 2.0))
        return out

    def after(x: Values, y: Values, bias: Values, residual: Values) -> Values:
        return np.maximum(0.5 * (x @ y) + bias, 0) + 2 * residual

    yield Call(finished, (numbers(dtype, 9, 40), numbers(dtype, 40, 24), bias, residual), after)


FAMILIES = (Family("aligned products", (aligned.ALIGNED.source,), _variant, _products),)
