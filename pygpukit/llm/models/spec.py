"""ModelSpec: what one architecture calls its tensors and which of the shared layers it is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from pygpukit.llm.models.fields import LLAMA_FIELDS
from pygpukit.models.fields import FieldTable


@dataclass(frozen=True)
class ModelSpec:
    """Names of an architecture's tensors, "{}" standing for the number of the layer, and its kinds of layers.

    None: it has no such tensor. A bias that is named but not in the file is left out (Qwen2 without biases).
    ignored: tensors that files may have and the architecture does not use, "{}" as above. fields: what becomes of the
    fields of config.json.
    """

    name: str
    embed_tokens: str
    position_embed: str | None
    lm_head: str | None
    final_norm: str
    final_norm_bias: str | None
    attn_norm: str
    attn_norm_bias: str | None
    q_proj: str
    k_proj: str
    v_proj: str
    o_proj: str
    q_bias: str | None
    k_bias: str | None
    v_bias: str | None
    o_bias: str | None
    q_norm: str | None
    k_norm: str | None
    mlp_norm: str
    mlp_norm_bias: str | None
    fc1: str | None
    fc1_bias: str | None
    fc2: str | None
    fc2_bias: str | None
    gate_proj: str | None
    up_proj: str | None
    down_proj: str | None
    moe_gate: str | None = None
    expert_gate_proj: str | None = None
    expert_up_proj: str | None = None
    expert_down_proj: str | None = None
    norm_type: Literal["rmsnorm", "layernorm"] = "rmsnorm"
    activation: Literal["gelu", "silu"] = "silu"
    use_rope: bool = True
    use_qk_norm: bool = False
    use_position_embed: bool = False
    qkv_combined: bool = False
    weight_transpose: bool = False
    is_moe: bool = False
    default_norm_eps: float = 1e-5
    default_rope_theta: float = 10000.0
    hf_model_type: str = ""
    gate_bias: str | None = None
    up_bias: str | None = None
    down_bias: str | None = None
    ignored: tuple[str, ...] = ()
    fields: FieldTable = field(default=LLAMA_FIELDS, compare=False)
