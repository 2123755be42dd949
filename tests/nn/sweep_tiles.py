"""Products with weights in blocks of few bits by tiles, their values, and how they come to lie so: every kind."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from random_blocks import random_blocks, values
from sweep.engine import Call, Family, numbers

import pygpukit as gp
from pygpukit.nn.batch import Batch
from pygpukit.nn.embedding import embed
from pygpukit.nn.linear import in_tiles
from pygpukit.nn.linear.blocks import Blocks, Part
from pygpukit.nn.norm import Norm

Array = np.ndarray[Any, Any]
_COLUMNS, _COUNT = 512, 32


def _weight(kind: str, packed: gp.GPUArray) -> Blocks:
    tiles = in_tiles.tiled(kind, packed, _COLUMNS)
    return Blocks((Part(kind, tiles, tiled=True),), _COLUMNS, in_tiles.TYPES[0])


def _products(kind: str, packed: Array) -> Iterator[Call]:
    weight = values(kind, packed).astype(np.float64)
    for rows, wide in ((1, False), (9, False), (17, True)):
        for dtype, epilogue in (("bfloat16", "store"), ("float32", "store"), ("float32", "add"), ("bfloat16", "silu")):

            def product(x: gp.GPUArray, stored: gp.GPUArray, dtype: str = dtype, epilogue: str = epilogue,
                        wide: bool = wide) -> Any:  # fmt: skip
                out = gp.ones((x.shape[0], _COUNT // 2 if epilogue == "silu" else _COUNT), dtype)
                in_tiles.product(x, kind, in_tiles.tiled(kind, stored, _COLUMNS), None, out, epilogue, wide=wide)
                return out

            def reference(x: Array, _: Array, epilogue: str = epilogue) -> Array:
                result = x @ weight.T
                gate, up = np.split(result, 2, axis=1)
                return {"store": result, "add": result + 1, "silu": gate / (1 + np.exp(-gate)) * up}[epilogue]

            yield Call(product, (numbers("bfloat16", rows, _COLUMNS), gp.from_numpy(packed)), reference)


def _norms(kind: str, packed: Array) -> Iterator[Call]:
    weight, random = values(kind, packed).astype(np.float64), np.random.default_rng(3)
    signs = random.permutation(
        np.repeat([-3.0, 3.0], _COLUMNS // 2)
    )  # normalised they are 1 and -1: nothing is rounded
    x = gp.from_numpy(signs.astype(np.float32)[None])
    scale = gp.from_numpy((2.0 ** random.integers(-1, 2, _COLUMNS)).astype(np.float32)).astype("bfloat16")
    for dtype, epilogue in (("bfloat16", "store"), ("float32", "store"), ("bfloat16", "silu")):

        def product(x: gp.GPUArray, stored: gp.GPUArray, scale: gp.GPUArray, dtype: str = dtype,
                    epilogue: str = epilogue) -> Any:  # fmt: skip
            out = gp.ones((1, _COUNT // 2 if epilogue == "silu" else _COUNT), dtype)
            tiles = in_tiles.tiled(kind, stored, _COLUMNS)
            in_tiles.product(x, kind, tiles, None, out, epilogue, norm=Norm(scale, eps=0.0))
            return out

        def reference(x: Array, _: Array, scale: Array, epilogue: str = epilogue) -> Array:
            result = x / np.sqrt((x * x).mean()) * scale @ weight.T
            gate, up = np.split(result, 2, axis=1)
            return gate / (1 + np.exp(-gate)) * up if epilogue == "silu" else result

        yield Call(product, (x, gp.from_numpy(packed), scale), reference)


def _values(kind: str, packed: Array) -> Iterator[Call]:
    weight = values(kind, packed).astype(np.float64)

    def rows(stored: gp.GPUArray) -> gp.GPUArray:
        tokens, places = (gp.from_numpy(np.array(n, np.int32)) for n in ([4, 0, 31], [0, 0, 0]))
        out = gp.zeros((3, _COLUMNS))
        embed(Batch(tokens, places, places), _weight(kind, stored), None, out)
        return out

    def whole(stored: gp.GPUArray) -> gp.GPUArray:
        out = gp.zeros((_COUNT, _COLUMNS))
        in_tiles.values(kind, in_tiles.tiled(kind, stored, _COLUMNS), _COLUMNS, None, out)
        return out

    order = gp.from_numpy(np.arange(_COLUMNS, dtype=np.int32)[::-1].copy())

    def turned(stored: gp.GPUArray) -> gp.GPUArray:
        (part,) = _weight(kind, stored).parts
        return Blocks((replace(part, order=order),), _COLUMNS, in_tiles.TYPES[0]).expanded()

    yield Call(turned, (gp.from_numpy(packed),), lambda _: weight[:, ::-1])
    yield Call(lambda stored: _weight(kind, stored).expanded(), (gp.from_numpy(packed),), lambda _: weight)
    yield Call(whole, (gp.from_numpy(packed),), lambda _: weight)
    yield Call(rows, (gp.from_numpy(packed),), lambda _: weight[[4, 0, 31]])


def _calls(kind: str) -> Iterator[Call]:
    packed = random_blocks(kind, _COUNT, _COLUMNS, 2)
    yield from _products(kind, packed)
    yield from _norms(kind, packed)
    yield from _values(kind, packed)


def _kind(expression: str) -> str:
    return next(word for word in re.findall(r"\w+", expression) if word in in_tiles.KINDS)


FAMILIES = (Family("in-tiles", (in_tiles.SOURCE.source, in_tiles.WIDE.source), _kind, _calls),)
