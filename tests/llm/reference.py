"""LLaMA and its kin, Mixtral, and GPT-2, in float64 and plain NumPy: what the logits of a configuration are."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray]


def logits(config: dict[str, Any], tensors: Arrays, ids: list[int]) -> np.ndarray:
    """(tokens, vocabulary). config: Hugging Face's fields; divisors, window and windowed say what follows of others."""
    w = {name.removeprefix("transformer."): value.astype(np.float64) for name, value in tensors.items()}
    return (_gpt2 if config["model_type"] == "gpt2" else _llama)(config, w, np.asarray(ids))


def _llama(config: dict[str, Any], w: Arrays, ids: np.ndarray) -> np.ndarray:
    heads, kv = config["num_attention_heads"], config["num_key_value_heads"]
    dim = config.get("head_dim") or config["hidden_size"] // heads
    count, eps = len(ids), config["rms_norm_eps"]
    x = w["model.embed_tokens.weight"][ids]
    rates = config["rope_theta"] ** (-np.arange(0, dim, 2) / dim) / np.asarray(config.get("divisors", 1.0))
    angles = np.arange(count)[:, None] * rates
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]

    def norm(rows: np.ndarray, scale: np.ndarray) -> np.ndarray:
        return rows / np.sqrt((rows * rows).mean(-1, keepdims=True) + eps) * scale

    def turned(rows: np.ndarray) -> np.ndarray:
        a, b = rows[..., : dim // 2], rows[..., dim // 2 :]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}."

        def linear(name: str, rows: np.ndarray, at: str = at) -> np.ndarray:
            return rows @ w[f"{at}{name}.weight"].T + w.get(f"{at}{name}.bias", 0.0)

        y = norm(x, w[at + "input_layernorm.weight"])
        q, k, v = (
            linear(f"self_attn.{name}_proj", y).reshape(count, n, dim)
            for name, n in (("q", heads), ("k", kv), ("v", kv))
        )
        if at + "self_attn.q_norm.weight" in w:
            q, k = norm(q, w[at + "self_attn.q_norm.weight"]), norm(k, w[at + "self_attn.k_norm.weight"])
        window = config.get("window") if config.get("windowed", [True] * (layer + 1))[layer] else None
        out = _attended(turned(q), turned(k), v, 1 / math.sqrt(dim), window)
        x = x + linear("self_attn.o_proj", out)
        y = norm(x, w[at + "post_attention_layernorm.weight"])
        if at + "block_sparse_moe.gate.weight" in w:
            x = x + _mixture(y, w, at + "block_sparse_moe.", config["num_experts_per_tok"])
            continue
        gate = linear("mlp.gate_proj", y)
        x = x + linear("mlp.down_proj", gate / (1 + np.exp(-gate)) * linear("mlp.up_proj", y))
    return norm(x, w["model.norm.weight"]) @ w.get("lm_head.weight", w["model.embed_tokens.weight"]).T


def _mixture(rows: np.ndarray, w: Arrays, at: str, chosen: int) -> np.ndarray:
    """Mixtral's experts, a row at a time."""
    out = np.zeros_like(rows)
    for row, x in enumerate(rows):
        scores = w[at + "gate.weight"] @ x
        best = np.argsort(-scores, kind="stable")[:chosen]
        weights = np.exp(scores[best] - scores[best].max())
        for expert, weight in zip(best, weights / weights.sum(), strict=True):
            gate, down, up = (w[f"{at}experts.{expert}.{name}.weight"] for name in ("w1", "w2", "w3"))
            inner = gate @ x
            out[row] += weight * (down @ (inner / (1 + np.exp(-inner)) * (up @ x)))
    return out


def _gpt2(config: dict[str, Any], w: Arrays, ids: np.ndarray) -> np.ndarray:
    heads, count, width = config["n_head"], len(ids), config["n_embd"]

    def norm(rows: np.ndarray, name: str) -> np.ndarray:
        rows = rows - rows.mean(-1, keepdims=True)
        rows = rows / np.sqrt((rows * rows).mean(-1, keepdims=True) + config["layer_norm_epsilon"])
        return rows * w[name + ".weight"] + w[name + ".bias"]

    def linear(rows: np.ndarray, name: str) -> np.ndarray:
        return rows @ w[name + ".weight"] + w[name + ".bias"]

    x = w["wte.weight"][ids] + w["wpe.weight"][:count]
    for layer in range(config["n_layer"]):
        at = f"h.{layer}."
        q, k, v = np.split(linear(norm(x, at + "ln_1"), at + "attn.c_attn"), 3, -1)
        scale = 1 / math.sqrt(width // heads) if config.get("scale_attn_weights", True) else 1.0
        if config.get("scale_attn_by_inverse_layer_idx"):
            scale /= layer + 1
        parts = (part.reshape(count, heads, -1) for part in (q, k, v))
        x = x + linear(_attended(*parts, scale, None), at + "attn.c_proj")
        inner = linear(norm(x, at + "ln_2"), at + "mlp.c_fc")
        if config["activation_function"] == "gelu":
            inner = 0.5 * inner * (1 + np.vectorize(math.erf)(inner / math.sqrt(2)))
        else:
            inner = 0.5 * inner * (1 + np.tanh(math.sqrt(2 / math.pi) * (inner + 0.044715 * inner**3)))
        x = x + linear(inner, at + "mlp.c_proj")
    return norm(x, "ln_f") @ w.get("lm_head.weight", w["wte.weight"]).T


def _attended(q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float, window: int | None) -> np.ndarray:
    count, groups = len(q), q.shape[1] // k.shape[1]
    scores = np.einsum("qhd,khd->hqk", q, k.repeat(groups, 1)) * scale
    back = np.arange(count)[:, None] - np.arange(count)
    scores[:, (back < 0) | (back >= (window or count))] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return np.einsum("hqk,khd->qhd", weights, v.repeat(groups, 1)).reshape(count, -1)
