"""Mamba-2: layers of a convolution and a scan, which keep a state of each sequence in the place of keys and values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pygpukit.core.errors import InvalidSpecError
from pygpukit.llm.models.architecture import Architecture
from pygpukit.llm.models.fields import LLAMA_FIELDS, names
from pygpukit.models.fields import FieldTable
from pygpukit.nn.mamba.block import MambaBlock
from pygpukit.nn.mamba.state_space import StateSpace

if TYPE_CHECKING:
    from pygpukit.llm.layer_weights import LayerWeights
    from pygpukit.models.fields import Fields

_POSITIONS = 1 << 20  # that a sequence can have: a state has no bound, tables of blocks have


def block(layer: LayerWeights) -> MambaBlock:
    """One layer."""
    space = layer.config.state_space
    assert space is not None
    return MambaBlock(layer.norm("norm"), layer.mixer(space))


def _config(fields: Fields) -> dict[str, Any]:
    heads, dim, hidden = (fields.integer(name) or 1 for name in ("num_heads", "head_dim", "hidden_size"))
    expand = fields.number("expand") or 2.0
    if heads * dim != int(expand * hidden):
        raise InvalidSpecError(
            f"num_heads is {heads} and head_dim {dim}, must be {int(expand * hidden)} together: expand times "
            f"hidden_size, {expand:g} times {hidden}",
            "num_heads",
        )
    bounds = fields.get("time_step_limit")
    if not isinstance(bounds, list | tuple) or len(bounds) != 2 or any(type(x) not in (int, float) for x in bounds):
        raise fields.error("must be a list of two numbers", "time_step_limit")
    low, high = map(float, bounds)
    if not 0 <= low <= high:
        raise fields.error("must be two numbers of 0 or more, in their order", "time_step_limit")
    space = StateSpace(
        fields.integer("state_size") or 1, fields.integer("n_groups") or 1, fields.integer("conv_kernel") or 2,
        low, high,
    )  # fmt: skip
    return {"num_kv_heads": heads, "intermediate_size": heads * dim, "state_space": space}


MAMBA2 = Architecture(
    name="mamba2",
    weights={
        "embed_tokens": "backbone.embeddings.weight",
        "norm": "backbone.layers.{}.norm.weight",
        "in_proj": "backbone.layers.{}.mixer.in_proj.weight",
        "in_proj_bias": "backbone.layers.{}.mixer.in_proj.bias",
        "conv": "backbone.layers.{}.mixer.conv1d.weight",
        "conv_bias": "backbone.layers.{}.mixer.conv1d.bias",
        "step_bias": "backbone.layers.{}.mixer.dt_bias",
        "rate_logs": "backbone.layers.{}.mixer.A_log",
        "skip": "backbone.layers.{}.mixer.D",
        "mixer_norm": "backbone.layers.{}.mixer.norm.weight",
        "out_proj": "backbone.layers.{}.mixer.out_proj.weight",
        "out_proj_bias": "backbone.layers.{}.mixer.out_proj.bias",
        "final_norm": "backbone.norm_f.weight",
        "lm_head": "lm_head.weight",
    },
    block=block,
    fields=FieldTable(
        names(
            "vocab_size hidden_size num_hidden_layers num_heads head_dim state_size n_groups conv_kernel expand "
            "time_step_limit layer_norm_epsilon hidden_act tie_word_embeddings max_position_embeddings use_bias "
            "use_conv_bias"
        ),
        {**LLAMA_FIELDS.neutral, "rms_norm": (True,), "norm_before_gate": (False,)},
        # How tensors are drawn before training, and how the reference cuts its scan.
        LLAMA_FIELDS.harmless
        | {"time_step_rank", "time_step_min", "time_step_max", "time_step_floor", "rescale_prenorm_residual"}
        | {"chunk_size", "residual_in_fp32"},
        {"num_heads": 128, "head_dim": 64, "state_size": 128, "n_groups": 8, "conv_kernel": 4, "expand": 2}
        | {"time_step_limit": [0.0, math.inf], "layer_norm_epsilon": 1e-5, "tie_word_embeddings": False}
        | {"max_position_embeddings": _POSITIONS, "use_bias": False, "use_conv_bias": True},
    ),
    activation_field="hidden_act",
    activations={"silu": "silu", "swish": "silu"},
    config=_config,
    use_rope=False,
)
