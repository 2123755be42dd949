"""Large products of float32 and float64: each block by itself, in every way that it reads, with edges and epilogues."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sweep.engine import Call, Family, numbers
from sweep_unaligned import beside

import pygpukit as gp
from pygpukit.ops.elementwise import pointwise
from pygpukit.ops.matmul.cuda_cores import real

Values = np.ndarray[Any, Any]


def _variant(expression: str) -> str:
    return expression.rpartition(", ")[0].rpartition(", ")[0]


def _products(variant: str) -> Iterator[Call]:
    dtype = {"float": "float32", "double": "float64"}[variant.partition("<")[2].split(",")[0]]
    ctype = pointwise.CTYPES[dtype]
    (one,) = (each for each in real.BLOCKS[dtype] if each.expression(ctype, (0, 0)).startswith(f"{variant},"))
    rows, columns = one.extents()

    def product(a: gp.GPUArray, b: gp.GPUArray) -> gp.GPUArray:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(real, "block", lambda *_: one)
            return gp.matmul(a, b)

    def added(a: gp.GPUArray, b: gp.GPUArray, bias: gp.GPUArray, c: gp.GPUArray) -> gp.GPUArray:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(real, "block", lambda *_: one)
            return gp.linear(a, b.T, bias, "relu", c[..., ::-1])

    for by in (0, 1):  # whole 16 bytes, and elements
        k = one.depth * (one.stages + 1) + 4 - by  # stages come round, and whole pieces are asked for
        for a_along_k in (True, False):
            for b_along_k in (True, False):
                if one.only_across and (by or a_along_k or b_along_k):
                    continue
                m, n = rows + 36, columns  # a whole tile, and one with an edge
                a = beside(by, numbers(dtype, m, k) if a_along_k else numbers(dtype, k, m))
                b = beside(by, numbers(dtype, n, k) if b_along_k else numbers(dtype, k, n))
                yield Call(product, (a if a_along_k else a.T, b.T if b_along_k else b), lambda a, b: a @ b)
    if one.only_across:
        return
    stack = numbers(dtype, 2, 1, 40, 17), numbers(dtype, 3, 17, 36), numbers(dtype, 36), numbers(dtype, 2, 3, 40, 36)
    yield Call(product, stack[:2], lambda a, b: a @ b)
    layer = numbers(dtype, 2, 37, 17), numbers(dtype, 17, 36), numbers(dtype, 36), numbers(dtype, 2, 37, 36)
    yield Call(added, layer, lambda a, b, bias, c: np.maximum(a @ b + bias, 0) + c[..., ::-1])


FAMILIES = (Family("real products", (real.CORES.source, real.TENSOR.source), _variant, _products),)
