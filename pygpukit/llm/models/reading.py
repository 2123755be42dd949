"""The configuration of a model from the fields of its config.json, by the table of its architecture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pygpukit.core.errors import InvalidSpecError
from pygpukit.llm.models.architecture import Architecture
from pygpukit.llm.models.tensors import BIASES
from pygpukit.models.fields import Fields, check_fields
from pygpukit.nn.config import Activation, TransformerConfig


def read_config(architecture: Architecture, config: Mapping[str, Any], where: str = "config.json") -> TransformerConfig:
    """The configuration of a model from the fields of its config.json. Raises InvalidSpecError naming the field.

    A field that would change what the model computes and is not implemented is refused; an unknown one is reported
    once, by a warning.
    """
    table, name = architecture.fields, architecture.name
    check_fields(config, table, where, name)
    absent = {key: value for key, value in table.defaults.items() if key not in config}
    if config.get("rope_parameters") is not None:  # newer files have the rotation there
        absent.pop("rope_scaling", None)
    fields = Fields({**config, **absent}, where)

    def need(*names: str) -> int:
        value = fields.integer(*names)
        if value is None:
            raise fields.missing(f"a {name} model", *names)
        return value

    layers = need("num_hidden_layers", "n_layer")
    window, windowed = _windows(fields, layers, "attention_chunk_size" in table.read)
    theta, scaling = architecture.rope(fields, architecture.rope_theta)
    common: dict[str, Any] = {
        "vocab_size": need("vocab_size"),
        "hidden_size": need("hidden_size", "n_embd"),
        "num_layers": layers,
        "num_heads": need("num_attention_heads", "n_head", "num_heads"),
        "num_kv_heads": fields.integer("num_key_value_heads"),
        "intermediate_size": fields.integer("intermediate_size", "n_inner"),
        "_head_dim": fields.integer("head_dim"),
        "norm_type": architecture.norm_type,
        "activation": _activation(architecture, fields),
        "use_rope": architecture.use_rope,
        "max_position_embeddings": _reach(need("max_position_embeddings", "n_positions"), scaling),
        "norm_eps": fields.number("rms_norm_eps", "layer_norm_epsilon") or architecture.norm_eps,
        "rope_theta": theta,
        "tie_word_embeddings": fields.flag("tie_word_embeddings") is True,
        "rope_scaling": scaling,
        "sliding_window": window,
        "windowed": windowed,
        "attention_scale": 1.0 if fields.flag("scale_attn_weights") is False else None,
        "scaled_by_layer": fields.flag("scale_attn_by_inverse_layer_idx") is True,
    }
    return TransformerConfig(**{**common, **architecture.config(fields)})


def biases(architecture: Architecture, config: Mapping[str, Any], where: str = "config.json") -> dict[str, bool | None]:
    """True or False for each field of BIASES: if the model has these; without what the configuration does not say."""
    table = architecture.fields
    fields = Fields({**table.defaults, **config}, where)
    return {"mlp_bias": False, **{name: fields.flag(name) is True for name in BIASES if name in table.read}}


def _reach(declared: int, scaling: dict[str, Any] | None) -> int:
    """Positions that a sequence can have: yarn's, whose files declare those of the training, are so many times more."""
    if scaling is None or scaling["rope_type"] != "yarn":
        return declared
    return max(declared, int(scaling["factor"] * scaling["original_max_position_embeddings"]))


def _activation(architecture: Architecture, fields: Fields) -> Activation:
    known, key = architecture.activations, architecture.activation_field
    name = fields.text(key)
    if name is None:
        return architecture.activation
    if name not in known:
        raise InvalidSpecError(
            f"the activation {name!r} of a {architecture.name} model is not there yet; it can be {' or '.join(known)}",
            key,
        )
    return known[name]


def _windows(fields: Fields, layers: int, has_chunks: bool) -> tuple[int | None, tuple[bool, ...] | None]:
    """The sliding window, and which layers have it: None for all. has_chunks: layers have chunks in their place."""
    window = fields.integer("sliding_window")
    kinds = fields.get("layer_types")
    if kinds is not None and (not isinstance(kinds, list) or len(kinds) != layers):
        raise fields.error(f"must be a list of the kinds of {layers} layers", "layer_types")
    known = "full_attention", "chunked_attention" if has_chunks else "sliding_attention"
    wrong = next((kind for kind in kinds or () if kind not in known), None)
    if wrong is not None:
        raise InvalidSpecError(
            f"layers of the kind {wrong!r} are not there yet; known are {' and '.join(known)}", "layer_types"
        )
    used = fields.flag("use_sliding_window")
    first = fields.integer("max_window_layers", minimum=0)
    if window is None or used is False:
        return None, None
    if kinds is not None:
        windowed = tuple(kind == "sliding_attention" for kind in kinds)
    else:
        windowed = tuple(used is None or number >= (first or 0) for number in range(layers))
    if not any(windowed):
        return None, None
    return window, None if all(windowed) else windowed
