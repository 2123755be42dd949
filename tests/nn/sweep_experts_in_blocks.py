"""Products of rows by experts with weights in blocks of few bits: every kind of block."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from random_blocks import random_blocks, values
from sweep.engine import Call, Family, numbers

import pygpukit as gp
from pygpukit.nn.linear import in_blocks as kinds
from pygpukit.nn.linear.blocks import Blocks, Part
from pygpukit.nn.moe import in_blocks

Array = np.ndarray[Any, Any]
_COLUMNS, _COUNT, _EXPERTS = 512, 18, 3


def _calls(kind: str) -> Iterator[Call]:
    packed = random_blocks(kind, _EXPERTS * _COUNT, _COLUMNS, 2)
    weight = values(kind, packed).astype(np.float64).reshape(_EXPERTS, _COUNT, _COLUMNS)
    # Of each kernel: of 8 rows, of 32, and of 64 with one stage and with two.
    for counts, form in (([2, 0, 7], (8, 0)), ([9, 1, 0], (32, 0)), ([0, 3, 2], (64, 1)), ([1, 0, 4], (64, 2))):

        def product(x: gp.GPUArray, stored: gp.GPUArray, counts: list[int] = counts, form: Any = form) -> gp.GPUArray:
            out = gp.ones((x.shape[0], _COUNT), "bfloat16")
            blocks = Blocks((Part(kind, stored),), _COLUMNS, kinds.TYPES[0])
            in_blocks.product(x, blocks, gp.from_numpy(np.array(counts, np.int32)), out, form)
            return out

        def reference(x: Array, _: Array, counts: list[int] = counts) -> Array:
            return np.asarray(np.einsum("rk,rnk->rn", x, weight[np.repeat(np.arange(_EXPERTS), counts)]))

        yield Call(product, (numbers("bfloat16", sum(counts), _COLUMNS), gp.from_numpy(packed)), reference)


def _kind(expression: str) -> str:
    return next(word for word in re.findall(r"\w+", expression) if word in kinds.KINDS)


FAMILIES = (Family("experts-in-blocks", (in_blocks.SOURCE.source, in_blocks.WIDE.source), _kind, _calls),)
