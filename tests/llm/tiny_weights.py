"""Small random models of every architecture, as configurations and tensors from a seed; needs NumPy alone.

make_goldens.py gives the same to transformers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

BASE = {
    "vocab_size": 99,
    "hidden_size": 32,
    "intermediate_size": 56,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
}
LONGROPE = {
    "rope_type": "longrope",
    "short_factor": [1.0, 1.1, 1.25, 1.5, 1.75, 2.0],
    "long_factor": [1.5, 2.0, 3.0, 4.5, 7.0, 9.0],
}
CONFIGS: dict[str, dict[str, Any]] = {
    "llama": {**BASE, "model_type": "llama"},
    "qwen2": {**BASE, "model_type": "qwen2"},
    "qwen3": {**BASE, "model_type": "qwen3", "head_dim": 16},
    "llama3": {
        **BASE,
        "model_type": "llama",
        "rope_theta": 500000.0,
        "tie_word_embeddings": True,
        "rope_scaling": {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 128,
        },
    },
    "llama_linear": {**BASE, "model_type": "llama", "rope_scaling": {"rope_type": "linear", "factor": 2.0}},
    "llama_yarn": {
        **BASE,
        "model_type": "llama",
        "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128},
    },
    "mistral": {**BASE, "model_type": "mistral", "sliding_window": 24},
    "phi3": {**BASE, "model_type": "phi3", "sliding_window": 24, "pad_token_id": 0},
    "gemma3": {
        **{name: value for name, value in BASE.items() if name not in ("hidden_act", "rope_theta")},
        "model_type": "gemma3_text",
        "num_hidden_layers": 3,
        "head_dim": 16,
        "hidden_activation": "gelu_pytorch_tanh",
        "query_pre_attn_scalar": 20,
        "sliding_window": 24,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        "rope_theta": 500000.0,
        "rope_local_base_freq": 10000.0,
        "rope_scaling": {"rope_type": "linear", "factor": 2.0},
        "tie_word_embeddings": True,
    },
    # Phi-4-mini: three quarters of a head are rotated, by frequencies of their own within its first context and beyond.
    "phi4": {**BASE, "model_type": "phi3", "pad_token_id": 0, "partial_rotary_factor": 0.75, "rope_scaling": LONGROPE}
    | {"head_dim": 16, "hidden_size": 64, "original_max_position_embeddings": 32},
    # Its context is that of its training: the frequencies within.
    "phi4_short": {**BASE, "model_type": "phi3", "pad_token_id": 0, "partial_rotary_factor": 0.75}
    | {"head_dim": 16, "hidden_size": 64, "original_max_position_embeddings": 512, "rope_scaling": LONGROPE},
    "mistral_nemo": {**BASE, "model_type": "mistral", "sliding_window": None, "head_dim": 24},
    "qwen2_yarn": {
        **BASE,
        "model_type": "qwen2",
        "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128},
    },
    "gemma2": {
        **{name: value for name, value in BASE.items() if name != "hidden_act"},
        "model_type": "gemma2",
        "num_hidden_layers": 3,
        "head_dim": 16,
        "hidden_activation": "gelu_pytorch_tanh",
        "query_pre_attn_scalar": 20,
        "sliding_window": 24,
        "attn_logit_softcapping": 4.0,
        "final_logit_softcapping": 9.0,
        "tie_word_embeddings": True,
    },
    "smollm3": {
        **BASE,
        "model_type": "smollm3",
        "num_hidden_layers": 4,
        "no_rope_layer_interval": 3,
        "pad_token_id": 0,
    },
    "olmo2": {**BASE, "model_type": "olmo2"},
    "granite": {
        **BASE,
        "model_type": "granite",
        "embedding_multiplier": 3.0,
        "attention_multiplier": 0.21,
        "residual_multiplier": 0.4,
        "logits_scaling": 1.5,
    },
    "mixtral": {**BASE, "model_type": "mixtral", "num_local_experts": 5, "num_experts_per_tok": 2},
    # Its second layer is a dense one.
    "qwen3_moe": {**BASE, "model_type": "qwen3_moe", "head_dim": 16, "moe_intermediate_size": 24}
    | {"num_experts": 9, "num_experts_per_tok": 3, "norm_topk_prob": True}
    | {"num_hidden_layers": 3, "mlp_only_layers": [1]},
    "olmoe": {**BASE, "model_type": "olmoe", "num_experts": 8, "num_experts_per_tok": 4, "norm_topk_prob": False},
    "gpt_oss": {**BASE, "model_type": "gpt_oss", "num_local_experts": 6, "num_experts_per_tok": 3, "head_dim": 16}
    | {"sliding_window": 24, "swiglu_limit": 0.9, "num_hidden_layers": 3, "attention_bias": True}
    | {"layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}
    | {
        "rope_parameters": {
            "rope_type": "yarn",
            "rope_theta": 150000.0,
            "factor": 4.0,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "truncate": False,
            "original_max_position_embeddings": 128,
        }
    },
    # Its layers: chunked and dense, chunked and sparse, without rotation and dense, chunked and sparse.
    "llama4": {**BASE, "model_type": "llama4_text", "head_dim": 16, "num_hidden_layers": 4, "intermediate_size": 24}
    | {"intermediate_size_mlp": 56, "num_local_experts": 5, "num_experts_per_tok": 1, "interleave_moe_layer_step": 2}
    | {"no_rope_layers": [1, 1, 0, 1], "attention_chunk_size": 24, "floor_scale": 20, "attn_scale": 0.3}
    | {"layer_types": [f"{kind}_attention" for kind in ("chunked", "chunked", "full", "chunked")], "pad_token_id": 0},
    "mamba2": {
        "model_type": "mamba2",
        "vocab_size": 99,
        "hidden_size": 32,
        "num_hidden_layers": 3,
        "num_heads": 8,
        "head_dim": 8,
        "state_size": 12,
        "n_groups": 2,
        "conv_kernel": 4,
        "expand": 2,
        "chunk_size": 16,
        "tie_word_embeddings": False,
    },
    "gpt2": {
        "model_type": "gpt2",
        "vocab_size": 99,
        "n_embd": 32,
        "n_layer": 2,
        "n_head": 4,
        "n_positions": 512,
        "activation_function": "gelu_new",
        "layer_norm_epsilon": 1e-5,
        "tie_word_embeddings": True,
    },
}


def shapes(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """The tensors of a model of this configuration, under Hugging Face's names."""
    if config["model_type"] == "gpt2":
        return _gpt2_shapes(config)
    if config["model_type"] == "mamba2":
        return _mamba2_shapes(config)
    hidden, inner, vocab = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    dim = config.get("head_dim") or hidden // config["num_attention_heads"]
    q, kv = config["num_attention_heads"] * dim, config["num_key_value_heads"] * dim
    found = {"model.embed_tokens.weight": (vocab, hidden), "model.norm.weight": (hidden,)}
    if not config["tie_word_embeddings"]:
        found["lm_head.weight"] = (vocab, hidden)
    for i in range(config["num_hidden_layers"]):
        layer = f"model.layers.{i}"
        if config["model_type"] == "phi3":
            found[f"{layer}.self_attn.qkv_proj.weight"] = (q + 2 * kv, hidden)
            found[f"{layer}.self_attn.o_proj.weight"] = (hidden, q)
            found[f"{layer}.mlp.gate_up_proj.weight"] = (2 * inner, hidden)
            found[f"{layer}.mlp.down_proj.weight"] = (hidden, inner)
            found |= {f"{layer}.{name}_layernorm.weight": (hidden,) for name in ("input", "post_attention")}
            continue
        kind = config["model_type"]
        for name, rows in (("q", q), ("k", kv), ("v", kv)):
            found[f"{layer}.self_attn.{name}_proj.weight"] = (rows, hidden)
            if kind == "qwen2":
                found[f"{layer}.self_attn.{name}_proj.bias"] = (rows,)
        found[f"{layer}.self_attn.o_proj.weight"] = (hidden, q)
        if kind in ("qwen3", "qwen3_moe", "gemma3_text"):
            found |= {f"{layer}.self_attn.{name}_norm.weight": (dim,) for name in "qk"}
        if kind in ("olmo2", "olmoe"):
            found |= {f"{layer}.self_attn.{name}_norm.weight": (rows,) for name, rows in (("q", q), ("k", kv))}
        if kind in ("gemma2", "gemma3_text"):
            found |= {f"{layer}.{name}_feedforward_layernorm.weight": (hidden,) for name in ("pre", "post")}
        if kind == "llama4_text":
            found |= _llama4_shapes(config, layer, i)
        elif kind == "gpt_oss":
            found |= _gpt_oss_shapes(config, layer)
        elif kind in ("mixtral", "qwen3_moe", "olmoe") and i not in config.get("mlp_only_layers", ()):
            found |= _expert_shapes(config, layer)
        else:
            found |= {f"{layer}.mlp.{name}_proj.weight": (inner, hidden) for name in ("gate", "up")}
            found[f"{layer}.mlp.down_proj.weight"] = (hidden, inner)
        norms = ("post_attention", "post_feedforward") if kind == "olmo2" else ("input", "post_attention")
        found |= {f"{layer}.{name}_layernorm.weight": (hidden,) for name in norms}
    return found


