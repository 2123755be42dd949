"""Attention of many queries by mma.sync: every width, causal and not, with windows and lengths."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sweep.engine import Call, Family, numbers

import pygpukit as gp
from pygpukit.ops.nn.attention import mma, simt
from pygpukit.ops.nn.attention.extras import FAR, Extras
from pygpukit.ops.nn.attention.problem import Call as Attention
from pygpukit.ops.nn.attention.problem import Problem

Values = np.ndarray[Any, Any]
_TYPES = {"half_t": "float16", "bfloat16_t": "bfloat16"}


def _variant(expression: str) -> str:
    kind, queries, _, width, *_ = expression.replace("pk::", "").split("<")[1].split(", ")
    return f"{_TYPES[kind]} {width} {queries}"


def _attended(q: Values, k: Values, v: Values, ahead: int, behind: int, keys: int) -> Values:
    """Of one batch element: the last query stands at the last of `keys` keys."""
    k, v = (np.repeat(one[:, :keys], len(q) // len(one), 0) for one in (k, v))
    apart = np.arange(keys) - np.arange(q.shape[1])[:, None] - keys + q.shape[1]
    seen = (apart <= ahead) & (apart >= -behind)
    scores = np.where(seen, q @ k.swapaxes(1, 2) / np.sqrt(q.shape[2]), -np.inf)
    weights = np.exp(scores - scores.max(-1, initial=-1e300, keepdims=True))
    total = weights.sum(-1, keepdims=True)
    return np.divide(weights @ v, total, out=np.zeros_like(q), where=total > 0)


def _calls(variant: str) -> Iterator[Call]:
    dtype, width, rows = variant.split()
    (block,) = (one for one in mma.BLOCKS[int(width)] if one.queries == int(rows))
    for less, ahead, behind, lengths in ((0, 0, FAR, None), (8, FAR, FAR, None), (0, 0, 40, [0, block.keys + 3])):
        dim, queries, keys = int(width) - less, block.queries + 3, 2 * block.keys + 5
        q, k, v = numbers(dtype, 2, 4, queries, dim), numbers(dtype, 2, 2, keys, dim), numbers(dtype, 2, 2, keys, dim)
        given = None if lengths is None else gp.from_numpy(np.array(lengths, np.int32))
        more = Extras(ahead, behind, given, None, 0.0, None)

        def attention(q: gp.GPUArray, k: gp.GPUArray, v: gp.GPUArray, more: Extras = more) -> gp.GPUArray:
            out = gp.full(q.shape, float("nan"), q.dtype)
            call = Attention(q, k, v, out, simt.factor(0, q.shape[-1]), None, more)
            p = Problem.of(call)
            mma.run(p, call, block)
            return out

        def reference(q: Values, k: Values, v: Values, more: Extras = more, lengths: Any = lengths) -> Values:
            counts = lengths or [k.shape[2]] * len(q)
            each = zip(q, k, v, counts, strict=True)
            return np.stack([_attended(x, y, z, more.ahead, more.behind, count) for x, y, z, count in each])

        yield Call(attention, (q, k, v), reference)


FAMILIES = (Family("prompts", (mma.ATTENTION.source,), _variant, _calls),)
