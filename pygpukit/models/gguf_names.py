"""What GGUF calls things, as Hugging Face calls them: tensors and the fields of config.json."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_LLAMA = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_GPT2 = {
    "token_embd": "wte",
    "position_embd": "wpe",
    "output_norm": "ln_f",
    "output": "lm_head",
    "attn_norm": "ln_1",
    "attn_qkv": "attn.c_attn",
    "attn_output": "attn.c_proj",
    "ffn_norm": "ln_2",
    "ffn_up": "mlp.c_fc",
    "ffn_down": "mlp.c_proj",
}
# Architecture: the names of its parts, what a layer's names begin with, the class in config.json.
ARCHITECTURES: dict[str, tuple[dict[str, str], str, str]] = {
    "llama": (_LLAMA, "model.layers", "LlamaForCausalLM"),
    "mistral": (_LLAMA, "model.layers", "MistralForCausalLM"),
    "qwen2": (_LLAMA, "model.layers", "Qwen2ForCausalLM"),
    "qwen3": (_LLAMA, "model.layers", "Qwen3ForCausalLM"),
    "gpt2": (_GPT2, "h", "GPT2LMHeadModel"),
}
_NAME = re.compile(r"(?:blk\.(\d{1,6})\.)?([a-z_0-9]+)\.(weight|bias)")
_GPT2_TURNED = re.compile(r"\.(c_attn|c_proj|c_fc)\.weight$")


def tensor_name(architecture: str, name: str) -> str | None:
    """Hugging Face's name of a tensor; None where it has none."""
    parts, layers, _ = ARCHITECTURES[architecture]
    found = _NAME.fullmatch(name)
    if not found or found[2] not in parts:
        return None
    layer = f"{layers}.{found[1]}." if found[1] is not None else ""
    return f"{layer}{parts[found[2]]}.{found[3]}"


def is_turned(architecture: str, name: str) -> bool:
    """Whether Hugging Face keeps this matrix (its name) with inputs as rows, where GGUF has outputs as rows."""
    return architecture == "gpt2" and _GPT2_TURNED.search(name) is not None


def heads_paired(architecture: str, name: str, config: Mapping[str, Any]) -> int | None:
    """How many heads this tensor's rows belong to, where GGUF orders them for rope on neighbouring pairs; else None."""
    if architecture not in ("llama", "mistral"):
        return None
    if ".self_attn.q_proj." in name:
        return int(config["num_attention_heads"])
    return int(config["num_key_value_heads"]) if ".self_attn.k_proj." in name else None


def config_of(architecture: str, fields: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    """config.json as Hugging Face has it. shapes are those of the tensors, by Hugging Face's names.

    Raises LookupError, with a GGUF key, where a field is missing; ValueError where one is no sensible number.
    """

    def number(key: str, default: Any = None, kind: type = int) -> Any:
        value = fields.get(f"{architecture}.{key}", default)
        if value is None:
            raise LookupError(f"{architecture}.{key}")
        if type(value) not in (int, kind) or not 0 < value < 1 << 31:
            raise ValueError(f"{architecture}.{key} is {value!r}")
        return value

    width, heads = number("embedding_length"), number("attention.head_count")
    embedding = "wte.weight" if architecture == "gpt2" else "model.embed_tokens.weight"
    common = {
        "architectures": [ARCHITECTURES[architecture][2]],
        "model_type": architecture,
        "vocab_size": shapes[embedding][0] if embedding in shapes else number("vocab_size"),
        "tie_word_embeddings": "lm_head.weight" not in shapes,
    }
    for ours, key in (("bos", "bos"), ("eos", "eos"), ("pad", "padding")):
        if f"tokenizer.ggml.{key}_token_id" in fields:
            common[f"{ours}_token_id"] = fields[f"tokenizer.ggml.{key}_token_id"]
    if architecture == "gpt2":
        return common | {
            "n_positions": number("context_length"),
            "n_embd": width,
            "n_layer": number("block_count"),
            "n_head": heads,
            "n_inner": number("feed_forward_length", 4 * width),
            "layer_norm_epsilon": number("attention.layer_norm_epsilon", kind=float),
            "activation_function": "gelu_new",
        }
    bias = any(name.endswith("self_attn.q_proj.bias") for name in shapes)
    config = common | {
        "hidden_size": width,
        "intermediate_size": number("feed_forward_length"),
        "num_hidden_layers": number("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": number("attention.head_count_kv", heads),
        "head_dim": number("attention.key_length", fields.get(f"{architecture}.rope.dimension_count", width // heads)),
        "max_position_embeddings": number("context_length"),
        "rms_norm_eps": number("attention.layer_norm_rms_epsilon", kind=float),
        "rope_theta": number("rope.freq_base", 10000.0, float),
        "rope_scaling": _rope_scaling(architecture, fields),
        "hidden_act": "silu",
        "attention_bias": bias,
        "mlp_bias": False,
    }
    if f"{architecture}.attention.sliding_window" in fields:
        config["sliding_window"] = number("attention.sliding_window")
    return config


def _rope_scaling(architecture: str, fields: Mapping[str, Any]) -> dict[str, Any] | None:
    kind = fields.get(f"{architecture}.rope.scaling.type", "none")
    if kind == "none":
        return None
    factor = fields.get(f"{architecture}.rope.scaling.factor")
    if kind not in ("linear", "yarn") or type(factor) is not float or not factor > 0:
        raise ValueError(f"{architecture}.rope.scaling.type is {kind!r} with factor {factor!r}")
    scaling: dict[str, Any] = {"rope_type": kind, "factor": factor}
    original = fields.get(f"{architecture}.rope.scaling.original_context_length")
    return scaling | ({"original_max_position_embeddings": original} if original is not None else {})
