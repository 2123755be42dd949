"""The tile kernels of matrix products and of attention, each tile by itself: the operations choose one by its times."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import asdict
from math import prod
from typing import Any

import numpy as np
import pytest
from device_facts import having
from sweep.engine import Call, Family, numbers

import pygpukit as gp
from pygpukit.ops import plans
from pygpukit.ops.matmul.problem import Problem
from pygpukit.ops.matmul.tile import fp8 as tile_fp8
from pygpukit.ops.matmul.tile import fp8_weight, half, int8_tf32
from pygpukit.ops.matmul.tile import gemv as tile_gemv
from pygpukit.ops.matmul.tile.tiling import tiles
from pygpukit.ops.nn.attention import problem
from pygpukit.ops.nn.attention import tile as attention
from pygpukit.ops.nn.attention.extras import FAR, Extras
from pygpukit.ops.nn.attention.tiles import FAMILY, TILES

Values = np.ndarray[Any, Any]
_TYPES = {"__nv_bfloat16": "bfloat16", "__half": "float16", "float": "float32", "signed char": "int8"}
_TYPES |= {"__nv_fp8_e4m3": "float8_e4m3", "__nv_fp8_e5m2": "float8_e5m2"}
_ARGUMENTS = re.compile(r"<([\w ]+), (.*)>")


def _arguments(expression: str) -> tuple[str, list[str]]:
    """(type, the other template arguments) of a name expression."""
    found = _ARGUMENTS.search(expression)
    assert found is not None
    return found[1], found[2].split(", ")


def _by_tile(expression: str) -> str:
    kind, rest = _arguments(expression)
    return f"{_TYPES[kind]} {'x'.join(rest[:3])}"


def _forced(
    module: Any, size: str, result: str | None = None, beside: int = 0
) -> Callable[[gp.GPUArray, gp.GPUArray], gp.GPUArray]:
    """The module's product() by the tile of that size, into memory `beside` elements from where it is aligned."""
    family = {half: ("half",), int8_tf32: ("int8", "tf32")}[module]
    extents = tuple(map(int, size.split("x")))
    (one,) = {t for name in family for t in tiles(name) if (t.rows, t.columns, t.depth) == extents}

    def product(a: gp.GPUArray, b: gp.GPUArray) -> gp.GPUArray:
        shape = (*a.shape[:-1], b.shape[-1])
        out = gp.full(prod(shape) + beside, 77, result or a.dtype)[beside:].reshape(shape)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "fastest", lambda *_: one)
            module.product(a, b, out)
        return out

    return product


def _half(variant: str) -> Iterator[Call]:
    dtype, size = variant.split()
    rows, columns, depth = map(int, size.split("x"))
    product, apart = _forced(half, size), _forced(half, size, beside=1)
    general = next(one.general for one in tiles("half") if (one.rows, one.columns, one.depth) == (rows, columns, depth))
    m, n, k = rows + 8, columns + 8, depth + 8

    def both(x: Values, y: Values) -> Values:
        return x @ y

    for b in (numbers(dtype, k, n), numbers(dtype, n, k).T):
        yield Call(product, (numbers(dtype, m - 3, k), b), both)
        if general:
            turned = numbers(dtype, k, m).T
            yield Call(product, (turned, b), both)
            for a in (turned, numbers(dtype, m - 3, k)):
                yield Call(product, (a, b[:, : n - 3]), both)
                yield Call(apart, (a, b), both)
    if general:
        yield Call(product, (numbers(dtype, 2, 5, 9), numbers(dtype, 2, 9, 7)), both)


