"""Products by mma.sync of operands of whole 16 bytes: each block by itself, in every layout, with edges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sweep.engine import Call, Family, numbers

import pygpukit as gp
from pygpukit.core.dtypes import as_dtype
from pygpukit.ops.matmul.epilogue.epilogue import Epilogue
from pygpukit.ops.matmul.mma import aligned

Values = np.ndarray[Any, Any]
_TYPES = {"half_t": "float16", "bfloat16_t": "bfloat16", "signed char": "int8", "float": "float32"}


def _variant(expression: str) -> str:
    kind, *sizes = expression.replace("pk::", "").split("<")[1].split(", ")
    return f"{_TYPES[kind]} {'x'.join(sizes[:3])}"


def _products(variant: str) -> Iterator[Call]:
    dtype, size = variant.split()
    result = "int32" if dtype == "int8" else dtype
    (block,) = (block for block in aligned.blocks(as_dtype(dtype).itemsize) if str(block) == size)

    def product(a: gp.GPUArray, b: gp.GPUArray) -> gp.GPUArray:
        out = gp.full((*a.shape[:-1], b.shape[-1]), -1 if result == "int32" else float("nan"), result)
        aligned.product(a, b, out, block)
        return out

    def both(x: Values, y: Values) -> Values:
        if dtype == "int8":
            return x.astype(np.int32) @ y.astype(np.int32)
        return _tf32(x) @ _tf32(y) if dtype == "float32" else x @ y

    k = block.depth * block.stages + 8  # stages come round
    for turned_a in (False, True):
        for turned_b in (False, True):
            m, n = (block.rows + 8, 16) if turned_a == turned_b else (16, block.columns + 8)
            a = numbers(dtype, k, m) if turned_a else numbers(dtype, m, k)
            b = numbers(dtype, n, k) if turned_b else numbers(dtype, k, n)
            yield Call(product, (a.T if turned_a else a, b.T if turned_b else b), both)
    yield Call(product, (numbers(dtype, 2, 3, 5, 16), numbers(dtype, 3, 16, 7)), both)  # b and the result: any rows
    if dtype in ("int8", "float32"):
        return
    bias, residual = numbers(dtype, 24), numbers(dtype, 9, 24)

    def finished(a: gp.GPUArray, b: gp.GPUArray, bias: gp.GPUArray, residual: gp.GPUArray) -> gp.GPUArray:
        out = gp.full((9, 24), float("nan"), dtype)
        aligned.product(a, b, out, block, Epilogue(0.5, bias, "relu", residual, 2.0))
        return out

    def after(x: Values, y: Values, bias: Values, residual: Values) -> Values:
        return np.maximum(0.5 * (x @ y) + bias, 0) + 2 * residual

    yield Call(finished, (numbers(dtype, 9, 40), numbers(dtype, 40, 24), bias, residual), after)


def _tf32(x: Values) -> Values:
    """Rounded as the kernel does it, middles away from zero."""
    rounded = x.astype(np.float32).view(np.int32) + 0x1000 & ~0x1FFF
    return rounded.view(np.float32).astype(np.float64)


FAMILIES = (Family("aligned products", (aligned.ALIGNED.source,), _variant, _products),)
