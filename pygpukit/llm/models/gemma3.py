"""Gemma 3 (text): four norms a layer and one of each head, GeGLU, scaled embeddings; of six layers five see a window,
with a rotation of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pygpukit.llm.models.architecture import Architecture, Rope
from pygpukit.llm.models.gemma2 import GEMMA_FIELDS, GEMMA_GGUF, GEMMA_WEIGHTS, gemma_config, gguf_scalar
from pygpukit.llm.models.llama import attention, mlp
from pygpukit.llm.models.rope import rope_of
from pygpukit.models.fields import Fields
from pygpukit.models.gguf_names import GGUFNames
from pygpukit.nn.block import TransformerBlock

if TYPE_CHECKING:
    from pygpukit.llm.layer_weights import LayerWeights
    from pygpukit.models.gguf_config import Metadata

_PATTERN = 6  # every so many layers one sees all keys
_LOCAL_THETA = 10000.0
_THETA = 1e6
_LARGEST = 62  # layers of the 27B


def block(layer: LayerWeights) -> TransformerBlock:
    """One layer."""
    heads = attention(layer, layer.head_norm("q_norm"), layer.head_norm("k_norm"))
    norms = layer.norm("post_attn_norm"), layer.norm("post_mlp_norm")
    return TransformerBlock(layer.norm("attn_norm"), heads, layer.norm("mlp_norm"), mlp(layer), *norms)


def _config(fields: Fields) -> dict[str, Any]:
    layers = fields.integer("num_hidden_layers") or 1
    pattern = fields.integer("sliding_window_pattern", "_sliding_window_pattern") or _PATTERN
    config = gemma_config(fields) | {
        "local_rope_theta": _local_theta(fields) or fields.number("rope_local_base_freq") or _LOCAL_THETA,
    }
    if fields.get("layer_types") is None:
        config["windowed"] = tuple((number + 1) % pattern != 0 for number in range(layers))
    return config


def _local_theta(fields: Fields) -> float | None:
    """Of the layers that see a window of keys, whose rotation nothing scales."""
    parameters = _rope_parameters(fields, "sliding_attention")
    if parameters.text("rope_type", "type") not in (None, "default"):
        raise parameters.error(
            "which is not there yet for layers with a window; it may be 'default'", "rope_type", "type"
        )
    return parameters.number("rope_theta")


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
        "query_pre_attn_scalar": gguf_scalar(data, _LARGEST),
        "rope_theta": data.fields.number("rope.freq_base") or _THETA,
        "rope_local_base_freq": data.fields.number("rope.freq_base_swa"),
        "sliding_window_pattern": data.fields.integer("attention.sliding_window_pattern"),
    }


_READ = {"rope_local_base_freq", "sliding_window_pattern", "_sliding_window_pattern"}
GEMMA3 = Architecture(
    name="gemma3_text",
    weights={
        **GEMMA_WEIGHTS,
        "q_norm": "model.layers.{}.self_attn.q_norm.weight",
        "k_norm": "model.layers.{}.self_attn.k_norm.weight",
    },
    block=block,
    fields=replace(
        GEMMA_FIELDS,
        read=GEMMA_FIELDS.read | _READ,
        defaults={**GEMMA_FIELDS.defaults, "max_position_embeddings": 131072},
    ),
    activation_field="hidden_activation",
    activations={"gelu_pytorch_tanh": "geglu"},
    recognised_by=("embed_tokens", "q_proj", "q_norm", "mlp_norm", "post_mlp_norm"),
    config=_config,
    rope=_rope,
    norm_eps=1e-6,
    norm_offset=1.0,
    rope_theta=_THETA,
    gguf={
        "gemma3": GGUFNames(
            {**GEMMA_GGUF, "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"},
            "Gemma3ForCausalLM",
            norm_offset=1.0,
            config=_gguf_config,
            read=frozenset({"rope.freq_base_swa", "attention.sliding_window_pattern"}),
        )
    },
)
