"""Prefill: the attention of rows of prompts, each prompt's by the operators of gp.sdpa_causal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.nn.attention.kv_write import gathered
from pygpukit.nn.batch import Span
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
    for span, begin in _spans(layer, batch):
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
            k, v = (array[span.slot, :, begin : span.start + count] for array in (cache.k, cache.v))
        else:
            block = begin // cache.k.shape[2]
            k, v = gathered(layer, batch, cache, span, buffers.qkv.dtype, block)
            k, v = (x[:, begin - block * cache.k.shape[2] :] for x in (k, v))
        attend(q, k, v, out, layer.scale, None, extras)


def _spans(layer: Attention, batch: Batch) -> Iterator[tuple[Span, int]]:
    """The parts of prompts, and the first key that their rows see: cut where chunks of a sequence begin, so that all
    rows of a part see the same keys up to themselves."""
    for span in batch.spans:
        if layer.chunk is None:
            yield span, 0
            continue
        first, start = span.first, span.start
        while first < span.end:
            begin = start // layer.chunk * layer.chunk
            end = min(span.end, first + begin + layer.chunk - start)
            yield Span(first, end, start, span.slot), begin
            first, start = end, begin + layer.chunk
