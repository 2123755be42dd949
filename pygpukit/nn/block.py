"""TransformerBlock: attention and feed-forward, each added to what came in, with the norms before and after them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pygpukit.nn.attention.buffers import AttentionBuffers
from pygpukit.nn.attention.layer import Attention
from pygpukit.nn.batch import Batch
from pygpukit.nn.mlp import MLP
from pygpukit.nn.moe.layer import MoELayer
from pygpukit.nn.norm import Norm

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.nn.kv_cache import LayerCache
    from pygpukit.nn.linear.layer import LinearBF16


@dataclass
class TransformerBlock:
    """One layer of a model. attn_norm, mlp_norm: of what comes in, None where an architecture has none there (OLMo 2).
    post_attn_norm, post_mlp_norm: of what is added, where an architecture has them (Gemma)."""

    attn_norm: Norm | None
    attn: Attention
    mlp_norm: Norm | None
    mlp: MLP | MoELayer
    post_attn_norm: Norm | None = None
    post_mlp_norm: Norm | None = None

    @property
    def linears(self) -> tuple[LinearBF16, ...]:
        """Its products."""
        return self.attn.qkv_proj, self.attn.o_proj, *self.mlp.linears

    def forward(
        self,
        x: GPUArray,
        batch: Batch,
        cache: LayerCache,
        tables: tuple[GPUArray, GPUArray] | None,
        buffers: AttentionBuffers,
        between: GPUArray,
    ) -> None:
        """x, float32 (R, hidden), after this layer; written in place."""
        self.attn.forward(x, batch, self.attn_norm, cache, tables, buffers, self.post_attn_norm)
        self.mlp.forward(x, batch.start, self.mlp_norm, between, self.post_mlp_norm, batch.adapters)


LlamaBlock = TransformerBlock
