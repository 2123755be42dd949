"""Mixtures of experts: routes, the order of choices, and what experts add to rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sweep.engine import Call, Family, numbers

import pygpukit as gp
from pygpukit.nn.linear.layer import LinearBF16
from pygpukit.nn.linear.tensor import FORMS, Form
from pygpukit.nn.moe import experts, few_rows, routing

Array = np.ndarray[Any, Any]
_COUNT, _CHOSEN, _ROWS, _HIDDEN, _INNER = 5, 3, 7, 40, 24
_RULE = routing.Routing(normalised=True)


def _routes(dtype: str) -> Call:
    def weights(x: gp.GPUArray, weight: gp.GPUArray) -> gp.GPUArray:
        return routing.Router(weight, _CHOSEN, _RULE).route(x).weights

    def reference(x: Array, weight: Array) -> Array:
        logits = np.sort(x @ weight.T, axis=1)[:, ::-1][:, :_CHOSEN]
        shares = np.exp(logits - logits[:, :1])
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    return Call(weights, (numbers(dtype, _ROWS, _HIDDEN), numbers(dtype, _COUNT, _HIDDEN)), reference)


def _sums(dtype: str, choices: Array, shares: Array, weighs_rows: bool) -> Call:
    def add(x: gp.GPUArray, rows: gp.GPUArray, gate_up: gp.GPUArray, down: gp.GPUArray) -> gp.GPUArray:
        routed = routing.Routed(gp.from_numpy(choices), gp.from_numpy(shares))
        arranged = routing.Router(gp.zeros((_COUNT, _HIDDEN), dtype), _CHOSEN).arrange(routed.experts)
        total = x.clone()
        mixture = experts.Experts(_COUNT, LinearBF16(gate_up), LinearBF16(down), weighs_rows=weighs_rows)
        mixture.add(total, rows, routed, arranged, 0.5)
        return total.astype(dtype)  # between both products rows have that type, too

    def reference(x: Array, rows: Array, gate_up: Array, down: Array) -> Array:
        before, after = shares.astype(np.float64), np.ones(shares.shape)
        before, after = (before, after) if weighs_rows else (after, before)
        own = rows[:, None] * before[:, :, None]
        both = np.einsum("rjnh,rjh->rjn", gate_up.reshape(_COUNT, 2 * _INNER, _HIDDEN)[choices], own)
        gate, up = both[..., :_INNER], both[..., _INNER:]
        between = gate / (1 + np.exp(-gate)) * up
        made = np.einsum("rjhn,rjn->rjh", down.reshape(_COUNT, _HIDDEN, _INNER)[choices], between)
        return np.asarray(x + 0.5 * np.einsum("rj,rjh->rh", after, made))

    shapes = (_ROWS, _HIDDEN), (_COUNT * 2 * _INNER, _HIDDEN), (_COUNT * _HIDDEN, _INNER)
    return Call(add, (numbers("float32", _ROWS, _HIDDEN), *(numbers(dtype, *shape) for shape in shapes)), reference)


def _few(dtype: str, form: Form) -> Call:
    counts = [5, 0, 11, 1, 2]

    def product(x: gp.GPUArray, weight: gp.GPUArray) -> gp.GPUArray:
        out = gp.ones((sum(counts), _INNER), dtype)
        few_rows.product(x, weight, gp.from_numpy(np.array(counts, np.int32)), out, form)
        return out

    def reference(x: Array, weight: Array) -> Array:
        own = weight.reshape(_COUNT, _INNER, _HIDDEN)[np.repeat(np.arange(_COUNT), counts)]
        return np.asarray(np.einsum("rk,rnk->rn", x, own))

    return Call(product, (numbers(dtype, sum(counts), _HIDDEN), numbers(dtype, _COUNT * _INNER, _HIDDEN)), reference)


def _calls(_: str) -> Iterator[Call]:
    rng = np.random.default_rng(39)
    choices = np.array([rng.permutation(_COUNT)[:_CHOSEN] for _ in range(_ROWS)], np.int32)
    shares = rng.random((_ROWS, _CHOSEN), np.float32)

    def sources(chosen: gp.GPUArray) -> gp.GPUArray:
        return routing.Router(gp.zeros((_COUNT, _HIDDEN)), _CHOSEN).arrange(chosen).sources

    yield Call(sources, (gp.from_numpy(choices),), lambda chosen: np.argsort(chosen.reshape(-1), kind="stable"))
    for dtype in ("float32", "float16", "bfloat16"):
        yield _routes(dtype)
        yield _sums(dtype, choices, shares, weighs_rows=False)
        # Powers of two, so that rows lose nothing where they are weighed and rounded.
        yield _sums(dtype, choices, np.exp2(np.round(np.log2(shares))), weighs_rows=True)
        for form in FORMS if dtype != "float32" else ():
            yield _few(dtype, form)


FAMILIES = (
    Family("experts", (routing.SOURCE.source, experts.SOURCE.source, few_rows.SOURCE.source), lambda _: "all", _calls),
)
