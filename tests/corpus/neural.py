"""Cases: softmax, normalisation, attention and a recurrent cell."""

from __future__ import annotations

import numpy as np

from corpus.case import FUNCTIONS, ROUNDING, Case, Values, blank, floats

CASES: list[Case] = []
Rng = np.random.Generator


def _softmax_of(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def _scores(rng: Rng, dtype: str):
    values = 3 * floats(rng, 5, 133, dtype=dtype)
    values[0, 0] = values[1, -1] = 15  # the greatest at either end
    return values


def _rows(dtype: str):
    return lambda rng: {
        "in_": _scores(rng, dtype), "out": blank((5, 133), dtype), "tops": blank(5, dtype), "columns": 133
    }  # fmt: skip


def _softmax_reference(in_, **_):
    return {"out": _softmax_of(in_.astype("float64")), "tops": in_.max(1)}


def _online(rng: Rng) -> Values:
    return {
        "in_": _scores(rng, "float32"), "out": blank((5, 133), "float32"), "tops": blank(5, "float32"), "rows": 5,
        "columns": 133,
    }  # fmt: skip


CASES += [
    Case("softmax<float>", 5, 64, _rows("float32"), _softmax_reference, exact=False, tolerance=1e-6, reason=FUNCTIONS),
    Case(
        "softmax<double>", 5, 64, _rows("float64"), _softmax_reference, exact=False, tolerance=1e-14, reason=FUNCTIONS
    ),
    Case("softmax_online", 2, 96, _online, _softmax_reference, exact=False, tolerance=1e-6, reason=FUNCTIONS),
]


def _layernorm(rng: Rng) -> Values:
    return {
        "in_": 2 + floats(rng, 4, 201), "weight": floats(rng, 201), "bias": floats(rng, 201),
        "out": blank((4, 201), "float32"),
        "epsilon": 1e-5, "columns": 201,
    }  # fmt: skip


def _layernorm_reference(in_, weight, bias, epsilon, **_):
    x = in_.astype("float64")
    x = x - x.mean(1, keepdims=True)
    return {"out": x / np.sqrt((x * x).mean(1, keepdims=True) + epsilon) * weight + bias}


def _rmsnorm(rng: Rng) -> Values:
    return {
        "in_": floats(rng, 7, 101), "weight": floats(rng, 101), "out": blank((7, 101), "float32"), "epsilon": 1e-5,
        "rows": 7,
        "columns": 101,
    }  # fmt: skip


def _rmsnorm_reference(in_, weight, epsilon, **_):
    x = in_.astype("float64")
    return {"out": x / np.sqrt((x * x).mean(1, keepdims=True) + epsilon) * weight}


CASES += [
    Case("layernorm", 4, 128, _layernorm, _layernorm_reference, tolerance=1e-6, reason=ROUNDING),
    Case("rmsnorm", 4, (32, 2), _rmsnorm, _rmsnorm_reference, exact=False, tolerance=1e-6, reason=FUNCTIONS),
]


def _heads(length: int):
    def inputs(rng: Rng) -> Values:
        q, k, v = (floats(rng, length, 16) for _ in range(3))
        return {
            "q": q, "k": k, "v": v, "out": blank((length, 16), "float32"), "tops": blank(length, "float32"),
            "scale": 0.5, "length": length,
        }  # fmt: skip

    return inputs


def _attention(causal: bool):
    def reference(q, k, v, scale, **_):
        scores = scale * (q.astype("float64") @ k.T)
        if causal:
            scores = np.where(np.tri(len(q), dtype=bool), scores, -np.inf)
        return {"out": _softmax_of(scores) @ v, "tops": scores.max(1)}

    return reference


CASES += [
    Case(
        "attention_naive", 43, 32, _heads(43), _attention(True), shared_bytes=4 * 43, exact=False,
        tolerance=2e-6,
        reason=FUNCTIONS,
    ),
    Case(
        "attention_flash<true>", 5, 8, _heads(37), _attention(True), exact=False, tolerance=2e-6, reason=FUNCTIONS
    ),
    Case(
        "attention_flash<false>", 5, 8, _heads(37), _attention(False), exact=False, tolerance=2e-6,
        reason=FUNCTIONS
    ),
]  # fmt: skip


def _lstm(rng: Rng) -> Values:
    return {
        "gates": floats(rng, 3, 4 * 35), "cell": floats(rng, 3, 35), "hidden": blank((3, 35), "float32"), "batch": 3,
        "units": 35
    }  # fmt: skip


def _lstm_reference(gates, cell, **_):
    entry, forget, candidate, output = np.split(gates.astype("float64"), 4, axis=1)

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    state = sigmoid(forget) * cell + sigmoid(entry) * np.tanh(candidate)
    return {"cell": state, "hidden": sigmoid(output) * np.tanh(state)}


CASES += [Case("lstm_cell", (2, 3), 32, _lstm, _lstm_reference, exact=False, tolerance=1e-6, reason=FUNCTIONS)]
