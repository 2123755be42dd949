"""Prefill: the attention of rows of prompts, each prompt's by the operators of gp.sdpa_causal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.nn.attention.kv_write import gathered
from pygpukit.ops.nn.attention.choose import attend
from pygpukit.ops.nn.attention.extras import FAR, Extras

if TYPE_CHECKING:
    from pygpukit.nn.attention.buffers import AttentionBuffers
    from pygpukit.nn.attention.layer import Attention
    from pygpukit.nn.batch import Batch
    from pygpukit.nn.kv_cache import LayerCache


def prefill(layer: Attention, batch: Batch, cache: LayerCache, buffers: AttentionBuffers) -> None:
    """buffers.out of the queries in buffers.qkv; their keys are in the cache."""
    dim, window = layer.head_dim, layer.window
    extras = Extras(behind=FAR if window is None else window - 1, cap=layer.cap or 0.0, sinks=layer.sinks)
    for span in batch.spans:
        count = span.end - span.first
        q, out = (
            native.view(
                x,
                (layer.num_heads, count, dim),
                (dim * x.itemsize, x.strides[0], x.itemsize),
                x.offset + span.first * x.strides[0],
            )
            for x in (buffers.qkv, buffers.out)
        )
        if batch.slots.ndim == 1 and not cache.is_fp8:
            k, v = (array[span.slot, :, : span.start + count] for array in (cache.k, cache.v))
        else:
            k, v = gathered(layer, batch, cache, span, buffers.qkv.dtype)
        attend(q, k, v, out, layer.scale, None, extras)
