"""The kernels of matrix products, by their source."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import pygpukit as gp
from pygpukit.array import promotion
from pygpukit.ops.elementwise import pointwise
from pygpukit.ops.matmul import fused, plain
from sweep.engine import Call, Family, numbers

_FLOATS = [dtype.name for dtype in promotion.FLOATS]


def _products() -> Iterator[Call]:
    for dtype in pointwise.CTYPES:
        yield Call(gp.matmul, (numbers(dtype, 67, 9), numbers(dtype, 9, 65)))
        yield Call(gp.matmul, (numbers(dtype, 3, 1, 6, 5)[..., ::-1], numbers(dtype, 2, 7, 5).swapaxes(1, 2)))


def _fused_products() -> Iterator[Call]:
    def scaled(a: gp.GPUArray, b: gp.GPUArray, c: gp.GPUArray) -> gp.GPUArray:
        out = c.clone()
        return gp.matmul(a, b, alpha=0.5, beta=-2.0, out=out[..., ::-1])

    for dtype in _FLOATS:
        inputs = (numbers(dtype, 2, 67, 9), numbers(dtype, 9, 65), numbers(dtype, 2, 67, 65))
        yield Call(scaled, inputs, lambda a, b, c: 0.5 * (a @ b) - 2 * c[..., ::-1])
        yield Call(lambda a, b: gp.matmul(a, b[:, 0], alpha=3), inputs[:2])
    for dtype in ("float16", "bfloat16"):  # after a product of tensor cores

        def finish(sums: gp.GPUArray, other: gp.GPUArray) -> gp.GPUArray:
            out = gp.full(other.shape, float("nan"), dtype=other.dtype)
            fused.finish(sums, out, fused.After(0.5, act="relu", residual=other[..., ::-1], beta=2.0))
            return out

        yield Call(
            finish,
            (numbers(dtype, 2, 7, 41), numbers(dtype, 2, 7, 41)),
            lambda x, y: np.maximum(0.5 * x, 0) + 2 * y[..., ::-1],
        )


_CALLS = {
    plain.SOURCE.source: _products,
    fused.SOURCE.source: _fused_products,
}


def _family(source: str) -> Family:
    name = source.rpartition("/")[2].removesuffix(".cu")
    return Family(name, (source,), lambda _: "all", lambda _: _CALLS[source]())


FAMILIES = tuple(_family(source) for source in _CALLS)
