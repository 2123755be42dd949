"""Llama 4 (text) beside its formula in float64: chunks, queries that grow with their position, rows weighed, pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llm import lora, tiny
from llm.stepping import logits_of
from llm.tiny_weights import CONFIGS, tensors

import pygpukit as gp
from pygpukit.core.errors import InvalidSpecError
from pygpukit.llm.models import ARCHITECTURES, detect_model_spec, read_config
from pygpukit.llm.weights import from_checkpoint

CONFIG = CONFIGS["llama4"]
IDS = [int(x) for x in np.random.default_rng(8).integers(0, 99, 90)]
Array = np.ndarray[Any, Any]


def rms(rows: Array, scale: Array | float = 1.0) -> Array:
    return np.asarray(rows / np.sqrt((rows * rows).mean(-1, keepdims=True) + CONFIG["rms_norm_eps"]) * scale)


def silu(gate: Array) -> Array:
    return np.asarray(gate / (1 + np.exp(-gate)))


def turned(heads: Array) -> Array:
    """(positions, heads, dim): neighbouring elements are the real and imaginary part of a number that is turned."""
    dim = heads.shape[-1]
    angles = np.arange(len(heads))[:, None] * CONFIG["rope_theta"] ** (-np.arange(0, dim, 2) / dim)
    numbers = (heads[..., ::2] + 1j * heads[..., 1::2]) * np.exp(1j * angles)[:, None]
    return np.stack([numbers.real, numbers.imag], axis=-1).reshape(heads.shape)


def attended(q: Array, k: Array, v: Array, chunk: int | None) -> Array:
    count, groups = len(q), q.shape[1] // k.shape[1]
    scores = np.einsum("qhd,khd->hqk", q, k.repeat(groups, 1)) / np.sqrt(q.shape[-1])
    places = np.arange(count)
    hidden = places[:, None] < places
    if chunk is not None:
        hidden |= places[:, None] // chunk != places // chunk
    scores[:, hidden] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(np.einsum("hqk,khd->qhd", weights / weights.sum(-1, keepdims=True), v.repeat(groups, 1)))


def reference(config: dict[str, Any], stored: dict[str, Array], ids: list[int]) -> Array:
    """Logits (tokens, vocabulary)."""
    w = {name: value.astype(np.float64) for name, value in stored.items()}
    heads, kv, dim = config["num_attention_heads"], config["num_key_value_heads"], config["head_dim"]
    x = w["model.embed_tokens.weight"][ids]
    for number in range(config["num_hidden_layers"]):
        at = f"model.layers.{number}"
        y = rms(x, w[f"{at}.input_layernorm.weight"])
        q, k, v = (
            (y @ w[f"{at}.self_attn.{name}_proj.weight"].T).reshape(len(ids), n, dim)
            for name, n in (("q", heads), ("k", kv), ("v", kv))
        )
        if config["no_rope_layers"][number]:
            q, k = rms(turned(q)), rms(turned(k))
        else:
            steps = np.floor((np.arange(len(ids)) + 1.0) / config["floor_scale"])
            q = q * (np.log1p(steps) * config["attn_scale"] + 1.0)[:, None, None]
        chunked = config["layer_types"][number] == "chunked_attention"
        out = attended(q, k, v, config["attention_chunk_size"] if chunked else None).reshape(len(ids), -1)
        x = x + out @ w[f"{at}.self_attn.o_proj.weight"].T
        y, part = rms(x, w[f"{at}.post_attention_layernorm.weight"]), f"{at}.feed_forward"
        shared = f"{part}.shared_expert" if f"{part}.router.weight" in w else part
        gate, up, down = (w[f"{shared}.{name}_proj.weight"].T for name in ("gate", "up", "down"))
        x = x + silu(y @ gate) * (y @ up) @ down
        if shared != part:
            logits = y @ w[f"{part}.router.weight"].T
            best = np.argsort(-logits, axis=1)[:, : config["num_experts_per_tok"]]
            for row, expert in ((place, int(e)) for place in range(len(ids)) for e in best[place]):
                own = y[row] / (1 + np.exp(-logits[row, expert]))
                gate, up = np.split(own @ w[f"{part}.experts.gate_up_proj"][expert], 2)
                x[row] += silu(gate) * up @ w[f"{part}.experts.down_proj"][expert]
    return np.asarray(rms(x, w["model.norm.weight"]) @ w["lm_head.weight"].T)


@pytest.mark.parametrize(("chunk", "each"), [(24, 1), (7, 2), (64, 1)])
def test_logits_are_those_of_float64_however_prompts_are_cut(chunk: int, each: int) -> None:
    config = {**CONFIG, "attention_chunk_size": chunk, "num_experts_per_tok": each}
    weights = tensors(config, seed=chunk)
    model = from_checkpoint(tiny.MemoryCheckpoint(config, weights), dtype="float32", context=128)
    expected = reference(config, weights, IDS)
    np.testing.assert_allclose(model.get_logits(model(IDS)[0]).to_numpy(), expected, atol=2e-5)
    whole, tokens = logits_of(model, IDS[:50], 20)
    np.testing.assert_allclose(whole[0], expected[49], atol=2e-5)
    np.testing.assert_allclose(whole[-1], reference(config, weights, [*IDS[:50], *tokens[:-1]])[-1], atol=2e-5)
    for size in (13, 31):
        cut, again = logits_of(model, IDS[:50], 20, chunk=size)
        assert (cut.tobytes(), again) == (whole.tobytes(), tokens)


def test_what_a_row_attends_to_is_in_its_chunk() -> None:
    model = tiny.model("llama4", context=128)
    chunk = np.arange(50) // 24
    for layer in range(4):
        weights = gp.llm.attention(model, IDS[:50], layer)
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
        assert (weights[:, chunk[:, None] != chunk].max() == 0) == (layer != 2)
    assert sorted(gp.llm.routing(model, IDS[:5])) == [1, 3]


def test_an_adapter_of_heads_in_pairs_is_that_of_the_merged_weights(tmp_path: Path) -> None:
    path, merged = lora.folder(tmp_path / "a", "llama4", 3, modules=("q_proj", "k_proj"))
    model = tiny.model("llama4", context=128)
    model.load_adapter("a", path)
    whole = from_checkpoint(
        tiny.MemoryCheckpoint(CONFIG, {key: value.astype(np.float32) for key, value in merged.items()}), context=128
    )
    ours, theirs = (
        m.stream(IDS[:40], 6, top=2, ignore_eos=True, **own).complete()
        for m, own in ((model, {"adapter": "a"}), (whole, {}))
    )
    assert ours.token_ids == theirs.token_ids
    for one, other in zip(ours.tokens, theirs.tokens, strict=True):
        assert one.logprob == pytest.approx(other.logprob, abs=2e-4)


def test_fields_have_the_defaults_of_the_reference() -> None:
    smallest = {"vocab_size": 99, "hidden_size": 256, "num_hidden_layers": 8, "num_attention_heads": 8}
    config = read_config(ARCHITECTURES["llama4_text"], smallest)
    assert (config.head_dim, config.kv_heads, config.rope_theta, config.norm_eps) == (128, 8, 500000.0, 1e-5)
    assert config.rotated == config.chunked == (True, True, True, False) * 2
    assert (config.attention_chunk, config.query_growth, config.query_floor) == (8192, 0.1, 8192.0)
    assert (config.ffn_size, config.expert_size, config.num_experts, config.num_experts_per_tok) == (16384, 8192, 16, 1)
    assert config.sparse == (True,) * 8
    assert config.plain_head_norms
    given = smallest | {"attn_temperature_tuning": 0, "use_qk_norm": False, "moe_layers": [3], "no_rope_layers": []}
    config = read_config(
        ARCHITECTURES["llama4_text"], given | {"attention_chunk_size": None, "no_rope_layer_interval": 2}
    )
    assert (config.query_growth, config.plain_head_norms, config.attention_chunk) == (0.0, False, None)
    assert config.sparse == tuple(number == 3 for number in range(8))
    assert config.rotated == (True, False) * 4
    assert detect_model_spec(tensors({**CONFIG, "interleave_moe_layer_step": 1})).name == "llama4_text"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("no_rope_layers", [1, 0]),
        ("no_rope_layers", [1, 1, 2, 1]),
        ("moe_layers", "all"),
        ("attn_temperature_tuning", "yes"),
        ("layer_types", ["sliding_attention"] * 4),
        ("attention_chunk_size", 0),
        ("floor_scale", 0),
        ("sliding_window", 9),
    ],
)
def test_what_cannot_be_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(InvalidSpecError) as error:
        read_config(ARCHITECTURES["llama4_text"], {**CONFIG, field: value})
    assert error.value.field == field
