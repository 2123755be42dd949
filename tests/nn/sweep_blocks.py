"""Products with weights in blocks of few bits, and their values: every kind of block."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from random_blocks import random_blocks, values
from sweep.engine import Call, Family, numbers

import pygpukit as gp
from pygpukit.nn.batch import Batch
from pygpukit.nn.embedding import embed
from pygpukit.nn.linear import in_blocks
from pygpukit.nn.linear.blocks import Blocks, Part

Array = np.ndarray[Any, Any]
_COLUMNS, _COUNT = 512, 18


def _weight(kind: str, packed: gp.GPUArray) -> Blocks:
    return Blocks((Part(kind, packed),), _COLUMNS, in_blocks.TYPES[0])


def _products(kind: str, packed: Array) -> Iterator[Call]:
    weight = values(kind, packed).astype(np.float64)
    for rows in (2, 9, 33):
        for dtype, epilogue in (("bfloat16", "store"), ("float32", "store"), ("float32", "add"), ("bfloat16", "silu")):

            def product(x: gp.GPUArray, stored: gp.GPUArray, dtype: str = dtype, epilogue: str = epilogue) -> Any:
                columns = _COUNT // 2 if epilogue == "silu" else _COUNT
                out = gp.ones((x.shape[0], columns), dtype)
                in_blocks.product(x, _weight(kind, stored), None, out, epilogue, wide=x.shape[0] > 32)
                return out

            def reference(x: Array, _: Array, epilogue: str = epilogue) -> Array:
                result = x @ weight.T
                gate, up = np.split(result, 2, axis=1)
                return {"store": result, "add": result + 1, "silu": gate / (1 + np.exp(-gate)) * up}[epilogue]

            yield Call(product, (numbers("bfloat16", rows, _COLUMNS), gp.from_numpy(packed)), reference)


def _values(kind: str, packed: Array) -> Iterator[Call]:
    weight = values(kind, packed).astype(np.float64)

    def rows(stored: gp.GPUArray) -> gp.GPUArray:
        tokens, places = (gp.from_numpy(np.array(n, np.int32)) for n in ([4, 0, 17], [0, 0, 0]))
        out = gp.zeros((3, _COLUMNS))
        embed(Batch(tokens, places, places), _weight(kind, stored), None, out)
        return out

    yield Call(lambda stored: _weight(kind, stored).expanded(), (gp.from_numpy(packed),), lambda _: weight)
    yield Call(rows, (gp.from_numpy(packed),), lambda _: weight[[4, 0, 17]])


def _calls(kind: str) -> Iterator[Call]:
    packed = random_blocks(kind, _COUNT, _COLUMNS, 2)
    yield from _products(kind, packed)
    yield from _values(kind, packed)


def _kind(expression: str) -> str:
    return next(word for word in re.findall(r"\w+", expression) if word in in_blocks.KINDS)


FAMILIES = (Family("in-blocks", (in_blocks.SOURCE.source, in_blocks.WIDE.source), _kind, _calls),)
