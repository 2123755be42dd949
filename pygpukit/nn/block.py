"""Layer: what a model asks of each of its layers; TransformerBlock: attention and feed-forward with their norms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pygpukit.nn.attention.buffers import AttentionBuffers
from pygpukit.nn.attention.layer import Attention
from pygpukit.nn.batch import Batch
from pygpukit.nn.mlp import MLP
from pygpukit.nn.moe.layer import MoELayer
from pygpukit.nn.norm import Norm

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.nn.kv_cache import LayerCache
    from pygpukit.nn.linear.blocks import Blocks
    from pygpukit.nn.linear.layer import LinearBF16


class Layer(Protocol):
    """A layer of a model: of attention, or one that keeps a state of each sequence (MambaBlock)."""

    @property
    def linears(self) -> tuple[LinearBF16, ...]:
        """All products."""

    @property
    def norms(self) -> list[Norm]:
        """The norms of rows."""

    def shares(self) -> Iterator[tuple[GPUArray | Blocks, float]]:
        """Each weight, and the share of it that a row reads."""

    def forward(
        self,
        x: GPUArray,
        batch: Batch,
        cache: Any,
        tables: tuple[GPUArray, GPUArray] | None,
        buffers: AttentionBuffers,
        between: GPUArray,
    ) -> None:
        """x, float32 (R, hidden), after this layer; written in place. cache: this layer's of the model's cache."""


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
        """All products."""
        return self.attn.qkv_proj, self.attn.o_proj, *self.mlp.linears

    @property
    def norms(self) -> list[Norm]:
        """The norms of rows."""
        own = self.attn_norm, self.mlp_norm, self.post_attn_norm, self.post_mlp_norm
        return [norm for norm in own if norm is not None]

    def shares(self) -> Iterator[tuple[GPUArray | Blocks, float]]:
        """Each weight, and the share of it that a row reads."""
        yield from ((array, 1.0) for norm in (*self.norms, *self.attn.norms) for array in norm.arrays)
        for linear in (self.attn.qkv_proj, self.attn.o_proj):
            yield from ((weight, 1.0) for weight in linear.parts)
        yield from self.mlp.shares()

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
