"""TransformerBlock: attention and feed-forward, each after a norm and added to what came in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pygpukit.llm.layers.attention import Attention, AttentionBuffers
from pygpukit.llm.layers.mlp import MLP
from pygpukit.llm.layers.norm import Norm
from pygpukit.llm.layers.rows import Rows

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.llm.cache import LayerCache


@dataclass
class TransformerBlock:
    """One layer of a model."""

    attn_norm: Norm
    attn: Attention
    mlp_norm: Norm
    mlp: MLP

    def forward(
        self,
        x: GPUArray,
        rows: Rows,
        cache: LayerCache,
        tables: tuple[GPUArray, GPUArray] | None,
        buffers: AttentionBuffers,
        between: GPUArray,
    ) -> None:
        """x, float32 (R, hidden), after this layer; written in place."""
        self.attn.forward(x, rows, self.attn_norm, cache, tables, buffers)
        self.mlp.forward(x, rows.first, self.mlp_norm, between)


LlamaBlock = TransformerBlock