def _skinny(variant: str) -> Iterator[Call]:
    dtype, size = variant.split()
    rows, columns, depth = map(int, size.split("x"))

    def product(a: gp.GPUArray, b: gp.GPUArray) -> gp.GPUArray:
        shape = (*a.shape[:-1], b.shape[-1])
        out = gp.full(prod(shape) + 1, float("nan"), dtype)[1:].reshape(shape)
        tile_gemv.run(Problem.of("half", a, b, a.dtype), a, b, out)
        return out

    m, n, k = rows - 3, columns + 8, depth + 5
    yield Call(product, (numbers(dtype, rows, k), numbers(dtype, k, n)[:, : n - 3]), np.matmul)
    yield Call(product, (numbers(dtype, m, depth), numbers(dtype, n, depth).T), np.matmul)  # b along k
    repeated = gp.broadcast_to(numbers(dtype, m, k + 3), (2, m, k + 3))
    yield Call(product, (repeated, numbers(dtype, 2, k + 3, n)), np.matmul)


def _narrow(variant: str) -> Iterator[Call]:
    dtype, size = variant.split()
    rows, columns, depth = map(int, size.split("x"))
    product = _forced(int8_tf32, size, "int32" if dtype == "int8" else None)

    def rounded(x: Values, y: Values) -> Values:
        if dtype == "int8":
            return x.astype(np.int32) @ y.astype(np.int32)
        bits = [one.astype(np.float32).view(np.uint32) for one in (x, y)]
        whole = [one + np.uint32(0xFFF) + (one >> np.uint32(13) & np.uint32(1)) for one in bits]
        kept = [one & np.uint32(0xFFFFE000) for one in whole]
        wide = [one.view(np.float32).astype(np.float64) for one in kept]
        return wide[0] @ wide[1]

    for m, n, k in ((rows - 3, columns + 5, depth + 3), (3, 16, 32)):
        yield Call(product, (numbers(dtype, 2, m, k), numbers(dtype, 2, n, k).swapaxes(1, 2)), rounded)


def _scaled(variant: str) -> Iterator[Call]:
    element, result = variant.split()
    a, b = (numbers("float32", n, 150, low=-4, high=4).astype(element) for n in (67, 133))
    rows, columns = numbers("float32", 67, low=0.5, high=2), numbers("float32", 133, low=0.5, high=2)
    blocks, squares = numbers("float32", 67, 2, low=0.5, high=2), numbers("float32", 2, 2, low=0.5, high=2)
    x, y = (one.astype("float64").to_numpy() for one in (a, b.T))

    def product(p: gp.GPUArray, q: gp.GPUArray) -> gp.GPUArray:
        out = gp.full((67, 133), float("nan"), result)
        scales: list[Any] = [tile_fp8.Scale(p, 1, (p.shape[-1], 1) if p.ndim == 2 else (1, 0))]
        scales += [tile_fp8.Scale(q, 128, (1, 2)) if q.ndim == 2 else tile_fp8.Scale(q, 1, (1, 0))]
        tile_fp8.product(a, b.T, scales[0], scales[1], out)
        return out

    yield Call(product, (rows, columns), lambda p, q: p[:, None] * (x @ y) * q)

    def by_blocks(p: Values, q: Values) -> Values:
        return (x * p.repeat(128, 1)[:, :150]) @ (y * q.repeat(128, 0)[:150].repeat(128, 1)[:, :133])

    yield Call(product, (blocks, squares), by_blocks)


def _decoded(variant: str) -> Iterator[Call]:
    weight, element, result, size = variant.split()
    m, n, k = {16: 13, 64: 61, 128: 131}[int(size.split("x")[0])], 133, 150
    w = numbers("float32", n, k, low=-4, high=4).astype(weight)
    wide = w.astype("float64").to_numpy()

    def product(a: gp.GPUArray, rows: gp.GPUArray, scales: gp.GPUArray) -> list[gp.GPUArray]:
        left = tile_fp8.Scale(rows, 1, (1, 0), 2.0)
        right = tile_fp8.Scale(scales, 128, (1, 2)) if scales.ndim == 2 else tile_fp8.Scale(scales, 1, (1, 0))
        return made(a, left, right)

    def made(a: gp.GPUArray, left: tile_fp8.Scale, right: tile_fp8.Scale) -> list[gp.GPUArray]:
        """On a large device, and on one of a single multiprocessor."""
        out = [gp.full((m, n), float("nan"), result) for _ in range(2)]
        fp8_weight.product(a, w.T, left, right, out[0])
        with having(sm_count=1):
            fp8_weight.product(a, w.T, left, right, out[1])
        return out

    def wanted(a: Values, rows: Values, scales: Values) -> tuple[Values, ...]:
        if scales.ndim == 1:
            return (2 * rows[:, None] * (a @ wide.T) * scales,) * 2
        return (2 * rows[:, None] * (a @ (wide.T * scales.repeat(128, 0)[:k].repeat(128, 1)[:, :n])),) * 2

    for shape in ((n,), (2, 2)):
        operands = numbers(element, m, k), numbers("float32", m, low=0.5, high=2)
        yield Call(product, (*operands, numbers("float32", *shape, low=0.5, high=2)), wanted)

    none = tile_fp8.Scale(None, 1, (0, 0))
    yield Call(lambda a: made(a, none, none), (numbers(element, m, k),), lambda a: (a @ wide.T,) * 2)