def _expert_shapes(config: dict[str, Any], layer: str) -> dict[str, tuple[int, ...]]:
    hidden, count = config["hidden_size"], config.get("num_experts") or config["num_local_experts"]
    inner = config.get("moe_intermediate_size") or config["intermediate_size"]
    is_mixtral = config["model_type"] == "mixtral"
    part = f"{layer}.block_sparse_moe" if is_mixtral else f"{layer}.mlp"
    gate, up, down = ("w1", "w3", "w2") if is_mixtral else ("gate_proj", "up_proj", "down_proj")
    found: dict[str, tuple[int, ...]] = {f"{part}.gate.weight": (count, hidden)}
    for expert in range(count):
        found |= {f"{part}.experts.{expert}.{name}.weight": (inner, hidden) for name in (gate, up)}
        found[f"{part}.experts.{expert}.{down}.weight"] = (hidden, inner)
    return found


def _gpt_oss_shapes(config: dict[str, Any], layer: str) -> dict[str, tuple[int, ...]]:
    hidden, inner, count = config["hidden_size"], config["intermediate_size"], config["num_local_experts"]
    heads, dim = config["num_attention_heads"], config["head_dim"]
    experts, rows = f"{layer}.mlp.experts", {"q": heads * dim, "k": config["num_key_value_heads"] * dim}
    biases = {"q": rows["q"], "k": rows["k"], "v": rows["k"], "o": hidden}
    return {
        **{f"{layer}.self_attn.{name}_proj.bias": (size,) for name, size in biases.items()},
        f"{layer}.self_attn.sinks": (heads,),
        f"{layer}.mlp.router.weight": (count, hidden),
        f"{layer}.mlp.router.bias": (count,),
        f"{experts}.gate_up_proj": (count, hidden, 2 * inner),
        f"{experts}.gate_up_proj_bias": (count, 2 * inner),
        f"{experts}.down_proj": (count, inner, hidden),
        f"{experts}.down_proj_bias": (count, hidden),
    }


