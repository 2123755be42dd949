"""Small random encoders as folders of sentence-transformers, and BERT's arithmetic in float64 by NumPy alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

CONFIG: dict[str, Any] = {
    "model_type": "bert",
    "hidden_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 80,
    "hidden_act": "gelu",
    "max_position_embeddings": 40,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
    "pad_token_id": 0,
    "position_embedding_type": "absolute",
}
WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat dog sleep run ##s ##ing ##er on in a mat tree . , ! h ##e ##l ##o 1 ##2"
VOCABULARY = WORDS.split()
MODULES = [
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
]


def tensors(config: dict[str, Any], seed: int) -> dict[str, np.ndarray[Any, Any]]:
    """Random weights under BERT's names, with a pooler that vectors do not use."""
    draw = np.random.default_rng(seed)
    width, inner = config["hidden_size"], config["intermediate_size"]

    def some(*shape: int, scale: float = 0.3) -> np.ndarray[Any, Any]:
        return (draw.standard_normal(shape) * scale).astype(np.float32)

    found = {
        "embeddings.word_embeddings.weight": some(config["vocab_size"], width),
        "embeddings.position_embeddings.weight": some(config["max_position_embeddings"], width),
        "embeddings.token_type_embeddings.weight": some(config["type_vocab_size"], width),
        "pooler.dense.weight": some(width, width),
        "pooler.dense.bias": some(width),
    }
    norms = ["embeddings.LayerNorm"]
    for number in range(config["num_hidden_layers"]):
        place = f"encoder.layer.{number}"
        for name, rows, columns in (
            ("attention.self.query", width, width),
            ("attention.self.key", width, width),
            ("attention.self.value", width, width),
            ("attention.output.dense", width, width),
            ("intermediate.dense", inner, width),
            ("output.dense", width, inner),
        ):
            found[f"{place}.{name}.weight"] = some(rows, columns)
            found[f"{place}.{name}.bias"] = some(rows)
        norms += [f"{place}.attention.output.LayerNorm", f"{place}.output.LayerNorm"]
    for norm in norms:
        found[f"{norm}.weight"], found[f"{norm}.bias"] = 1 + some(width), some(width)
    return found


def folder(
    path: Path,
    seed: int = 1,
    *,
    pooling: str = "mean_tokens",
    normalises: bool = True,
    prefix: str = "",
    old_names: bool = False,
    **config: Any,
) -> tuple[Path, dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    """(folder, config.json, tensors) of a random encoder."""
    path.mkdir(exist_ok=True)
    fields = {**CONFIG, "vocab_size": len(VOCABULARY), **config}
    found = tensors(fields, seed)

    def stored(name: str) -> str:
        if old_names:
            name = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        return prefix + name

    save_file({stored(name): tensor for name, tensor in found.items()}, path / "model.safetensors")
    (path / "config.json").write_text(json.dumps(fields))
    (path / "vocab.txt").write_text("".join(f"{word}\n" for word in VOCABULARY))
    (path / "modules.json").write_text(json.dumps(MODULES if normalises else MODULES[:2]))
    (path / "1_Pooling").mkdir(exist_ok=True)
    modes = {f"pooling_mode_{mode}": mode == pooling for mode in ("cls_token", "mean_tokens", "max_tokens")}
    (path / "1_Pooling" / "config.json").write_text(
        json.dumps({"word_embedding_dimension": fields["hidden_size"], **modes})
    )
    (path / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 24, "do_lower_case": False}))
    return path, fields, found


def states(config: dict[str, Any], w: dict[str, np.ndarray[Any, Any]], ids: list[int]) -> np.ndarray[Any, Any]:
    """float64 (tokens, hidden): the last layer's, by the paper's formulas."""
    heads, width, eps = config["num_attention_heads"], config["hidden_size"], config["layer_norm_eps"]
    first = 0 if config["model_type"] == "bert" else config["pad_token_id"] + 1

    def norm(x: np.ndarray[Any, Any], name: str) -> np.ndarray[Any, Any]:
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) / np.sqrt(variance + eps) * w[f"{name}.weight"] + w[f"{name}.bias"]

    def dense(x: np.ndarray[Any, Any], name: str) -> np.ndarray[Any, Any]:
        return x @ w[f"{name}.weight"].astype(np.float64).T + w[f"{name}.bias"]

    def split(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return x.reshape(len(ids), heads, width // heads).transpose(1, 0, 2)

    x = w["embeddings.word_embeddings.weight"][ids].astype(np.float64)
    x = x + w["embeddings.position_embeddings.weight"][first : first + len(ids)]
    x = norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    for number in range(config["num_hidden_layers"]):
        place = f"encoder.layer.{number}"
        q, k, v = (split(dense(x, f"{place}.attention.self.{part}")) for part in ("query", "key", "value"))
        scores = q @ k.transpose(0, 2, 1) / np.sqrt(width // heads)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        seen = (weights / weights.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(len(ids), width)
        x = norm(x + dense(seen, f"{place}.attention.output.dense"), f"{place}.attention.output.LayerNorm")
        between = gelu(dense(x, f"{place}.intermediate.dense"), config["hidden_act"])
        x = norm(x + dense(between, f"{place}.output.dense"), f"{place}.output.LayerNorm")
    return x


def gelu(x: np.ndarray[Any, Any], kind: str) -> np.ndarray[Any, Any]:
    """By the error function, or by tanh."""
    from math import erf, pi, sqrt

    if kind == "gelu":
        return 0.5 * x * (1 + np.vectorize(erf)(x / sqrt(2)))
    return 0.5 * x * (1 + np.tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))
