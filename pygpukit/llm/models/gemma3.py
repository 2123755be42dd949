"""Gemma 3 (text): four norms a layer and one of each head, GeGLU, scaled embeddings; of six layers five see a window,
with a rotation of their own."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pygpukit.llm.models.architecture import Architecture, Rope
from pygpukit.llm.models.fields import LLAMA_FIELDS
from pygpukit.llm.models.llama import GGUF, WEIGHTS, attention, mlp
from pygpukit.llm.models.rope import rope_of
from pygpukit.models.fields import Fields
from pygpukit.models.gguf_names import GGUFNames
from pygpukit.nn.block import TransformerBlock

if TYPE_CHECKING:
    from pygpukit.llm.weights import LayerWeights
    from pygpukit.models.gguf_config import Metadata

_PATTERN = 6  # every so many layers one sees all keys
_LOCAL_THETA = 10000.0
_THETA = 1e6


def block(layer: LayerWeights) -> TransformerBlock:
    """One layer."""
    heads = attention(layer, layer.head_norm("q_norm"), layer.head_norm("k_norm"))
    norms = layer.norm("post_attn_norm"), layer.norm("post_mlp_norm")
    return TransformerBlock(layer.norm("attn_norm"), heads, layer.norm("mlp_norm"), mlp(layer), *norms)


def _config(fields: Fields) -> dict[str, Any]:
    width, layers = fields.integer("hidden_size") or 1, fields.integer("num_hidden_layers") or 1
    pattern = fields.integer("sliding_window_pattern", "_sliding_window_pattern") or _PATTERN
    config: dict[str, Any] = {
        "attention_scale": (fields.number("query_pre_attn_scalar") or 256.0) ** -0.5,
        "embedding_scale": math.sqrt(width),
        "local_rope_theta": _rope_parameters(fields, "sliding_attention").number("rope_theta")
        or fields.number("rope_local_base_freq")
        or _LOCAL_THETA,
    }
    if fields.get("layer_types") is None:
        config["windowed"] = tuple((number + 1) % pattern != 0 for number in range(layers))
    return config


def _rope(fields: Fields, default_theta: float) -> Rope:
    """Of the layers that see all keys: newer files have the parameters of each kind of layer."""
    parameters = _rope_parameters(fields, "full_attention")
    if not list(parameters):
        return rope_of(fields, default_theta)
    names = ("max_position_embeddings", "rope_theta")
    rope_fields = {name: fields.get(name) for name in names} | {
        "rope_parameters": {n: parameters.get(n) for n in parameters}
    }
    return rope_of(Fields(rope_fields), default_theta)


def _rope_parameters(fields: Fields, kind: str) -> Fields:
    """The rotation of one kind of layer; empty where the file has one for all."""
    where = "config.json: rope_parameters"
    return Fields(Fields(fields.object("rope_parameters") or {}, where).object(kind) or {}, f"{where}: {kind}")


def _gguf_config(data: Metadata) -> dict[str, Any]:
    return {
        "model_type": "gemma3_text",
        "hidden_act": None,
        "hidden_activation": "gelu_pytorch_tanh",
        "query_pre_attn_scalar": data.integer("attention.key_length"),
        "rope_theta": data.fields.number("rope.freq_base") or _THETA,
        "rope_local_base_freq": data.fields.number("rope.freq_base_swa"),
        "sliding_window_pattern": data.fields.integer("attention.sliding_window_pattern"),
    }


_READ = "hidden_activation query_pre_attn_scalar rope_local_base_freq sliding_window_pattern _sliding_window_pattern"
GEMMA3 = Architecture(
    name="gemma3_text",
    weights={
        **{role: name for role, name in WEIGHTS.items() if not role.endswith("_bias")},
        "q_norm": "model.layers.{}.self_attn.q_norm.weight",
        "k_norm": "model.layers.{}.self_attn.k_norm.weight",
        "post_attn_norm": "model.layers.{}.post_attention_layernorm.weight",
        "mlp_norm": "model.layers.{}.pre_feedforward_layernorm.weight",
        "post_mlp_norm": "model.layers.{}.post_feedforward_layernorm.weight",
    },
    block=block,
    fields=replace(
        LLAMA_FIELDS,
        read=LLAMA_FIELDS.read - {"attention_bias", "mlp_bias", "hidden_act"} | set(_READ.split()),
        neutral={
            **{name: values for name, values in LLAMA_FIELDS.neutral.items() if name != "query_pre_attn_scalar"},
            "attention_bias": (False,),
            "mlp_bias": (False,),
            "use_bidirectional_attention": (False,),
        },
        defaults={"rms_norm_eps": 1e-6, "tie_word_embeddings": True, "head_dim": 256, "num_key_value_heads": 4}
        | {"num_attention_heads": 8, "sliding_window": 4096, "max_position_embeddings": 131072},
    ),
    activation_field="hidden_activation",
    activations={"gelu_pytorch_tanh": "geglu"},
    recognised_by=("embed_tokens", "q_proj", "q_norm", "post_mlp_norm"),
    config=_config,
    rope=_rope,
    norm_eps=1e-6,
    norm_offset=1.0,
    rope_theta=_THETA,
    gguf={
        "gemma3": GGUFNames(
            {
                **GGUF,
                "attn_q_norm": "self_attn.q_norm",
                "attn_k_norm": "self_attn.k_norm",
                "post_attention_norm": "post_attention_layernorm",
                "ffn_norm": "pre_feedforward_layernorm",
                "post_ffw_norm": "post_feedforward_layernorm",
            },
            "Gemma3ForCausalLM",
            norm_offset=1.0,
            config=_gguf_config,
            read=frozenset({"rope.freq_base_swa", "attention.sliding_window_pattern"}),
        )
    },
)