def _llama4_shapes(config: dict[str, Any], layer: str, number: int) -> dict[str, tuple[int, ...]]:
    hidden, inner, count = config["hidden_size"], config["intermediate_size"], config["num_local_experts"]
    part, dense = f"{layer}.feed_forward", (number + 1) % config["interleave_moe_layer_step"] != 0
    rows, place = (config["intermediate_size_mlp"], part) if dense else (inner, f"{part}.shared_expert")
    found: dict[str, tuple[int, ...]] = {f"{place}.{name}_proj.weight": (rows, hidden) for name in ("gate", "up")}
    found[f"{place}.down_proj.weight"] = (hidden, rows)
    if not dense:
        found[f"{part}.router.weight"] = (count, hidden)
        found[f"{part}.experts.gate_up_proj"] = (count, hidden, 2 * inner)
        found[f"{part}.experts.down_proj"] = (count, inner, hidden)
    return found


def _mamba2_shapes(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    hidden, vocab, heads = config["hidden_size"], config["vocab_size"], config["num_heads"]
    inner = heads * config["head_dim"]
    channels = inner + 2 * config["n_groups"] * config["state_size"]
    found = dict.fromkeys(("backbone.embeddings.weight", "lm_head.weight"), (vocab, hidden))
    found |= {"backbone.norm_f.weight": (hidden,)}
    for i in range(config["num_hidden_layers"]):
        layer = f"backbone.layers.{i}"
        found |= {
            f"{layer}.norm.weight": (hidden,),
            f"{layer}.mixer.in_proj.weight": (inner + channels + heads, hidden),
            f"{layer}.mixer.conv1d.weight": (channels, 1, config["conv_kernel"]),
            f"{layer}.mixer.conv1d.bias": (channels,),
            **{f"{layer}.mixer.{name}": (heads,) for name in ("dt_bias", "A_log", "D")},
            f"{layer}.mixer.norm.weight": (inner,),
            f"{layer}.mixer.out_proj.weight": (hidden, inner),
        }
    return found


def _gpt2_shapes(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    hidden, vocab = config["n_embd"], config["vocab_size"]
    found = {"transformer.wte.weight": (vocab, hidden), "transformer.wpe.weight": (config["n_positions"], hidden)}
    for name in ("ln_f", *(f"h.{i}.ln_{j}" for i in range(config["n_layer"]) for j in (1, 2))):
        found |= {f"transformer.{name}.{kind}": (hidden,) for kind in ("weight", "bias")}
    products = (
        ("attn.c_attn", hidden, 3),
        ("attn.c_proj", hidden, 1),
        ("mlp.c_fc", hidden, 4),
        ("mlp.c_proj", 4 * hidden, 0),
    )
    for i in range(config["n_layer"]):
        for name, rows, times in products:
            columns = hidden * times if times else hidden
            found[f"transformer.h.{i}.{name}.weight"] = (rows, columns)
            found[f"transformer.h.{i}.{name}.bias"] = (columns,)
    return found


def tensors(config: dict[str, Any], seed: int = 0) -> dict[str, np.ndarray]:
    """Random tensors, in the order of their names, so that another program makes the same."""
    random = np.random.default_rng(seed)
    found = {}
    for name, shape in sorted(shapes(config).items()):
        values = random.standard_normal(shape, dtype=np.float32)
        norm = len(shape) == 1 and name.endswith("weight")
        found[name] = 1 + 0.1 * values if norm else values * np.float32(0.3 if len(shape) > 1 else 0.1)
    return found
