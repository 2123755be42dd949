"""Gemma 3: its own weights beside a float64 reading of the file, and its configuration in the forms that files have."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from llm import tiny
from llm.tiny_weights import CONFIGS, tensors

import pygpukit as gp
from pygpukit.core.errors import InvalidSpecError
from pygpukit.llm.weights import from_checkpoint

LAYERS, HEADS, DIM, WINDOW, EPS = 18, 4, 256, 512, 1e-6  # gemma-3-270m
STEPS = 5


class Gemma:
    """Logits in float64 and plain NumPy, from the tensors as the `gguf` package reads them."""

    def __init__(self, file: Path) -> None:
        tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(file).tensors}
        self._w = {
            name: gguf.quants.dequantize(tensor.data, tensor.tensor_type)
            for name, tensor in tensors.items()
            if name != "token_embd.weight"
        }
        embedding = tensors["token_embd.weight"]
        self._embedding = gguf.quants.dequantize(embedding.data, embedding.tensor_type)  # float32: 0.7 GB

    def logits(self, ids: list[int]) -> np.ndarray[Any, Any]:
        """After the last token."""
        count = len(ids)
        x = self._embedding[ids].astype(np.float64)
        x *= math.sqrt(x.shape[1])
        for layer in range(LAYERS):
            y = self._norm(x, f"blk.{layer}.attn_norm")
            x = x + self._norm(self._attention(y, layer, count), f"blk.{layer}.post_attention_norm")
            y = self._norm(x, f"blk.{layer}.ffn_norm")
            gate, up = (self._product(y, f"blk.{layer}.ffn_{part}") for part in ("gate", "up"))
            gate = 0.5 * gate * (1 + np.tanh(math.sqrt(2 / math.pi) * (gate + 0.044715 * gate**3)))
            x = x + self._norm(self._product(gate * up, f"blk.{layer}.ffn_down"), f"blk.{layer}.post_ffw_norm")
        last = self._norm(x[-1:], "output_norm")[0]
        return np.concatenate([part.astype(np.float64) @ last for part in np.array_split(self._embedding, 16)])

    def _attention(self, y: np.ndarray, layer: int, count: int) -> np.ndarray:
        is_global = (layer + 1) % 6 == 0
        rates = (1e6 if is_global else 1e4) ** (-np.arange(0, DIM, 2) / DIM)
        angles = np.arange(count)[:, None, None] * rates

        def rotated(part: str, heads: int) -> np.ndarray:
            rows = self._product(y, f"blk.{layer}.attn_{part}").reshape(count, heads, DIM)
            rows = self._norm(rows, f"blk.{layer}.attn_{part}_norm")
            a, b = rows[..., : DIM // 2], rows[..., DIM // 2 :]
            cos, sin = np.cos(angles), np.sin(angles)
            return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

        q, k, v = rotated("q", HEADS), rotated("k", 1)[:, 0], self._product(y, f"blk.{layer}.attn_v")
        scores = np.einsum("qhd,kd->hqk", q, k) / math.sqrt(DIM)
        back = np.arange(count)[:, None] - np.arange(count)
        scores[:, (back < 0) | (back >= (count if is_global else WINDOW))] = -np.inf
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        out = np.einsum("hqk,kd->qhd", weights / weights.sum(-1, keepdims=True), v)
        return self._product(out.reshape(count, -1), f"blk.{layer}.attn_output")

    def _norm(self, rows: np.ndarray, name: str) -> np.ndarray:
        return rows / np.sqrt((rows * rows).mean(-1, keepdims=True) + EPS) * self._w[f"{name}.weight"]

    def _product(self, rows: np.ndarray, name: str) -> np.ndarray:
        return rows @ self._w[f"{name}.weight"].astype(np.float64).T


@pytest.mark.turns(3)
def test_its_own_weights_give_what_a_float64_reading_of_the_file_gives() -> None:
    """Fetched once into the model cache (241 MB)."""
    model = gp.llm.load("gemma-3-270m", progress=False, context=64, dtype="float32")
    assert model.tokenizer is not None
    ids = model.tokenizer.encode("Water boils at")
    answer = model.stream(ids, STEPS, top=2).complete()
    assert model.tokenizer.decode(answer.token_ids) == " 100 degrees"
    reference = Gemma(gp.models.get("gemma-3-270m"))
    for number, token in enumerate(answer.tokens):
        text = [*ids, *answer.token_ids[:number]]
        expected, ours = reference.logits(text), model.get_logits(model(text)[0][-1:]).to_numpy()[0]
        assert token.token_id == expected.argmax() == ours.argmax()
        assert np.abs(ours - expected).max() < 0.02  # of logits from -30 to 30; x is rounded to 16 bits before products
        best = np.sort(expected)[-2:]
        assert token.margin == pytest.approx(best[1] - best[0], abs=0.02)


def logits_of(**changes: Any) -> bytes:
    """Of the small model, with fields of its configuration changed; None takes one out."""
    config = {name: value for name, value in {**CONFIGS["gemma3"], **changes}.items() if value is not None}
    model = from_checkpoint(tiny.MemoryCheckpoint(config, tensors(config)), dtype="float32")  # type: ignore[arg-type]
    return (
        model.get_logits(model([int(x) for x in np.random.default_rng(3).integers(0, 99, 60)])[0]).to_numpy().tobytes()
    )


def test_older_and_newer_forms_of_its_configuration_mean_the_same() -> None:
    plain = logits_of()
    kinds = {
        "full_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 500000.0},
        "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
    }
    assert logits_of(rope_parameters=kinds, rope_scaling=None, rope_theta=None, rope_local_base_freq=None) == plain
    assert logits_of(layer_types=None, sliding_window_pattern=2) == plain
    assert logits_of(rope_local_base_freq=None) == plain  # its default


@pytest.mark.parametrize(
    "changes",
    [
        {"query_pre_attn_scalar": 16},
        {"rope_local_base_freq": 5000.0},
        {"rope_theta": 1e6},
        {"rope_scaling": None},
        {"layer_types": None},
        {"sliding_window": 25},
    ],
)
def test_every_field_of_it_counts(changes: dict[str, Any]) -> None:
    assert logits_of(**changes) != logits_of()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("final_logit_softcapping", 30.0),
        ("attn_logit_softcapping", 50.0),
        ("use_bidirectional_attention", True),
        ("hidden_activation", "silu"),
        ("attention_bias", True),
    ],
)
def test_what_is_not_there_yet_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(InvalidSpecError, match="not there yet") as error:
        logits_of(**{field: value})
    assert field in str(error.value) or error.value.field == field
