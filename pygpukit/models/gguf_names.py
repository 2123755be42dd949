"""What GGUF calls tensors, as Hugging Face calls them."""

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
