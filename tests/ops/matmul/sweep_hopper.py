"""The kernels for SM 9.0: each type, tiling, layout and way of scaling, with rings of copies that wrap and edges of
every kind, and with what comes after the sums."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from device_facts import having
from sweep.engine import Call, Family, numbers

import pygpukit as gp
from pygpukit.ops.matmul.epilogue.epilogue import Epilogue
from pygpukit.ops.matmul.epilogue.quantise import Conversion
from pygpukit.ops.matmul.sm90 import cluster
from pygpukit.ops.matmul.tile.fp8 import Scale
from pygpukit.ops.matmul.tile.tiling import cluster_tiles

Values = np.ndarray[Any, Any]
_TYPES = {"e4m3_t": "float8_e4m3", "e5m2_t": "float8_e5m2", "half_t": "float16", "bfloat16_t": "bfloat16"}
_SHAPES = ((67, 133), (3, 136))  # m, n: rows of no whole 16 bytes; rows of whole ones
_STEPS = 6.2  # of 128 bytes along k: more than are in shared memory at a time


def _arguments(expression: str) -> list[str]:
    return expression.replace("pk::", "").split("<")[1].rstrip(">").split(", ")


@contextmanager
def one_cluster(kind: str, columns: int) -> Iterator[None]:
    """One pair of blocks makes all tiles, of so many columns, one after the other."""
    (one,) = (one for one in cluster_tiles(kind) if one.columns == columns)
    with having(sm_count=2), pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster, "_fastest", lambda *_: one)
        yield


def to_tf32(values: Values) -> Values:
    """Rounded to tf32, to nearest even, as float64."""
    bits = values.astype(np.float32).view(np.uint32)
    kept = (bits + np.uint32(0xFFF) + (bits >> np.uint32(13) & np.uint32(1))) & np.uint32(0xFFFFE000)
    return kept.view(np.float32).astype(np.float64)


def _unscaled(dtype: str, columns: int, turned: tuple[bool, bool]) -> Iterator[Call]:
    kind = "tf32" if dtype == "float32" else "half"

    def operands(m: int, n: int, k: int) -> tuple[gp.GPUArray, gp.GPUArray]:
        a = numbers(dtype, k, m).T if turned[0] else numbers(dtype, m, k)
        return a, numbers(dtype, k, n) if turned[1] else numbers(dtype, n, k).T

    def product(a: gp.GPUArray, b: gp.GPUArray) -> gp.GPUArray:
        out = gp.full((*a.shape[:-1], b.shape[-1]), float("nan"), dtype)
        with one_cluster(kind, columns):
            cluster.product(a, b, out)
        return out

    def product_and_its_last_row(a: gp.GPUArray, b: gp.GPUArray) -> gp.GPUArray:
        whole, alone = product(a, b), product(a[-1:], b)
        assert whole[-1:].to_numpy().tobytes() == alone.to_numpy().tobytes(), "a row's bits depend on the others"
        return whole

    def finished(a: gp.GPUArray, b: gp.GPUArray, bias: gp.GPUArray, residual: gp.GPUArray) -> gp.GPUArray:
        out = gp.full(residual.shape, float("nan"), dtype)
        after = Epilogue(alpha=0.5, bias=bias, act="relu", residual=residual, beta=2.0)
        assert after.by_pieces(out)
        with one_cluster(kind, columns):
            cluster.product(a, b, out, after)
        return out

    def wanted(x: Values, y: Values) -> Values:
        return to_tf32(x) @ to_tf32(y) if dtype == "float32" else x @ y

    def wanted_finished(x: Values, y: Values, bias: Values, residual: Values) -> Values:
        return np.maximum(0.5 * wanted(x, y) + bias, 0) + 2.0 * residual

    long = int(_STEPS * 128 / gp.empty(1, dtype).itemsize)
    yield Call(product, operands(8, 136, 72 if any(turned) else long), wanted)  # the simulator reads turned ones slowly
    yield Call(finished, (*operands(72, 200, 24), numbers(dtype, 200), numbers(dtype, 72, 200)), wanted_finished)
    if any(turned):  # operands of whole 16 bytes, as others are copied
        return
    yield Call(product, operands(67, 133, 17), wanted)
    if columns == 256:
        yield Call(product, (numbers(dtype, 2, 5, 9), numbers(dtype, 9, 7)), wanted)
    if columns == 256 and dtype == "bfloat16":  # several pairs of tiles
        yield Call(product_and_its_last_row, operands(300, 304, 16), wanted)


def _gated(dtype: str, columns: int, b_turned: bool) -> Iterator[Call]:
    m, n, k = 72, 200, 24

    def product(a: gp.GPUArray, b: gp.GPUArray, bias: gp.GPUArray, residual: gp.GPUArray) -> gp.GPUArray:
        after, out = Epilogue(2.0, bias, "swiglu", residual, 2.0), gp.full((m, n), float("nan"), dtype)
        assert cluster.finishes(a, b, out, after)
        with one_cluster("half", columns):
            cluster.product(a, b, out, after)
        return out

    def wanted(x: Values, y: Values, bias: Values, residual: Values) -> Values:
        gates, ups = np.split(2.0 * (x @ y) + bias, 2, 1)
        return gates / (1 + np.exp(-gates)) * ups + 2.0 * residual

    b = numbers(dtype, k, 2 * n) if b_turned else numbers(dtype, 2 * n, k).T
    yield Call(product, (numbers(dtype, m, k), b, numbers(dtype, 2 * n), numbers(dtype, m, n)), wanted)


def _converted(dtype: str, columns: int, b_turned: bool) -> Iterator[Call]:
    m, n, k = 72, 208, 24

    def products(a: gp.GPUArray, b: gp.GPUArray) -> gp.GPUArray:
        made = [gp.full((m, n), 77.0, "float32").astype(one) for one in cluster.CONVERTED]
        rounded = gp.full((m, n), float("nan"), dtype)
        with one_cluster("half", columns):
            cluster.product(a, b, rounded)
            for out in made:
                cluster.product(a, b, out, Epilogue(conversion=Conversion(out.dtype, 0.25)))
                alone = rounded if out.dtype == dtype else Conversion(out.dtype, 0.25).of(rounded)
                assert out.to_numpy().tobytes() == alone.to_numpy().tobytes(), f"{out.dtype} is not the sum, converted"
        return made[0].astype(dtype)

    yield Call(
        products, (numbers(dtype, m, k), numbers(dtype, k, n) if b_turned else numbers(dtype, n, k).T), np.matmul
    )


def _scaled(element: str, result: str, by_block: bool, columns: int) -> Iterator[Call]:
    for m, n in _SHAPES:
        k = int(_STEPS * 128) if m == 3 else 150
        blocks = -(-k // 128)
        a, b = (numbers("float32", lines, k, low=-4, high=4).astype(element) for lines in (m, n))
        x, y = (one.astype("float64").to_numpy() for one in (a, b.T))
        of_rows = numbers("float32", m, *((blocks,) if by_block else ()), low=0.5, high=2)
        of_columns = numbers("float32", *((blocks, 2) if by_block else (n,)), low=0.5, high=2)

        def product(p: gp.GPUArray, q: gp.GPUArray, a: Any = a, b: Any = b, blocks: int = blocks) -> gp.GPUArray:
            out = gp.full((a.shape[0], b.shape[0]), float("nan"), result)
            left = Scale(p, 1, (blocks, 1) if by_block else (1, 0), 0.5)
            with one_cluster("fp8", columns):
                cluster.scaled(a, b.T, left, Scale(q, 128, (1, 2)) if by_block else Scale(q, 1, (1, 0)), out)
            return out

        def wanted(p: Values, q: Values, x: Values = x, y: Values = y) -> Values:
            if by_block:
                k, n = y.shape
                p, q = p.repeat(128, 1)[:, :k], q.repeat(128, 0)[:k].repeat(128, 1)[:, :n]
                return 0.5 * (x * p) @ (y * q)
            return 0.5 * p[:, None] * (x @ y) * q

        yield Call(product, (of_rows, of_columns), wanted)


def _calls(variant: str) -> Iterator[Call]:
    element, result, scaling, columns, *more = variant.split()
    if scaling == "0":
        a_turned, b_turned = (one == "true" for one in more[:2])
        if more[2:]:
            return (_gated, _converted)[int(more[2]) - 1](_TYPES[element], int(columns), b_turned)
        return _unscaled(_TYPES.get(element, "float32"), int(columns), (a_turned, b_turned))
    return _scaled(_TYPES[element], _TYPES.get(result, "float32"), scaling == "2", int(columns))


FAMILIES = (Family("hopper products", (cluster.SOURCE.source,), lambda name: " ".join(_arguments(name)), _calls),)
