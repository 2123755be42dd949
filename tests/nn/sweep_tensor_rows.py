"""Products of few rows on tensor cores: every form, with and without a norm, and with the largest logits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import erf
from typing import Any

import numpy as np
from sweep.engine import Call, Family, numbers

import pygpukit as gp
from pygpukit.nn.linear import tensor
from pygpukit.nn.linear.layer import LinearBF16
from pygpukit.nn.norm import Norm

Array = np.ndarray[Any, Any]
_DTYPES = {"pk::half_t": "float16", "pk::bfloat16_t": "bfloat16", "float": "float32"}
_K, _N = 200, 41


def _variant(expression: str) -> str:
    """Types of the weight and of the result, and the epilogue: of logits the plain ones."""
    weight, out, epilogue = (*re.split(r"[<>]|, ", expression)[1:4],)
    return f"{weight} float pk::kStore" if "norm_logits" in expression else f"{weight} {out} {epilogue}"


def _finished(result: Array, epilogue: str) -> Array:
    if epilogue == "kSilu":
        gate, up = np.split(result, 2, axis=1)
        return np.asarray(gate / (1 + np.exp(-gate)) * up)
    if epilogue == "kGelu":
        return np.asarray(result / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (result + 0.044715 * result**3))))
    if epilogue == "kGeluErf":
        return np.asarray(result / 2 * (1 + np.vectorize(erf)(result / np.sqrt(2))))
    return result + (1 if epilogue == "kAdd" else 0)


def _normalised(x: Array, centered: bool) -> Array:
    x = x - x.mean(1, keepdims=True) if centered else x
    return np.asarray(x / np.sqrt((x * x).mean(1, keepdims=True)))


def _calls(variant: str) -> Iterator[Call]:
    weight_type, out_type, epilogue = variant.split()
    types, dtype, pairs = f"{weight_type}, {out_type}", _DTYPES[weight_type], epilogue == "pk::kSilu"
    linear = LinearBF16(numbers(dtype, _N * (1 + pairs), _K), numbers(dtype, _N * (1 + pairs)))
    random = np.random.default_rng(3)
    scale = 2.0 ** random.integers(-1, 2, _K)
    signs = random.permutation(np.repeat([-3.0, 3.0], _K // 2))  # normalised they are 1 and -1: nothing is rounded
    norm_weight = gp.from_numpy(scale.astype("float32")).astype(dtype)
    norms = [None, Norm(norm_weight, None, eps=0.0), Norm(norm_weight, gp.zeros(_K, dtype), "layernorm", eps=0.0)]

    def product(form: Any, norm: Norm | None, best: bool) -> Any:
        def function(x: gp.GPUArray, weight: gp.GPUArray, bias: gp.GPUArray) -> gp.GPUArray:
            out = gp.ones((x.shape[0], _N), _DTYPES[out_type])
            call, bests = linear._call(x.shape[0], _N, norm), linear.new_bests() if best else None
            if isinstance(form, tensor.Form):
                tensor.some_rows(types, epilogue, x, (weight, bias, out), call, False, form)
            else:
                tensor.one_row(types, epilogue, form, x, (weight, bias, out), call, norm, False, bests)
            return out

        return function

    def reference(norm: Norm | None) -> Any:
        def function(x: Array, weight: Array, bias: Array) -> Array:
            x = x if norm is None else _normalised(x, norm.centered == "true") * scale
            return _finished(x @ weight.T + bias, epilogue.removeprefix("pk::"))

        return function

    operands = (linear.weight, linear.bias)
    for form in tensor.FORMS:
        yield Call(product(form, None, False), (numbers(dtype, 9, _K), *operands), reference(None))  # type: ignore[arg-type]
    for stages in tensor._STAGES[pairs]:
        for norm in norms:
            x = gp.from_numpy(signs.astype("float32")[None]) if norm else numbers(dtype, 1, _K)
            for best in (False, True) if norm and variant.endswith("float pk::kStore") else (False,):
                yield Call(product(stages, norm, best), (x, *operands), reference(norm))  # type: ignore[arg-type]


FAMILIES = (Family("few rows on tensor cores", (tensor.SOURCE.source,), _variant, _calls),)
