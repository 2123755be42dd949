"""Attention over a KV cache on the host: rows of prompts and of steps alike, a row's bits by its own sequence alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.core.dtypes import float32
from pygpukit.nn.attention import codes
from pygpukit.ops import host

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.nn.attention.buffers import AttentionBuffers
    from pygpukit.nn.attention.layer import Attention
    from pygpukit.nn.batch import Batch
    from pygpukit.nn.kv_cache import LayerCache


def attend_on_host(layer: Attention, batch: Batch, cache: LayerCache, buffers: AttentionBuffers) -> None:
    """buffers.out of the queries in buffers.qkv; their keys are in the cache."""
    has_kv = buffers.qkv.shape[1] > layer.q_dim  # cross-attention has its queries alone there
    if has_kv and cache.k.dtype == buffers.qkv.dtype == float32:
        seen = batch.positions, batch.slots, cache.k, cache.v
        native.host_attention(buffers.qkv, *seen, buffers.out, **_options(layer, layer.sinks))
        return
    arrays = [buffers.qkv, buffers.out, batch.positions, batch.slots, *cache.arrays]
    arrays += [] if layer.sinks is None else [layer.sinks]
    native.host_launch("attention", lambda: _attend(layer, batch, cache, buffers), arrays)


def _attend(layer: Attention, batch: Batch, cache: LayerCache, buffers: AttentionBuffers) -> None:
    """In float32; of a cache of another type the blocks that rows see are converted first."""
    import numpy as np

    q = np.ascontiguousarray(host.values(buffers.qkv[:, : layer.q_dim]), np.float32)
    positions, slots = host.memory(batch.positions), host.memory(batch.slots).reshape(batch.count, -1)
    if cache.k.dtype == float32:
        k, v = host.memory(cache.k), host.memory(cache.v)
    else:
        seen = np.arange(slots.shape[1]) <= positions[:, None] // cache.k.shape[2]
        used, places = np.unique(slots[seen], return_inverse=True)
        k, v = (_converted(*stored, used) for stored in ((cache.k, cache.k_scales), (cache.v, cache.v_scales)))
        slots = np.zeros(slots.shape, np.int32)
        slots[seen] = places
    out = np.empty(q.shape, np.float32)
    sinks = None if layer.sinks is None else host.memory(layer.sinks)
    native.host_attend(q, positions, slots, k, v, out, **_options(layer, sinks))
    host.store(buffers.out, out)


def _options(layer: Attention, sinks: Any) -> dict[str, Any]:
    """The settings of the layer's scores, and of the keys that it sees."""
    options = {"scale": layer.scale, "window": layer.window or 0, "cap": layer.cap or 0.0, "sinks": sinks}
    return options if layer.chunk is None else {**options, "chunk": layer.chunk}


def _converted(array: GPUArray, scales: GPUArray | None, blocks: Any) -> Any:
    """Some blocks of a cache as float32."""
    import numpy as np

    chosen = host.memory(array)[blocks]
    if scales is not None:
        return codes.decoded(chosen, host.memory(scales)[blocks])
    if array.dtype.name == "bfloat16":
        return (chosen.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return chosen.astype(np.float32)
