"""Attention over a KV cache on the host, in NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.core.dtypes import float32
from pygpukit.nn.batch import BLOCK, blocks
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
    if batch.start is None and has_kv and cache.k.dtype == buffers.qkv.dtype == float32:
        where = batch.positions, batch.slots
        native.host_attention(buffers.qkv, *where, cache.k, cache.v, buffers.out, layer.scale, layer.window or 0)
        return
    arrays = [buffers.qkv, buffers.out, batch.positions, batch.slots, cache.k, cache.v]
    native.host_launch("attention", lambda: _attend(layer, batch, cache, buffers), arrays)


def _attend(layer: Attention, batch: Batch, cache: LayerCache, buffers: AttentionBuffers) -> None:
    import numpy as np

    q = host.values(buffers.qkv[:, : layer.q_dim])
    q = q.reshape(batch.count, layer.num_kv_heads, layer.num_kv_groups, layer.head_dim)
    result = np.empty((batch.count, layer.q_dim), np.float32)
    positions, slots = host.memory(batch.positions), host.memory(batch.slots).reshape(batch.count, -1)
    with np.errstate(all="ignore"):
        if batch.start is None:
            for row in range(batch.count):
                low, end = _visible(layer, int(positions[row]), int(positions[row]) + 1)
                k, v = _cached(cache, slots[row], low, end, end)
                result[row] = _weighted(layer, q[row], k, v, None).reshape(-1)
        else:
            for start, first, last in blocks(batch.start, batch.count):
                rows = _block(layer, q[first:last], cache, slots[0], start, batch.start + first)
                result[first:last] = rows
    host.store(buffers.out, result)


def _block(layer: Attention, q: Any, cache: LayerCache, slots: Any, start: int, first: int) -> Any:
    """Rows from position `first` of the block that starts at `start`, computed as part of the whole block."""
    import numpy as np

    count, capacity = q.shape[0], cache.k.shape[2] * len(slots)
    low, end = _visible(layer, start, min(start + BLOCK, capacity))
    k, v = _cached(cache, slots, low, first + count, end)
    padded = np.zeros((layer.num_kv_heads, layer.num_kv_groups, BLOCK, layer.head_dim), np.float32)
    padded[:, :, first - start : first - start + count] = q.transpose(1, 2, 0, 3)
    queries, keys = np.arange(start, start + BLOCK)[:, None], np.arange(low, end)
    visible = keys <= queries
    if layer.window is not None:
        visible &= keys > queries - layer.window
    visible[queries[:, 0] >= capacity] = True  # rows that no sequence can have
    flat = padded.reshape(layer.num_kv_heads, -1, layer.head_dim)
    result = _weighted(layer, flat, k, v, np.tile(visible, (layer.num_kv_groups, 1)))
    result = result.reshape(padded.shape)[:, :, first - start : first - start + count]
    return result.transpose(2, 0, 1, 3).reshape(count, layer.q_dim)


def _visible(layer: Attention, first: int, end: int) -> tuple[int, int]:
    """The keys that queries from `first` see, up to `end`."""
    return (0 if layer.window is None else max(0, first + 1 - layer.window)), end


def _weighted(layer: Attention, q: Any, k: Any, v: Any, visible: Any) -> Any:
    """softmax(scale q k^T) v for q (Hkv, n, D), k and v (Hkv, keys, D)."""
    import numpy as np

    scores = np.matmul(q, k.transpose(0, 2, 1))
    scores *= np.float32(layer.scale)
    if visible is not None:
        scores = np.where(visible, scores, np.float32(-np.inf))
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.matmul(weights, v) / weights.sum(axis=-1, keepdims=True)


def _cached(cache: LayerCache, slots: Any, low: int, there: int, end: int) -> tuple[Any, Any]:
    """Keys and values of a sequence in float32, from its slot or its blocks: positions low .. end - 1, of which those
    from `there` on are not there yet. They are zeros, as their weights are."""
    import numpy as np

    heads, size, dim = cache.k.shape[1:]

    def part(array: GPUArray, number: int, first: int, last: int) -> Any:
        return host.values(array[int(slots[number]), :, first - number * size : last - number * size])

    def whole(array: GPUArray) -> Any:
        if there == end and low // size == (end - 1) // size:
            return part(array, low // size, low, end).astype(np.float32, copy=False)
        values = np.zeros((heads, end - low, dim), np.float32)
        for number in range(low // size, -(-there // size)):
            first, last = max(low, number * size), min(there, (number + 1) * size)
            values[:, first - low : last - low] = part(array, number, first, last)
        return values

    return whole(cache.k), whole(cache.v)
