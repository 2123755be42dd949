"""TransformerConfig: sizes and constants of a transformer, which layers are made by."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

from pygpukit.core.errors import InvalidSpecError
from pygpukit.nn.mamba.state_space import StateSpace
from pygpukit.nn.moe.routing import Routing

# Of the feed-forward layer: GELU by tanh or exact; "silu" and "geglu" are gated, by SiLU and by GELU by tanh.
Activation = Literal["gelu", "gelu_erf", "silu", "geglu"]


@dataclass
class TransformerConfig:
    """Sizes and constants of a causal transformer. The documented fields first, then what newer models need.

    rope_scaling: the fields of Hugging Face's rope parameters ("rope_type", "factor", ...), None for plain rotation.
    sliding_window: how many keys a query sees, itself included; None for all before it. windowed: whether it counts, by
    layer; None where it counts in all. attention_chunk: positions of the chunks that a sequence is cut into, of which a
    query sees its own alone; chunked: whether that counts, by layer, None where it does in all. attention_scale: what
    scores are multiplied by, None for 1 / sqrt(head_dim); scaled_by_layer: they are divided by the number of the layer,
    counted from 1, too. attention_cap, logit_cap: c of the soft cap c * tanh(s / c) on scores and logits.
    embedding_scale, residual_scale, logit_scale: what embeddings, what layers add, and logits before their cap are
    multiplied by. local_rope_theta: base of the rotation, without scaling, in layers with a window; None where it is
    that of the others. rotated: whether heads are rotated, by layer; None where they are in all. plain_head_norms:
    heads that are rotated are normalised first, by an RMS norm without weights. query_growth, query_floor: queries of
    layers without rotation are multiplied by 1 + growth log(1 + floor((position + 1) / floor)); a growth of 0 does
    nothing. rotary_dim: elements of a head that are rotated, its first; None for all. num_experts: of each mixture,
    None where there are none; num_experts_per_tok: that a row goes to, as routing says; moe_intermediate_size: of an
    expert, None where it is intermediate_size; sparse: whether a layer has a mixture, by layer, None where all have.
    swiglu_limit, swiglu_alpha: of the experts' SwiGLU, as Gate has them; 0 for a plain one.
    state_space: of Mamba-2's layers, which have no attention.
    """

    vocab_size: int = 32000
    hidden_size: int = 2048
    num_layers: int = 22
    num_heads: int = 32
    num_kv_heads: int | None = None
    intermediate_size: int | None = None
    _head_dim: int | None = None
    num_experts: int | None = None
    num_experts_per_tok: int = 2
    moe_intermediate_size: int | None = None
    norm_type: Literal["rmsnorm", "layernorm"] = "rmsnorm"
    activation: Activation = "silu"
    use_rope: bool = True
    causal: bool = True
    max_position_embeddings: int = 2048
    norm_eps: float = 1e-5
    rope_theta: float = 10000.0
    tie_word_embeddings: bool = True
    rope_scaling: dict[str, Any] | None = field(default=None)
    sliding_window: int | None = None
    windowed: tuple[bool, ...] | None = None
    attention_scale: float | None = None
    scaled_by_layer: bool = False
    attention_cap: float | None = None
    logit_cap: float | None = None
    embedding_scale: float = 1.0
    residual_scale: float = 1.0
    logit_scale: float = 1.0
    local_rope_theta: float | None = None
    rotated: tuple[bool, ...] | None = None
    rotary_dim: int | None = None
    attention_chunk: int | None = None
    chunked: tuple[bool, ...] | None = None
    plain_head_norms: bool = False
    query_growth: float = 0.0
    query_floor: float = 8192.0
    routing: Routing = field(default_factory=Routing)
    sparse: tuple[bool, ...] | None = None
    state_space: StateSpace | None = None
    swiglu_limit: float = 0.0
    swiglu_alpha: float = 1.0

    def __post_init__(self) -> None:
        if self.num_kv_heads is None:
            self.num_kv_heads = self.num_heads
        if self.intermediate_size is None:
            self.intermediate_size = 4 * self.hidden_size
        for name in ("vocab_size", "hidden_size", "num_layers", "num_heads", "num_kv_heads", "intermediate_size"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise InvalidSpecError(f"{name} is {value!r}, must be an integer above 0", name)
        if self.num_heads % self.num_kv_heads:
            raise InvalidSpecError(
                f"num_heads is {self.num_heads}, must be a multiple of num_kv_heads, {self.num_kv_heads}", "num_heads"
            )
        if self._head_dim is None and self.hidden_size % self.num_heads:
            raise InvalidSpecError(
                f"hidden_size is {self.hidden_size}, must be a multiple of num_heads, {self.num_heads}, "
                "unless head_dim is given",
                "hidden_size",
            )
        if self.head_dim % 8 or not 8 <= self.head_dim <= 256:
            raise InvalidSpecError(f"head_dim is {self.head_dim}, must be a multiple of 8 of 8 to 256", "head_dim")
        if self.rotary_dim is not None and (self.rotary_dim % 2 or not 2 <= self.rotary_dim <= self.head_dim):
            raise InvalidSpecError(
                f"rotary_dim is {self.rotary_dim}, must be an even number of 2 to head_dim, {self.head_dim}",
                "rotary_dim",
            )
        if self.state_space is not None:
            self.state_space.check(self.num_heads)
        if self.moe_intermediate_size is None:
            self.moe_intermediate_size = self.intermediate_size
        for name in ("hidden_size", "intermediate_size", "moe_intermediate_size"):
            if getattr(self, name) % 8:  # kernels read rows of weights 16 bytes at a time
                raise InvalidSpecError(f"{name} is {getattr(self, name)}, must be a multiple of 8", name)

    @property
    def is_moe(self) -> bool:
        """True if it has experts."""
        return self.num_experts is not None

    @property
    def head_dim(self) -> int:
        """Elements of one head."""
        return self._head_dim if self._head_dim is not None else self.hidden_size // self.num_heads

    @property
    def kv_heads(self) -> int:
        """num_kv_heads, which is always set after construction."""
        return self.num_kv_heads or self.num_heads

    @property
    def ffn_size(self) -> int:
        """intermediate_size, which is always set after construction."""
        return self.intermediate_size or 4 * self.hidden_size

    @property
    def expert_size(self) -> int:
        """moe_intermediate_size, which is always set after construction."""
        return self.moe_intermediate_size or self.ffn_size

    def is_sparse(self, layer: int) -> bool:
        """True if that layer has a mixture of experts."""
        return self.is_moe and (self.sparse is None or self.sparse[layer])

    def window_of(self, layer: int) -> int | None:
        """Number of keys that a query of that layer sees; None for all."""
        return self.sliding_window if self.windowed is None or self.windowed[layer] else None

    def chunk_of(self, layer: int) -> int | None:
        """Positions of a chunk of that layer, of which a query sees its own alone; None for all."""
        return self.attention_chunk if self.chunked is None or self.chunked[layer] else None

    def rotates(self, layer: int) -> bool:
        """True if that layer's queries and keys are rotated."""
        return self.use_rope and (self.rotated is None or self.rotated[layer])

    def scale_of(self, layer: int) -> float:
        """The factor of that layer's scores."""
        scale = 1 / math.sqrt(self.head_dim) if self.attention_scale is None else self.attention_scale
        return scale / (layer + 1) if self.scaled_by_layer else scale

    @property
    def num_kv_groups(self) -> int:
        """Query heads that share a key head."""
        return self.num_heads // self.kv_heads
