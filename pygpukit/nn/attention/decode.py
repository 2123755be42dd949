"""Decode: the attention of one new row a sequence, with its keys and values written, in one launch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit.nn.attention.kv_write import CODES, kept
from pygpukit.ops.elementwise.pointwise import CTYPES

if TYPE_CHECKING:
    from pygpukit.nn.attention.buffers import AttentionBuffers
    from pygpukit.nn.attention.layer import Attention
    from pygpukit.nn.batch import Batch
    from pygpukit.nn.kv_cache import LayerCache
    from pygpukit.nn.rope import Tables

SOURCE = kernels.KernelSpec(__file__, "attention_step.cu", options=kernels.SAME_BITS)
MMA = kernels.KernelSpec(__file__, "attention_step_mma.cu", options=kernels.SAME_BITS)
_THREADS, _SPLIT = 128, 64  # key_parts.cuh: kThreads, kPart
_MAX_SPLITS = 32  # key_parts.cuh: kParts
_MMA_THREADS, _COLUMNS, _LONGEST, _PADDING = 256, 8, 128, 8  # attention_step_mma.cu
_MMA_TYPES = ("bfloat16", "float16")
_FEWEST_TOGETHER = 4  # query heads that share keys, for tensor cores
_HEADS_PER_BLOCK = (1, 2, 4)
ENOUGH_BLOCKS = 512  # of a step keep a device busy, four a multiprocessor: fewer do not take heads together


def decode(
    layer: Attention,
    batch: Batch,
    cache: LayerCache,
    tables: Tables | None,
    buffers: AttentionBuffers,
    *,
    writes_kv: bool,
) -> None:
    """buffers.out of buffers.qkv. writes_kv: qkv holds keys and values, which go into the cache first."""
    qkv, splits = buffers.qkv, _kv_splits(batch, cache)
    if on_tensor_cores(layer, cache, qkv.dtype.name):
        _decode_by_mma(layer, batch, cache, tables, buffers, writes_kv)
        return
    heads = _heads_per_block(layer, batch.count, splits)
    partials = buffers.partials(layer.num_heads * splits * (layer.head_dim + 2))
    kernels.launch(
        SOURCE.of(f"pk::attend_step<{CTYPES[qkv.dtype.name]}, {heads}{kept(cache)}>", overlapping=True),
        (batch.count, layer.num_heads, splits),
        (_THREADS, 1, 1),
        *(qkv, batch.positions, batch.slots, *cache.operands),
        *layer.rotation_operands(tables, qkv),
        *(qkv if layer.sinks is None else layer.sinks, partials, buffers.counters, buffers.out),
        layer.call(batch, cache, qkv, tables, writes_kv=writes_kv),
    )


def on_tensor_cores(layer: Attention, cache: LayerCache, dtype: str) -> bool:
    """True for a layer whose heads that share keys are multiplied with them together: it follows from the model."""
    fits = layer.head_dim % 16 == 0 and layer.head_dim <= _LONGEST and layer.num_kv_groups >= _FEWEST_TOGETHER
    return fits and dtype in _MMA_TYPES and cache.k.dtype.name == dtype


def _decode_by_mma(
    layer: Attention, batch: Batch, cache: LayerCache, tables: Tables | None, buffers: AttentionBuffers, writes_kv: bool
) -> None:
    qkv, splits = buffers.qkv, _kv_splits(batch, cache)
    partials = buffers.partials(layer.num_heads * splits * (layer.head_dim + 2))
    chunks = -(-cache.k.shape[2] * batch.blocks // _SPLIT)
    stages = 1 if chunks <= _MAX_SPLITS else 2  # a part of one chunk has no next one
    room = stages * 2 * _SPLIT * (layer.head_dim + _PADDING) * qkv.itemsize
    batches = -(-layer.num_kv_groups // _COLUMNS)
    kernels.launch(
        MMA.of(_mma(qkv.dtype.name, stages), shared_bytes=room, overlapping=True),
        (batch.count, layer.num_kv_heads * batches, splits),
        (_MMA_THREADS, 1, 1),
        *(qkv, batch.positions, batch.slots, cache.k, cache.v),
        *layer.rotation_operands(tables, qkv),
        *(qkv if layer.sinks is None else layer.sinks, partials, buffers.counters, buffers.out),
        layer.call(batch, cache, qkv, tables, writes_kv=writes_kv),
    )


def _mma(dtype: str, stages: int) -> str:
    return f"pk::attend_step_mma<{CTYPES[dtype]}, {stages}>"


def _kv_splits(batch: Batch, cache: LayerCache) -> int:
    """The largest number of parts that a sequence's keys are split into."""
    return min(-(-cache.k.shape[2] * batch.blocks // _SPLIT), _MAX_SPLITS)


def split_fields(batch: Batch, cache: LayerCache) -> dict[str, int]:
    """The fields of AttentionCall by which a step is split into blocks."""
    return {"parts": _kv_splits(batch, cache), "enough": ENOUGH_BLOCKS}


def _heads_per_block(layer: Attention, rows: int, splits: int) -> int:
    """Query heads of a block: as many as share a key head, up to four; one where blocks are too few for the device."""
    heads = next(count for count in _HEADS_PER_BLOCK if count >= min(layer.num_kv_groups, _HEADS_PER_BLOCK[-1]))
    blocks = rows * layer.num_kv_heads * -(-layer.num_kv_groups // heads) * splits
    return heads if blocks >= ENOUGH_BLOCKS else 1


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that decode() can ask for."""
    for name in ("float32", "float16", "bfloat16"):
        for stored in ("", CODES):
            yield tuple(f"pk::attend_step<{CTYPES[name]}, {count}{stored}>" for count in _HEADS_PER_BLOCK)


@MMA.lists
def mma_instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel for heads together on tensor cores."""
    for name in _MMA_TYPES:
        yield tuple(_mma(name, stages) for stages in (1, 2))
