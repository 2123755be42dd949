"""Attention: queries, keys and values of each row, rotated, and what the row sees of the KV cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygpukit.core.elsewhere import Elsewhere
from pygpukit.nn.attention.buffers import AttentionBuffers
from pygpukit.nn.attention.decode import decode, split_fields
from pygpukit.nn.attention.host import attend_on_host
from pygpukit.nn.attention.kv_write import SOURCE, write_kv
from pygpukit.nn.attention.prefill import prefill
from pygpukit.nn.attention.query_growth import grow_queries
from pygpukit.nn.batch import Batch
from pygpukit.nn.config import TransformerConfig
from pygpukit.nn.linear.joining import joined, part
from pygpukit.nn.linear.layer import LinearBF16
from pygpukit.nn.linear.residual import add_product, project_residual
from pygpukit.nn.norm import Norm
from pygpukit.ops import host

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.nn.kv_cache import LayerCache
    from pygpukit.nn.rope import Tables

_CALL = SOURCE.structure("AttentionCall")
_FIXED_CACHE, _BY_HAND = "pygpukit.compat.decoding.fixed_cache", "pygpukit.compat.decoding.attention"


class Attention:
    """Causal attention with grouped key heads. Weights: (out, in); q_norm and k_norm: over each head (Qwen3), or over
    all of a row's heads together (OLMo 2), by the size of their weights.

    The three products before are one: qkv_proj holds the rows of q, k and v. layer: its number, where layers differ.
    sinks: float32 (heads,), a score of each head that takes its part of the weights and has no value (gpt-oss).
    """

    def __init__(
        self,
        q_proj: LinearBF16 | GPUArray,
        k_proj: LinearBF16 | GPUArray | None,
        v_proj: LinearBF16 | GPUArray | None,
        o_proj: LinearBF16 | GPUArray,
        config: TransformerConfig,
        q_bias: GPUArray | None = None,
        k_bias: GPUArray | None = None,
        v_bias: GPUArray | None = None,
        o_bias: GPUArray | None = None,
        q_norm: Norm | None = None,
        k_norm: Norm | None = None,
        layer: int = 0,
        sinks: GPUArray | None = None,
    ) -> None:
        self.config, self.layer, self.sinks = config, layer, sinks
        self.norms = [norm for norm in (q_norm, k_norm) if norm is not None]
        of_rows = q_norm is not None and q_norm.weight.shape != (config.head_dim,)
        self.q_norm, self.k_norm = (None, None) if of_rows else (q_norm, k_norm)
        self._row_norms = self.norms if of_rows else []
        self.window, self.scale, self.cap = config.window_of(layer), config.scale_of(layer), config.attention_cap
        self.chunk = config.chunk_of(layer)
        self.query_growth = 0.0 if config.rotates(layer) else config.query_growth
        self.head_dim, self.num_heads, self.num_kv_heads = config.head_dim, config.num_heads, config.kv_heads
        self.num_kv_groups = config.num_kv_groups
        self.q_dim = self.num_heads * self.head_dim
        self.k_dim = self.v_dim = self.num_kv_heads * self.head_dim
        self.qkv_proj = joined([q_proj, k_proj, v_proj], [q_bias, k_bias, v_bias])
        self.o_proj = joined([o_proj], [o_bias])

    def forward(
        self,
        x: GPUArray,
        batch: Batch,
        norm: Norm | None,
        cache: LayerCache,
        tables: Tables | None,
        buffers: AttentionBuffers,
        post_norm: Norm | None = None,
    ) -> None:
        """x += residual_scale * attention(norm(x)), after post_norm: x float32 (R, hidden). The cache has the keys."""
        self.compute(x, batch, norm, cache, tables, buffers)
        scale = self.config.residual_scale
        add_product(x, self.o_proj, buffers.out, batch.start, post_norm, scale, batch.adapters)

    def compute(
        self,
        x: GPUArray,
        batch: Batch,
        norm: Norm | None,
        cache: LayerCache,
        tables: Tables | None,
        buffers: AttentionBuffers,
    ) -> None:
        """buffers.out: the attention of norm(x), before the last product. The cache has the keys."""
        project_residual(x, self.qkv_proj, buffers.qkv, batch.start, norm, adapters=batch.adapters)
        begin = 0
        for row_norm in self._row_norms:  # queries first
            part = buffers.qkv[:, begin : begin + row_norm.weight.size]
            row_norm(part, out=part)
            begin = self.q_dim
        if self.query_growth:
            grow_queries(self, batch, buffers.qkv)
        self.write_and_attend(batch, cache, tables, buffers)

    @property
    def q_proj(self) -> LinearBF16:
        """The rows of qkv_proj that give queries."""
        return part(self.qkv_proj, 0, self.q_dim)

    @property
    def k_proj(self) -> LinearBF16:
        """The rows of qkv_proj that give keys."""
        return part(self.qkv_proj, self.q_dim, self.q_dim + self.k_dim)

    @property
    def v_proj(self) -> LinearBF16:
        """The rows of qkv_proj that give values."""
        return part(self.qkv_proj, self.q_dim + self.k_dim, self.q_dim + self.k_dim + self.v_dim)

    def write_and_attend(
        self, batch: Batch, cache: LayerCache, tables: Tables | None, buffers: AttentionBuffers
    ) -> None:
        """Keys and values of the rows into the cache, and what the rows see of it: of a decode step in one launch,
        unless its rows see each other's keys."""
        if batch.decodes and not batch.follows and not host.computes():
            decode(self, batch, cache, tables, buffers, writes_kv=True)
            return
        write_kv(self, batch, cache, tables, buffers.qkv)
        self.attend(batch, cache, buffers)

    def attend(self, batch: Batch, cache: LayerCache, buffers: AttentionBuffers) -> None:
        """Attention of rows whose keys are already in the KV cache."""
        if host.computes():
            attend_on_host(self, batch, cache, buffers)
        elif batch.decodes:
            decode(self, batch, cache, None, buffers, writes_kv=False)
        else:
            prefill(self, batch, cache, buffers)

    def rotation_operands(self, tables: Tables | None, qkv: GPUArray) -> tuple[GPUArray, ...]:
        """The operands that rotate and normalise heads in kernels; qkv in the place of what the layer does not have."""
        norms = [qkv if norm is None else norm.weight for norm in (self.q_norm, self.k_norm)]
        return *(tables or (qkv, qkv)), *norms

    def call(
        self, batch: Batch, cache: LayerCache, qkv: GPUArray, tables: Tables | None = None, *, writes_kv: bool = False
    ) -> bytes:
        """AttentionCall of attention.cuh."""
        norm = self.q_norm
        return _CALL.pack(
            heads=self.num_heads,
            kv_heads=self.num_kv_heads,
            dim=self.head_dim,
            capacity=cache.k.shape[2] * batch.blocks,
            block=cache.k.shape[2],
            blocks=batch.blocks,
            window=self.window or 0,
            chunk=self.chunk or 0,
            width=qkv.shape[1],
            rows=batch.count,
            rotary=0 if tables is None else 2 * tables[0].shape[1],
            normalises=norm is not None,
            scale=self.scale,
            cap=self.cap or 0.0,
            epsilon=0.0 if norm is None else norm.eps,
            places=writes_kv,
            sinks=self.sinks is not None,
            **split_fields(batch, cache),
        )

    # Decoding by hand, documented
    init_fixed_cache = Elsewhere(_FIXED_CACHE)
    set_confirmed_pos = Elsewhere(_FIXED_CACHE)
    reset_lookahead = Elsewhere(_FIXED_CACHE)
    commit_lookahead = Elsewhere(_FIXED_CACHE)
    get_confirmed_pos = Elsewhere(_FIXED_CACHE)
    forward_fixed_cache = Elsewhere(_BY_HAND)
    forward_fixed_cache_batch = Elsewhere(_BY_HAND)
    forward_fixed_cache_batch_zero_alloc = Elsewhere("pygpukit.compat.decoding.zero_alloc")


CausalSelfAttention = LlamaAttention = Attention
