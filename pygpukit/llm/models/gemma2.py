"""Gemma 2: four norms a layer, GeGLU, scaled embeddings, soft caps on scores and logits; of two layers one sees a
window."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pygpukit.llm.models.architecture import Architecture
from pygpukit.llm.models.fields import LLAMA_FIELDS
from pygpukit.llm.models.llama import GGUF, WEIGHTS, attention, mlp
from pygpukit.models.gguf_names import GGUFNames
from pygpukit.nn.block import TransformerBlock

if TYPE_CHECKING:
    from pygpukit.llm.layer_weights import LayerWeights
    from pygpukit.models.fields import Fields
    from pygpukit.models.gguf_config import Metadata

_WINDOW = 4096
_ATTENTION_CAP, _LOGIT_CAP = 50.0, 30.0
_LARGEST = 46  # layers of the 27B

GEMMA_WEIGHTS = {
    **{role: name for role, name in WEIGHTS.items() if not role.endswith("_bias")},
    "post_attn_norm": "model.layers.{}.post_attention_layernorm.weight",
    "mlp_norm": "model.layers.{}.pre_feedforward_layernorm.weight",
    "post_mlp_norm": "model.layers.{}.post_feedforward_layernorm.weight",
}
GEMMA_FIELDS = replace(
    LLAMA_FIELDS,
    read=LLAMA_FIELDS.read - {"attention_bias", "mlp_bias", "hidden_act"}
    | {"hidden_activation", "query_pre_attn_scalar"},
    neutral={
        **{name: values for name, values in LLAMA_FIELDS.neutral.items() if name != "query_pre_attn_scalar"},
        "attention_bias": (False,),
        "mlp_bias": (False,),
        "use_bidirectional_attention": (False,),
    },
    defaults={"rms_norm_eps": 1e-6, "tie_word_embeddings": True, "head_dim": 256, "num_key_value_heads": 4}
    | {"num_attention_heads": 8, "sliding_window": _WINDOW},
)
GEMMA_GGUF = {
    **GGUF,
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}


def block(layer: LayerWeights) -> TransformerBlock:
    """One layer."""
    norms = layer.norm("post_attn_norm"), layer.norm("post_mlp_norm")
    return TransformerBlock(layer.norm("attn_norm"), attention(layer), layer.norm("mlp_norm"), mlp(layer), *norms)


def gemma_config(fields: Fields) -> dict[str, Any]:
    """The fields of TransformerConfig that all of the family have."""
    return {
        "attention_scale": (fields.number("query_pre_attn_scalar") or 256.0) ** -0.5,
        "embedding_scale": math.sqrt(fields.integer("hidden_size") or 1),
    }


def _config(fields: Fields) -> dict[str, Any]:
    config = gemma_config(fields) | {
        "attention_cap": fields.number("attn_logit_softcapping"),
        "logit_cap": fields.number("final_logit_softcapping"),
    }
    if fields.get("layer_types") is None:
        config["windowed"] = tuple(number % 2 == 0 for number in range(fields.integer("num_hidden_layers") or 1))
    return config


def gguf_scalar(data: Metadata, largest: int) -> int:
    """query_pre_attn_scalar, which files do not keep: of the model with the most layers it is no head's size."""
    if data.integer("block_count") == largest:
        return data.integer("embedding_length") // data.integer("attention.head_count")
    return data.integer("attention.key_length")


def _gguf_config(data: Metadata) -> dict[str, Any]:
    return {
        "hidden_act": None,
        "hidden_activation": "gelu_pytorch_tanh",
        "query_pre_attn_scalar": gguf_scalar(data, _LARGEST),
        "sliding_window": data.integer("attention.sliding_window", _WINDOW),
        "attn_logit_softcapping": data.fields.number("attn_logit_softcapping") or _ATTENTION_CAP,
        "final_logit_softcapping": data.fields.number("final_logit_softcapping") or _LOGIT_CAP,
    }


_CAPS = {"attn_logit_softcapping", "final_logit_softcapping"}
GEMMA2 = Architecture(
    name="gemma2",
    weights=GEMMA_WEIGHTS,
    block=block,
    fields=replace(
        GEMMA_FIELDS,
        read=GEMMA_FIELDS.read | _CAPS,
        neutral={name: values for name, values in GEMMA_FIELDS.neutral.items() if name not in _CAPS},
        harmless=GEMMA_FIELDS.harmless | {"hidden_act", "sliding_window_size"},  # older names, which nobody reads
        defaults={
            **GEMMA_FIELDS.defaults,
            "max_position_embeddings": 8192,
            "attn_logit_softcapping": _ATTENTION_CAP,
            "final_logit_softcapping": _LOGIT_CAP,
        },
    ),
    activation_field="hidden_activation",
    activations={"gelu_pytorch_tanh": "geglu"},
    recognised_by=("embed_tokens", "q_proj", "mlp_norm", "post_mlp_norm"),
    config=_config,
    norm_eps=1e-6,
    norm_offset=1.0,
    gguf={
        "gemma2": GGUFNames(
            GEMMA_GGUF, "Gemma2ForCausalLM", norm_offset=1.0, config=_gguf_config, read=frozenset(_CAPS)
        )
    },
)
