"""The fields of config.json from the metadata of a GGUF file, by the keys that llama.cpp reads."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pygpukit.models.fields import Fields, FieldTable, check_fields
from pygpukit.models.gguf_names import GGUFNames

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
    "expert_shared_feed_forward_length": (0,),
    "expert_group_count": (0, 1),
    "expert_weights_scale": (0, 1),
    "expert_gating_func": (0, 1),
    "leading_dense_block_count": (0,),
    "nextn_predict_layers": (0,),
    "pooling_type": (0,),
    "no_rope_layer_step": (0,),
    "swin_norm": (False,),
}
_HARMLESS = frozenset({"rope.scaling.finetuned", "tensor_data_layout"})


class Metadata:
    """The metadata of one architecture, without its name before them, and the shapes of tensors by Hugging Face's
    names."""

    def __init__(
        self, architecture: str, fields: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]], where: str
    ) -> None:
        begin = f"{architecture}."
        self.architecture, self.shapes, self.all = architecture, shapes, fields
        self.own = {key.removeprefix(begin): value for key, value in fields.items() if key.startswith(begin)}
        self.fields = Fields(self.own, f"{where}: {architecture}")
        self.where = f"{where}: {architecture}"

    def integer(self, key: str, default: int | None = None) -> int:
        """A whole number of 1 or more. Raises InvalidSpecError where it is missing and has no default."""
        value = self.fields.integer(key)
        if value is None and default is None:
            raise self.fields.missing(f"a {self.architecture} model", key)
        return value or default or 0

    def epsilon(self, key: str) -> float:
        """A number above 0. Raises InvalidSpecError where it is missing."""
        value = self.fields.number(key)
        if value is None:
            raise self.fields.missing(f"a {self.architecture} model", key)
        return value


def config_of(
    architecture: str,
    names: GGUFNames,
    fields: Mapping[str, Any],
    shapes: Mapping[str, tuple[int, ...]],
    where: str,
) -> dict[str, Any]:
    """config.json as Hugging Face has it. shapes are those of the tensors, by Hugging Face's names.

    Raises InvalidSpecError naming a key that is missing, has no sensible value, or would change the arithmetic and is
    not implemented.
    """
    data = Metadata(architecture, fields, shapes, where)
    neutral = {key: values for key, values in _NEUTRAL.items() if key not in names.read}
    check_fields(data.own, FieldTable(_READ | names.read, neutral, _HARMLESS), data.where, architecture)
    width, heads = data.integer("embedding_length"), data.integer("attention.head_count")
    dim = data.integer("attention.key_length", max(width // heads, 1))
    embedding = str(names.tensor_name("token_embd.weight"))
    config: dict[str, Any] = {
        "architectures": [names.class_name],
        "model_type": architecture,
        "vocab_size": shapes[embedding][0] if embedding in shapes else data.integer("vocab_size"),
        "tie_word_embeddings": "lm_head.weight" not in shapes,
        **_tokens(fields),
    }
    _check_heads(data.fields, dim, names.read)
    if names.is_llama:
        config |= _llama(data, width, heads, dim)
    return config if names.config is None else config | names.config(data)


def _llama(data: Metadata, width: int, heads: int, dim: int) -> dict[str, Any]:
    """The fields of LLaMA and its kin."""
    return {
        "hidden_size": width,
        "intermediate_size": data.integer("feed_forward_length"),
        "num_hidden_layers": data.integer("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": data.integer("attention.head_count_kv", heads),
        "head_dim": dim,
        "max_position_embeddings": data.integer("context_length"),
        "rms_norm_eps": data.epsilon("attention.layer_norm_rms_epsilon"),
        "rope_theta": data.fields.number("rope.freq_base") or 10000.0,
        "rope_scaling": rope_scaling(data.fields),
        "hidden_act": "silu",
        "attention_bias": any(".self_attn." in name and name.endswith(".bias") for name in data.shapes),
        "mlp_bias": any(".mlp." in name and name.endswith(".bias") for name in data.shapes),
        "sliding_window": data.fields.integer("attention.sliding_window", minimum=0) or None,
    }


def ends(fields: Mapping[str, Any]) -> list[int]:
    """The tokens that end an answer, by their metadata: of the text, of a turn, of a message."""
    numbers = (fields.get(f"tokenizer.ggml.{kind}_token_id") for kind in ("eos", "eot", "eom"))
    return [number for number in dict.fromkeys(numbers) if type(number) is int]


def _tokens(fields: Mapping[str, Any]) -> dict[str, Any]:
    keys = {"bos": "bos", "eos": "eos", "pad": "padding"}
    named = {ours: f"tokenizer.ggml.{theirs}_token_id" for ours, theirs in keys.items()}
    return {f"{ours}_token_id": fields[key] for ours, key in named.items() if key in fields}


def _check_heads(fields: Fields, dim: int, read: frozenset[str]) -> None:
    for key in ("attention.value_length", "rope.dimension_count"):
        if key not in read and fields.integer(key) not in (None, dim):
            raise fields.error(f"which is not there yet: heads have {dim} elements, all of them rotated", key)
    scale = None if "attention.scale" in read else fields.number("attention.scale", minimum=-1.0)
    if scale not in (None, 0.0) and not math.isclose(scale or 0.0, dim**-0.5, rel_tol=1e-6):
        raise fields.error(f"which is not there yet: scores are multiplied by {dim**-0.5:.6g}", "attention.scale")


def rope_scaling(fields: Fields) -> dict[str, Any] | None:
    """As llama.cpp reads it: linear where only a factor is given, under its newer or its older name; 0 is none."""
    kind = fields.text(_ROPE + "type") or "linear"
    if kind not in ("none", "linear", "yarn"):
        raise fields.error("which is not there yet; it may be none, linear or yarn", _ROPE + "type")
    key = fields.name_of(_ROPE + "factor", "rope.scale_linear")
    factor = 1.0 if fields.get(key) == 0 else fields.number(key) or 1.0
    if kind == "none" or factor == 1.0:
        return None
    scaling: dict[str, Any] = {"rope_type": kind, "factor": factor}
    if kind == "yarn":
        more = {
            "original_max_position_embeddings": fields.integer(_ROPE + "original_context_length"),
            "beta_fast": fields.number(_ROPE + "yarn_beta_fast"),
            "beta_slow": fields.number(_ROPE + "yarn_beta_slow"),
        }
        scaling |= {name: value for name, value in more.items() if value is not None}
    return scaling
