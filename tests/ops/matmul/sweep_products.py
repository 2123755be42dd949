"""The kernels of matrix products, by their source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product as product_of
from typing import Any

import numpy as np
import pytest
from sweep.engine import Call, Family, numbers

import pygpukit as gp
from pygpukit.array import promotion
from pygpukit.core.dtypes import float32, float64
from pygpukit.ops.elementwise import pointwise
from pygpukit.ops.matmul.cuda_cores import fp8 as cuda_fp8
from pygpukit.ops.matmul.cuda_cores import gemv, strided
from pygpukit.ops.matmul.cuda_cores import grouped as cuda_grouped
from pygpukit.ops.matmul.epilogue import fused, quantise
from pygpukit.ops.matmul.epilogue.epilogue import Epilogue

Values = np.ndarray[Any, Any]
_FLOATS = [dtype.name for dtype in promotion.FLOATS]


def _tiled(one: tuple[int, int], function: Callable[..., gp.GPUArray]) -> Callable[..., gp.GPUArray]:
    """The function with threads that make so many rows and columns, whatever the plan."""

    def tiled(*inputs: gp.GPUArray) -> gp.GPUArray:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(strided, "tile", lambda *_: one)
            return function(*inputs)

    return tiled


def _products() -> Iterator[Call]:
    for wide in (float32, float64):
        for one in strided.tiles(wide):
            inputs = (numbers(wide.name, 2, 67, 78)[..., ::2], numbers(wide.name, 35, 39).T)  # no dense axis
            yield Call(_tiled(one, gp.matmul), inputs, lambda a, b: a @ b)
    for dtype in pointwise.CTYPES:
        yield Call(gp.matmul, (numbers(dtype, 67, 9), numbers(dtype, 9, 65)))
        if dtype == "int8":
            yield Call(gp.matmul_int8, (numbers(dtype, 67, 9), numbers(dtype, 9, 65)))
        yield Call(gp.matmul, (numbers(dtype, 3, 1, 6, 5)[..., ::-1], numbers(dtype, 2, 7, 5).swapaxes(1, 2)))


def _few_rows() -> Iterator[Call]:
    def added(a: gp.GPUArray, b: gp.GPUArray, c: gp.GPUArray) -> gp.GPUArray:
        return gp.matmul(a, b, alpha=0.5, beta=2.0, out=c.clone()[..., ::-1])

    for dtype in _FLOATS:
        a, b = numbers(dtype, 19, 300), numbers(dtype, 300, 35)
        yield Call(gp.matmul, (a, b))  # rows of b that are no whole 16 bytes
        yield Call(gp.matmul, (a[:, ::-1], numbers(dtype, 40, 300).T))
        yield Call(gp.matmul, (numbers(dtype, 37, 264), numbers(dtype, 264)))  # one column
        stacks = (numbers(dtype, 2, 1, 3, 264), numbers(dtype, 3, 264, 40), numbers(dtype, 2, 3, 3, 40))
        yield Call(added, stacks, lambda a, b, c: 0.5 * (a @ b) + 2 * c[..., ::-1])
        layer = (numbers(dtype, 5, 264), numbers(dtype, 9, 264), numbers(dtype, 9), numbers(dtype, 5, 9))
        yield Call(lambda x, w, b, r: gp.linear(x, w, b, "relu", r), layer)


def _fused_products() -> Iterator[Call]:
    def scaled(a: gp.GPUArray, b: gp.GPUArray, c: gp.GPUArray) -> gp.GPUArray:
        out = c.clone()
        return gp.matmul(a, b, alpha=0.5, beta=-2.0, out=out[..., ::-1])

    def linear(x: gp.GPUArray, w: gp.GPUArray, b: gp.GPUArray) -> gp.GPUArray:
        return gp.linear(x, w, b, "relu")

    for wide in (float32, float64):
        for one in strided.tiles(wide):
            layer = (numbers(wide.name, 67, 18)[:, ::2], numbers(wide.name, 65, 9), numbers(wide.name, 65))
            yield Call(_tiled(one, linear), layer, lambda x, w, b: np.maximum(x @ w.T + b, 0))
    for dtype in _FLOATS:
        yield Call(gp.linear_bias_gelu, (numbers(dtype, 3, 5, 7), numbers(dtype, 9, 7), numbers(dtype, 9)))
        gated = (numbers(dtype, 5, 7), numbers(dtype, 18, 7), numbers(dtype, 18), numbers(dtype, 5, 9))
        yield Call(lambda x, w, b, r: gp.linear(x, w, b, "swiglu", r), gated)
        inputs = (numbers(dtype, 2, 67, 9), numbers(dtype, 9, 65), numbers(dtype, 2, 67, 65))
        yield Call(scaled, inputs, lambda a, b, c: 0.5 * (a @ b) - 2 * c[..., ::-1])
        yield Call(lambda a, b: gp.matmul(a, b[:, 0], alpha=3), inputs[:2])
    for dtype in ("float16", "bfloat16", "float32"):  # after a product of tensor cores

        def finish(sums: gp.GPUArray, other: gp.GPUArray) -> gp.GPUArray:
            out = gp.full(other.shape, float("nan"), dtype=other.dtype)
            fused.finish(sums, out, Epilogue(0.5, act="relu", residual=other[..., ::-1], beta=2.0))
            return out

        def finish_pieces(sums: gp.GPUArray, bias: gp.GPUArray, other: gp.GPUArray) -> gp.GPUArray:
            out = gp.full(other.shape, float("nan"), dtype=other.dtype)
            fused.finish(sums, out, Epilogue(0.5, bias, "relu", other, 2.0))
            return out

        yield Call(
            finish_pieces,
            (numbers(dtype, 2, 7, 40), numbers(dtype, 40), numbers(dtype, 2, 7, 40)),
            lambda x, b, y: np.maximum(0.5 * x + b, 0) + 2 * y,
        )
        yield Call(
            finish,
            (numbers(dtype, 2, 7, 41), numbers(dtype, 2, 7, 41)),
            lambda x, y: np.maximum(0.5 * x, 0) + 2 * y[..., ::-1],
        )


def _scaled_products() -> Iterator[Call]:
    def numbers_of(dtype: str, *shape: int) -> gp.GPUArray:
        return numbers("float32", *shape, low=-4, high=4).astype(dtype)

    for out in ("float16", "bfloat16", "float32"):
        for left, right in (("float8_e4m3", "float8_e5m2"), ("bfloat16", "float8_e4m3"), ("float8_e5m2", "float32")):
            a, b = numbers_of(left, 67, 150), numbers_of(right, 70, 150).T
            scales = numbers("float32", 67, 2, low=0.5, high=2), numbers("float32", 2, 1, low=0.5, high=2)

            def product(x: gp.GPUArray, y: gp.GPUArray, p: gp.GPUArray, q: gp.GPUArray, out: str = out) -> gp.GPUArray:
                return gp.matmul_fp8(x, y, p, q, out_dtype=out)

            x, y = (one.astype("float64").to_numpy() for one in (a, b))

            def wanted(*given: Values, x: Values = x, y: Values = y) -> Values:
                p, q = given[2:]
                return (x * p.repeat(128, 1)[:, :150]) @ (y * q.repeat(128, 0)[:150])

            yield Call(product, (a, b, *scales), wanted)


def _groups() -> Iterator[Call]:
    for dtype in _FLOATS:
        counts = gp.from_numpy(np.array([3, 0, 66, 1], np.int32))

        def wanted(x: Values, w: Values, counts: Values) -> Values:
            of = np.repeat(np.arange(4), counts)
            return np.concatenate([np.einsum("rk,rkn->rn", x[: len(of)], w[of]), np.zeros((len(x) - len(of), 33))])

        yield Call(gp.grouped_matmul, (numbers(dtype, 75, 17), numbers(dtype, 4, 17, 33), counts), wanted)


def _quantised() -> Iterator[Call]:
    def wanted(x: Values, scale: Values, dtype: str) -> Values:
        values = x.astype(np.float32) / np.float32(scale)
        if dtype == "int8":
            return np.clip(np.rint(values), -128, 127).astype(np.int8)
        top = {"float8_e4m3": 448, "float8_e5m2": 57344}[dtype]
        return gp.from_numpy(np.clip(values, -top, top)).astype(dtype).to_numpy()

    for source, dtype in product_of(_FLOATS, ("float8_e4m3", "float8_e5m2", "int8")):
        x, scale = numbers(source, 9, 37, low=-600, high=600), numbers("float32", 1, low=0.5, high=2)
        for shift in (0, 1):  # in packs, and not

            def quantise(x: gp.GPUArray, scale: gp.GPUArray, dtype: str = dtype, shift: int = shift) -> gp.GPUArray:
                return gp.ops.quantize(x.reshape(-1)[shift:], dtype, scale)

            def reference(x: Values, scale: Values, dtype: str = dtype, shift: int = shift) -> Values:
                return wanted(x.reshape(-1)[shift:], scale[0], dtype)

            yield Call(quantise, (x, scale), reference)


_CALLS = {
    cuda_grouped.SOURCE.source: _groups,
    cuda_fp8.SOURCE.source: _scaled_products,
    strided.SOURCE.source: _products,
    gemv.SOURCE.source: _few_rows,
    fused.SOURCE.source: _fused_products,
    quantise.SOURCE.source: _quantised,
}


def _family(source: str) -> Family:
    name = source.rpartition("/")[2].removesuffix(".cu")
    return Family(name, (source,), lambda _: "all", lambda _: _CALLS[source]())


FAMILIES = tuple(_family(source) for source in _CALLS)