def _attention(variant: str) -> Iterator[Call]:
    dtype, size = variant.split()
    queries, keys, width = map(int, size.split("x"))
    (one,) = [one for one in TILES[width] if (one.queries, one.keys) == (queries, keys)]
    lengths = gp.from_numpy(np.array([300, 7], np.int32))

    def attend(q: gp.GPUArray, k: gp.GPUArray, v: gp.GPUArray, more: Extras) -> gp.GPUArray:
        out = gp.full(q.shape, float("nan"), dtype)
        with plans.using({FAMILY: {"tiles": {str(width): [asdict(one)]}}}):
            call = problem.Call(q, k, v, out, 1 / np.sqrt(width - 8), None, more)
            p = problem.Problem.of(call)
            attention.run(p, call, attention.tiling(p))
        return out

    def wanted(q: Values, k: Values, v: Values, seen: int, window: int) -> Values:
        keys = np.arange(k.shape[2])
        scores = q @ k.repeat(2, 1).swapaxes(2, 3) / np.sqrt(width - 8)
        apart = np.arange(q.shape[2])[:, None] + 300 - q.shape[2] - keys
        if seen:
            apart = np.stack([apart, apart + 7 - 300])[:, None]
        scores = np.where((apart >= 0) & (apart < window), scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, initial=-1e9, keepdims=True))
        return weights / np.maximum(weights.sum(-1, keepdims=True), 1e-300) @ v.repeat(2, 1)

    operands = (numbers(dtype, 2, 2, 131, width - 8), *(numbers(dtype, 2, 1, 300, width - 8) for _ in range(2)))
    for window in (70, 1000):  # heads one after the other, and together
        more = Extras(behind=window - 1 if window < 300 else FAR)
        yield Call(
            lambda q, k, v, more=more: attend(q, k, v, more),
            operands,
            lambda q, k, v, window=window: wanted(q, k, v, 0, window),
        )
    more = Extras(lengths=lengths)
    yield Call(lambda q, k, v: attend(q, k, v, more), operands, lambda q, k, v: wanted(q, k, v, 1, 1000))


def _by_types(expression: str) -> str:
    kind, rest = _arguments(expression)
    return f"{_TYPES[kind]} {_TYPES[rest[0]]}"


def _by_tile_and_types(expression: str) -> str:
    kind, (element, result, rows, columns, *_) = _arguments(expression)
    return f"{_TYPES[kind]} {_TYPES[element]} {_TYPES[result]} {rows}x{columns}"


FAMILIES = (
    Family("tile products", (half.MATMUL.source,), _by_tile, _half),
    Family("narrow products", (int8_tf32.NARROW.source,), _by_tile, _narrow),
    Family("scaled tile products", (tile_fp8.SCALED.source,), _by_types, _scaled),
    Family("skinny products", (tile_gemv.SKINNY.source,), _by_tile, _skinny),
    Family("decoded tile products", (fp8_weight.DECODED.source,), _by_tile_and_types, _decoded),
    Family("tile attention", (attention.ATTENTION.source,), _by_tile, _attention),
)
