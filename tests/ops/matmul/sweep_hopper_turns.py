"""Products by single blocks on SM 9.0: each type, tile and layout, with rings of copies that wrap, several tiles a
block, and edges of every kind."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from device_facts import having
from sweep.engine import Call, Family, numbers

import pygpukit as gp
from pygpukit.ops.matmul.sm90 import pingpong
from pygpukit.ops.matmul.tile.tiling import Tile

_TYPES = {"half_t": "float16", "bfloat16_t": "bfloat16"}
_LONG = 584  # ten steps, the last one short: more than are in shared memory at a time


def _calls(variant: str) -> Iterator[Call]:
    element, rows, columns, *turned = variant.split()
    dtype, a_turned, b_turned = _TYPES[element], turned[0] == "true", turned[1] == "true"
    (one,) = (one for one in pingpong.tiles() if (one.rows, one.columns) == (int(rows), int(columns)))

    def operands(m: int, n: int, k: int) -> tuple[gp.GPUArray, gp.GPUArray]:
        a = numbers(dtype, k, m).T if a_turned else numbers(dtype, m, k)
        return a, numbers(dtype, k, n) if b_turned else numbers(dtype, n, k).T

    def product(a: gp.GPUArray, b: gp.GPUArray, one: Tile = one) -> gp.GPUArray:
        out = gp.full((*a.shape[:-1], b.shape[-1]), float("nan"), dtype)
        with having(sm_count=1):  # one block makes all tiles
            pingpong.product(a, b, out, one)
        return out

    def wanted(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return x @ y

    yield Call(product, operands(8, 40, 72 if a_turned or b_turned else _LONG), wanted)  # turned ones are read slowly
    yield Call(product, operands(136, 264, 16), wanted)
    if not (a_turned or b_turned):  # operands of whole 16 bytes, as others are copied
        yield Call(product, operands(67, 133, 24), wanted)


def _variant(name: str) -> str:
    return name.replace("pk::", "").split("<")[1].rstrip(">").replace(",", "")


FAMILIES = (Family("products by turns", (pingpong.SOURCE.source,), _variant, _calls),)
