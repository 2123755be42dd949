"""Keys and values of a batch into the KV cache; queries and keys normalised and rotated on the way."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.core.dtypes import DataType, float32
from pygpukit.nn.attention import codes
from pygpukit.ops import host
from pygpukit.ops.elementwise.pointwise import CTYPES

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.nn.attention.layer import Attention
    from pygpukit.nn.batch import Batch, Span
    from pygpukit.nn.kv_cache import LayerCache
    from pygpukit.nn.rope import Tables

# Rotations stand in two kernels, one for prefill and one for decode: contracted apart, they would differ.
SOURCE = kernels.KernelSpec(__file__, "attention.cu", options=kernels.SAME_BITS)
_THREADS, PART = 128, 64  # key_parts.cuh: kThreads; kPart, positions that a block of a cache has a multiple of
CODES = ", pk::e4m3_t"  # the last argument of kernels whose cache is in fp8


def write_kv(layer: Attention, batch: Batch, cache: LayerCache, tables: Tables | None, qkv: GPUArray) -> None:
    """Rotate the queries of qkv in place, and put its keys, rotated, and values into the cache."""
    if not host.computes():
        _on_device(layer, batch, cache, tables, qkv)
        return
    norms = [norm.weight for norm in (layer.q_norm, layer.k_norm) if norm is not None]
    if all(array.dtype == float32 for array in (qkv, cache.k, cache.v, *norms)):
        operands = (None if norm is None else norm.operands for norm in (layer.q_norm, layer.k_norm))
        native.host_place(qkv, batch.positions, batch.slots, cache.k, cache.v, tables, *operands)
        return
    arrays = [qkv, batch.positions, batch.slots, *cache.arrays, *norms, *(tables or ())]
    native.host_launch("rope", lambda: _on_host(layer, batch, cache, tables, qkv), arrays)


def gathered(
    layer: Attention, batch: Batch, cache: LayerCache, span: Span, dtype: DataType, block: int = 0
) -> tuple[GPUArray, GPUArray]:
    """Keys and values of a span's sequence up to its end, (key heads, positions, head_dim), from its blocks on from
    `block`; codes as the numbers that they stand for, which the type has exactly."""
    count = span.start + span.end - span.first - block * cache.k.shape[2]
    shape = layer.num_kv_heads, count, layer.head_dim
    k, v = (native.empty(shape, dtype) for _ in "kv")
    kernels.launch(
        SOURCE.of(f"pk::gather<{CTYPES[dtype.name]}{kept(cache)}>"),
        (-(-count // PART), layer.num_kv_heads, 2),
        (_THREADS, 1, 1),
        *cache.operands,
        *(_table(batch, span, block), k, v),
        struct.pack("<q", count),
        layer.call(batch, cache, k),
    )
    return k, v


def _table(batch: Batch, span: Span, block: int) -> GPUArray:
    """The numbers of a span's blocks, on from one."""
    row = batch.slots[span.first : span.first + 1]
    return row[:, block:] if block else row


def kept(cache: LayerCache) -> str:
    """The last argument of a kernel's template: what the cache has, where that is not the type of the rows."""
    return CODES if cache.is_fp8 else ""


def _on_device(layer: Attention, batch: Batch, cache: LayerCache, tables: Tables | None, qkv: GPUArray) -> None:
    kernels.launch(
        SOURCE.of(f"pk::place<{CTYPES[qkv.dtype.name]}{kept(cache)}>"),
        (layer.num_heads + 2 * layer.num_kv_heads, batch.count, 1),
        (32, 1, 1),
        *(qkv, batch.positions, batch.slots, *cache.operands),
        *layer.rotation_operands(tables, qkv),
        layer.call(batch, cache, qkv, tables),
    )


def _on_host(layer: Attention, batch: Batch, cache: LayerCache, tables: Tables | None, qkv: GPUArray) -> None:
    import numpy as np

    heads, kv_heads = layer.num_heads, layer.num_kv_heads
    values = host.values(qkv).reshape(batch.count, heads + 2 * kv_heads, layer.head_dim).astype(np.float32)
    positions, slots = host.memory(batch.positions), host.memory(batch.slots).reshape(batch.count, -1)
    q, k = values[:, :heads], values[:, heads : heads + kv_heads]
    if layer.q_norm is not None and layer.k_norm is not None:
        q, k = (norm.on_host(np.ascontiguousarray(part)) for norm, part in ((layer.q_norm, q), (layer.k_norm, k)))
    if tables is not None:
        cos, sin = (host.memory(table)[positions][:, None] for table in tables)
        q, k = _rotated(q, cos, sin), _rotated(k, cos, sin)
    host.store(qkv[:, : layer.q_dim], q.reshape(batch.count, layer.q_dim))
    of_values = values[:, heads + kv_heads :]
    for target, scales, part in ((cache.k, cache.k_scales, k), (cache.v, cache.v_scales, of_values)):
        if scales is None:
            _store(target, _bits(part, target), positions, slots)
            continue
        bits, exponents = codes.encoded(host.converted(part, qkv.dtype).astype(np.float32))
        _store(target, bits, positions, slots)
        _store(scales, exponents, positions, slots)


def _store(target: GPUArray, elements: Any, positions: Any, slots: Any) -> None:
    """The elements of each row where its position lies."""
    memory = host.memory(target)
    for row, position in enumerate(positions):
        number, place = divmod(int(position), memory.shape[2])
        memory[slots[row, number], :, place] = elements[row]


def _rotated(x: Any, cos: Any, sin: Any) -> Any:
    import numpy as np

    half = cos.shape[-1]
    a, b = x[..., :half], x[..., half : 2 * half]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin, x[..., 2 * half :]], axis=-1)


def _bits(values: Any, like: GPUArray) -> Any:
    """Values as elements of a cache: bfloat16 as bits."""
    import numpy as np

    if like.dtype.name != "bfloat16":
        return values.astype(like.dtype.to_numpy_dtype(), copy=False)
    return (host.converted(values, like.dtype).view(np.uint32) >> np.uint32(16)).astype(np.uint16)


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that write_kv() and gathered() can ask for."""
    for name in ("float32", "float16", "bfloat16"):
        for stored in ("", CODES):
            yield f"pk::place<{CTYPES[name]}{stored}>", f"pk::gather<{CTYPES[name]}{stored}>"
