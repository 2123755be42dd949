"""The fields of config.json from the metadata of a GGUF file, by the keys that llama.cpp reads."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pygpukit.models.fields import Fields, FieldTable, check_fields
from pygpukit.models.gguf_names import ARCHITECTURES

_ROPE = "rope.scaling."
_KEYS = (
    "context_length embedding_length block_count feed_forward_length vocab_size attention.head_count "
    "attention.head_count_kv attention.key_length attention.value_length attention.layer_norm_rms_epsilon "
    "attention.layer_norm_epsilon attention.scale attention.sliding_window rope.freq_base rope.dimension_count "
    "rope.scale_linear rope.scaling.type rope.scaling.factor rope.scaling.original_context_length "
    "rope.scaling.yarn_beta_fast rope.scaling.yarn_beta_slow"
)
_READ = frozenset(_KEYS.split())
# What would change the arithmetic, and the values with which it does not.
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "rope.scaling.attn_factor": (1,),
    "rope.scaling.yarn_attn_factor": (1,),
    "rope.scaling.yarn_ext_factor": (1, -1),
    "rope.scaling.yarn_log_multiplier": (0,),
    "rope.dimension_sections": (),
    "rope.freq_base_swa": (),
    "attention.causal": (True,),
    "attention.clamp_kqv": (0,),
    "attention.max_alibi_bias": (0,),
    "attention.sliding_window_pattern": (),
    "attention.temperature_scale": (0, 1),
    "attention.output_scale": (0, 1),
    "attention.shared_kv_layers": (0,),
    "attention.q_lora_rank": (0,),
    "attention.kv_lora_rank": (0,),
    "attn_logit_softcapping": (0,),
    "final_logit_softcapping": (0,),
    "logit_scale": (0, 1),
    "embedding_scale": (0, 1),
    "residual_scale": (0, 1),
    "use_parallel_residual": (False,),
    "expert_count": (0,),
    "expert_used_count": (0,),
    "expert_shared_count": (0,),
    "leading_dense_block_count": (0,),
    "nextn_predict_layers": (0,),
    "pooling_type": (0,),
    "no_rope_layer_step": (0,),
    "swin_norm": (False,),
}
_HARMLESS = frozenset({"rope.scaling.finetuned", "tensor_data_layout"})


def config_of(
    architecture: str, fields: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]], where: str
) -> dict[str, Any]:
    """config.json as Hugging Face has it. shapes are those of the tensors, by Hugging Face's names.

    Raises InvalidSpecError naming a key that is missing, has no sensible value, or would change the arithmetic and is
    not implemented.
    """
    begin = f"{architecture}."
    own = {key.removeprefix(begin): value for key, value in fields.items() if key.startswith(begin)}
    check_fields(own, FieldTable(_READ, _NEUTRAL, _HARMLESS), f"{where}: {architecture}", architecture)
    given = Fields(own, f"{where}: {architecture}")

    def whole(key: str, default: int | None = None) -> int:
        value = given.whole(key)
        if value is None and default is None:
            raise given.missing(f"a {architecture} model", key)
        return value or default or 0

    def epsilon(key: str) -> float:
        value = given.number(key)
        if value is None:
            raise given.missing(f"a {architecture} model", key)
        return value

    width, heads = whole("embedding_length"), whole("attention.head_count")
    embedding = "wte.weight" if architecture == "gpt2" else "model.embed_tokens.weight"
    config: dict[str, Any] = {
        "architectures": [ARCHITECTURES[architecture][2]],
        "model_type": architecture,
        "vocab_size": shapes[embedding][0] if shapes.get(embedding) else whole("vocab_size"),
        "tie_word_embeddings": "lm_head.weight" not in shapes,
        **_tokens(fields),
    }
    dim = whole("attention.key_length", max(width // heads, 1))
    _check_heads(given, dim)
    if architecture == "gpt2":
        return config | {
            "n_positions": whole("context_length"),
            "n_embd": width,
            "n_layer": whole("block_count"),
            "n_head": heads,
            "n_inner": whole("feed_forward_length", 4 * width),
            "layer_norm_epsilon": epsilon("attention.layer_norm_epsilon"),
            "activation_function": "gelu_new",
        }
    return config | {
        "hidden_size": width,
        "intermediate_size": whole("feed_forward_length"),
        "num_hidden_layers": whole("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": whole("attention.head_count_kv", heads),
        "head_dim": dim,
        "max_position_embeddings": whole("context_length"),
        "rms_norm_eps": epsilon("attention.layer_norm_rms_epsilon"),
        "rope_theta": given.number("rope.freq_base") or 10000.0,
        "rope_scaling": _rope_scaling(given),
        "hidden_act": "silu",
        "attention_bias": any(".self_attn." in name and name.endswith(".bias") for name in shapes),
        "mlp_bias": any(".mlp." in name and name.endswith(".bias") for name in shapes),
        "sliding_window": given.whole("attention.sliding_window"),
    }


def ends(fields: Mapping[str, Any]) -> list[int]:
    """The tokens that end an answer, by their metadata: of the text, of a turn, of a message."""
    numbers = (fields.get(f"tokenizer.ggml.{kind}_token_id") for kind in ("eos", "eot", "eom"))
    return [number for number in dict.fromkeys(numbers) if type(number) is int]


def _tokens(fields: Mapping[str, Any]) -> dict[str, Any]:
    keys = {"bos": "bos", "eos": "eos", "pad": "padding"}
    named = {ours: f"tokenizer.ggml.{theirs}_token_id" for ours, theirs in keys.items()}
    return {f"{ours}_token_id": fields[key] for ours, key in named.items() if key in fields}


def _check_heads(given: Fields, dim: int) -> None:
    for key in ("attention.value_length", "rope.dimension_count"):
        if given.whole(key) not in (None, dim):
            raise given.error(f"which is not there yet: heads have {dim} elements, all of them rotated", key)
    scale = given.number("attention.scale", least=-1.0)
    if scale not in (None, 0.0) and not math.isclose(scale or 0.0, dim**-0.5, rel_tol=1e-6):
        raise given.error(f"which is not there yet: scores are multiplied by {dim**-0.5:.6g}", "attention.scale")


def _rope_scaling(given: Fields) -> dict[str, Any] | None:
    """As llama.cpp reads it: linear where only a factor is given, under its newer or its older name; 0 is none."""
    kind = given.text(_ROPE + "type") or "linear"
    if kind not in ("none", "linear", "yarn"):
        raise given.error("which is not there yet; it may be none, linear or yarn", _ROPE + "type")
    key = given.name_of(_ROPE + "factor", "rope.scale_linear")
    factor = 1.0 if given.get(key) == 0 else given.number(key) or 1.0
    if kind == "none" or factor == 1.0:
        return None
    scaling: dict[str, Any] = {"rope_type": kind, "factor": factor}
    if kind == "yarn":
        more = {
            "original_max_position_embeddings": given.whole(_ROPE + "original_context_length"),
            "beta_fast": given.number(_ROPE + "yarn_beta_fast"),
            "beta_slow": given.number(_ROPE + "yarn_beta_slow"),
        }
        scaling |= {name: value for name, value in more.items() if value is not None}
    return scaling
