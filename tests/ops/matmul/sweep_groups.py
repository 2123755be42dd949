"""Grouped products by the kernels for SM 9.0: each type and layout, with a ring of copies that wraps, tiles of each
kind, groups of no rows, more groups than a warp has lanes, and rows of no group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from device_facts import having
from sweep.engine import Call, Family, numbers

import pygpukit as gp
from pygpukit.ops.matmul.sm90 import grouped as sm90_grouped

Values = np.ndarray[Any, Any]
_TYPES = {"half_t": "float16", "bfloat16_t": "bfloat16"}
_COUNTS = [3, 0, -2, 133, 200, *[0] * 30, 5]
_ROWS = 350


def _arguments(expression: str) -> str:
    return expression.replace("pk::", "").split("<")[1].rstrip(">").replace(",", "")


def _calls(variant: str) -> Iterator[Call]:
    element, turned = variant.split()
    dtype, steps = _TYPES[element], 1.2 if turned == "true" else 2.2  # the simulator reads turned ones slowly
    groups = len(_COUNTS)

    def product(x: gp.GPUArray, w: gp.GPUArray, counts: gp.GPUArray) -> gp.GPUArray:
        out = gp.full((x.shape[0], w.shape[2]), float("nan"), dtype)
        with having(sm_count=4):  # two pairs make five tiles, the last as two
            sm90_grouped.product(x, w, counts, out)
        return out

    def wanted(x: Values, w: Values, counts: Values) -> Values:
        ends = np.cumsum(np.maximum(counts, 0))
        made = [x[end - max(count, 0) : end] @ one for one, count, end in zip(w, counts, ends, strict=True)]
        return np.concatenate([*made, np.zeros((len(x) - ends[-1], w.shape[2]))])

    for n, k in ((136, int(64 * steps) // 8 * 8), (133, 17)):
        w = numbers(dtype, groups, k, n) if turned == "true" else numbers(dtype, groups, n, k).swapaxes(1, 2)
        if turned == "true" and n % 8:  # they would be copied
            continue
        yield Call(product, (numbers(dtype, _ROWS, k), w, gp.from_numpy(np.array(_COUNTS, np.int32))), wanted)


FAMILIES = (Family("grouped products", (sm90_grouped.SOURCE.source,), _arguments, _calls),)
