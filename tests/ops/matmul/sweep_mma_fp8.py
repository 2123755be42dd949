"""Products of fp8 by mma.sync: each block by itself, by lines' and blocks' scales, with edges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sweep.engine import Call, Family, numbers

import pygpukit as gp
from pygpukit.ops.matmul.mma import fp8
from pygpukit.ops.matmul.tile.fp8 import Scale

Values = np.ndarray[Any, Any]
_TYPES = {"e4m3_t": "float8_e4m3", "e5m2_t": "float8_e5m2"}
_RESULTS = ("float32", "bfloat16", "float16")


def _variant(expression: str) -> str:
    kind, _, *sizes = expression.replace("pk::", "").split("<")[1].rstrip(">").split(", ")
    return f"{_TYPES[kind]} {'x'.join(sizes[:3])} {sizes[-1]}"


def _calls(variant: str) -> Iterator[Call]:
    dtype, size, by_block = variant.split()
    (block,) = (block for block in fp8.blocks() if str(block) == size)
    m, n, k = block.rows + 3, block.columns + 5, block.stages * 128 + 40  # stages come round
    a, b = (numbers("float32", *shape).astype(dtype) for shape in ((m, k), (n, k)))
    deep = -(-k // 128) if by_block == "true" else 1
    of_a = numbers("float32", m, deep, low=0.5, high=2.0)
    of_b = numbers("float32", -(-n // 128) if deep > 1 else n, deep, low=0.5, high=2.0)

    for result in _RESULTS:

        def product(a: gp.GPUArray, b: gp.GPUArray, s: gp.GPUArray, t: gp.GPUArray, result: str = result) -> Any:
            left = Scale(s, 1, (deep, 1)) if deep > 1 else Scale(s[:, 0], 1, (1, 0))
            right = Scale(t, 128, (deep, 1)) if deep > 1 else Scale(t[:, 0], 1, (1, 0), 0.5)
            out = gp.full((m, n), float("nan"), result)
            fp8.product(a, b.T, left, right, out, block)
            return out

        def reference(_: Values, __: Values, s: Values, t: Values) -> Values:
            x, y = (one.astype("float64").to_numpy() for one in (a, b))  # given as codes
            if deep == 1:
                return 0.5 * ((x * s) @ (y * t).T)
            s, t = (np.repeat(one, 128, 1)[:, :k] for one in (s, np.repeat(t, 128, 0)[:n]))
            return (x * s) @ (y * t).T

        yield Call(product, (a, b, of_a, of_b), reference)


FAMILIES = (Family("fp8 products", (fp8.SCALED.source,), _variant, _calls),)
