"""Attention: query, key and value of each row, rotated and put into the cache, and what the row sees of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.array import factory
from pygpukit.core.dtypes import float32
from pygpukit.llm.config import TransformerConfig
from pygpukit.llm.layers.linear import LinearBF16
from pygpukit.llm.layers.norm import Norm
from pygpukit.llm.layers.rows import BLOCK, Rows, blocks
from pygpukit.ops import host
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.nn.attention.extras import FAR, Extras
from pygpukit.ops.nn.attention.launch import attend

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.llm.cache import LayerCache

    Tables = tuple[GPUArray, GPUArray]

# Rotations stand in two kernels, one for prompts and one for steps: contracted apart, they would differ.
SOURCE = kernels.KernelSpec(__file__, "attention.cu", options=kernels.SAME_BITS)
STEP = kernels.KernelSpec(__file__, "attention_step.cu", options=kernels.SAME_BITS)
_CALL = SOURCE.structure("AttentionCall")
_THREADS, _PART = 128, 64  # key_parts.cuh: kThreads, kPart
_PARTS = 32  # attention_step.cu: kParts
_TOGETHER = (1, 2, 4)  # query heads of a block
ENOUGH = 512  # blocks of a step that keep a device busy, four a multiprocessor: fewer do not take heads together


@dataclass
class AttentionBuffers:
    """What attention writes between its launches: (R, q + k + v) and (R, q), of the weights' type.

    counters: int32 (R, heads), zeros before and after each step, in which its blocks count.
    """

    qkv: GPUArray
    out: GPUArray
    counters: GPUArray
    _parts: GPUArray | None = None

    @classmethod
    def of(cls, count: int, qkv: int, out: int, heads: int, dtype: str) -> AttentionBuffers:
        """New ones for up to count rows."""
        return cls(
            factory.zeros((count, qkv), dtype),
            factory.zeros((count, out), dtype),
            factory.zeros((count, heads), "int32"),
        )

    def parts(self, size: int) -> GPUArray:
        """Room for so many floats of a step: the same for every layer."""
        if self._parts is None or self._parts.size < size:
            self._parts = native.empty((size,), float32)
        return self._parts

    def first(self, count: int) -> AttentionBuffers:
        """Views of the first rows."""
        return AttentionBuffers(self.qkv[:count], self.out[:count], self.counters[:count])


class Attention:
    """Causal attention with grouped key heads. Weights: (out, in); q_norm and k_norm: over each head (Qwen3).

    The three products before are one: qkv_proj holds the rows of q, k and v. layer: its number, where layers differ.
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
    ) -> None:
        from pygpukit.llm.layers.joining import joined

        self.config, self.q_norm, self.k_norm = config, q_norm, k_norm
        self.window, self.scale = config.window_of(layer), config.scale_of(layer)
        self.head_dim, self.num_heads, self.num_kv_heads = config.head_dim, config.num_heads, config.kv_heads
        self.num_kv_groups = config.num_kv_groups
        self.q_dim = self.num_heads * self.head_dim
        self.k_dim = self.v_dim = self.num_kv_heads * self.head_dim
        self.qkv_proj = joined([q_proj, k_proj, v_proj], [q_bias, k_bias, v_bias])
        self.o_proj = joined([o_proj], [o_bias])

    def forward(
        self, x: GPUArray, rows: Rows, norm: Norm, cache: LayerCache, tables: Tables | None, buffers: AttentionBuffers
    ) -> None:
        """x += attention(norm(x)): x float32 (R, hidden). Keys and values of the rows are in the cache afterwards."""
        is_step = rows.first is None
        self.qkv_proj.project(x, buffers.qkv, rows.first, norm=norm, follows=is_step)
        self._see(rows, cache, tables, buffers)
        self.o_proj.project(buffers.out, x, rows.first, after="add", follows=is_step)

    def _see(self, rows: Rows, cache: LayerCache, tables: Tables | None, buffers: AttentionBuffers) -> None:
        """Keys and values of the rows into the cache, and what the rows see of it: of a step in one launch."""
        if rows.first is None and not host.computes():
            self._step_on_device(rows, cache, tables, buffers, places=True)
            return
        self._place(rows, cache, tables, buffers.qkv)
        self._attend(rows, cache, buffers)

    def _place(self, rows: Rows, cache: LayerCache, tables: Tables | None, qkv: GPUArray) -> None:
        if not host.computes():
            self._place_on_device(rows, cache, tables, qkv)
            return
        norms = [norm.weight for norm in (self.q_norm, self.k_norm) if norm is not None]
        if all(array.dtype == float32 for array in (qkv, cache.k, cache.v, *norms)):
            normed = (None if norm is None else norm.given for norm in (self.q_norm, self.k_norm))
            native.host_place(qkv, rows.positions, rows.slots, cache.k, cache.v, tables, *normed)
            return
        arrays = [qkv, rows.positions, rows.slots, cache.k, cache.v, *norms, *(tables or ())]
        native.host_launch("rope", lambda: self._place_on_host(rows, cache, tables, qkv), arrays)

    def _place_on_host(self, rows: Rows, cache: LayerCache, tables: Tables | None, qkv: GPUArray) -> None:
        import numpy as np

        heads, kv_heads = self.num_heads, self.num_kv_heads
        values = host.values(qkv).reshape(rows.count, heads + 2 * kv_heads, self.head_dim).astype(np.float32)
        positions, slots = host.memory(rows.positions), host.memory(rows.slots)
        q, k = values[:, :heads], values[:, heads : heads + kv_heads]
        if self.q_norm is not None and self.k_norm is not None:
            q, k = (norm.on_host(np.ascontiguousarray(part)) for norm, part in ((self.q_norm, q), (self.k_norm, k)))
        if tables is not None:
            cos, sin = (host.memory(table)[positions][:, None] for table in tables)
            q, k = _rotated(q, cos, sin), _rotated(k, cos, sin)
        host.store(qkv[:, : self.q_dim], q.reshape(rows.count, self.q_dim))
        for target, part in ((cache.k, k), (cache.v, values[:, heads + kv_heads :])):
            bits = _bits(part, target)
            memory = host.memory(target)
            for row in range(rows.count):
                memory[slots[row], :, positions[row]] = bits[row]

    def _attend(self, rows: Rows, cache: LayerCache, buffers: AttentionBuffers) -> None:
        if not host.computes():
            self._attend_on_device(rows, cache, buffers)
            return
        joint = buffers.qkv.shape[1] > self.q_dim  # what only listens has its queries alone there
        if rows.first is None and joint and cache.k.dtype == buffers.qkv.dtype == float32:
            places = rows.positions, rows.slots
            native.host_attention(buffers.qkv, *places, cache.k, cache.v, buffers.out, self.scale, self.window or 0)
            return
        arrays = [buffers.qkv, buffers.out, rows.positions, rows.slots, cache.k, cache.v]
        native.host_launch("attention", lambda: self._attend_on_host(rows, cache, buffers), arrays)

    def _place_on_device(self, rows: Rows, cache: LayerCache, tables: Tables | None, qkv: GPUArray) -> None:
        kernels.launch(
            SOURCE.of(f"pk::place<{CTYPES[qkv.dtype.name]}>"),
            (self.num_heads + 2 * self.num_kv_heads, rows.count, 1),
            (32, 1, 1),
            *(qkv, rows.positions, rows.slots, cache.k, cache.v),
            *self._turning(tables, qkv),
            self._call(rows, cache, qkv, rotates=tables is not None),
        )

    def _attend_on_device(self, rows: Rows, cache: LayerCache, buffers: AttentionBuffers) -> None:
        """Rows whose keys are in the cache."""
        if rows.first is None:
            self._step_on_device(rows, cache, None, buffers, places=False)
            return
        count, dim, window = rows.count, self.head_dim, self.window
        q, out = (
            native.view(x, (self.num_heads, count, dim), (dim * x.itemsize, x.strides[0], x.itemsize), x.offset)
            for x in (buffers.qkv, buffers.out)
        )
        k, v = (array[rows.slot, :, : rows.first + count] for array in (cache.k, cache.v))
        attend(q, k, v, out, self.scale, None, Extras(behind=FAR if window is None else window - 1))

    def _step_on_device(
        self, rows: Rows, cache: LayerCache, tables: Tables | None, buffers: AttentionBuffers, *, places: bool
    ) -> None:
        """places: whether keys and values are among what was projected, and go into the cache."""
        qkv, count = buffers.qkv, self._parts(cache)
        together = self._together(rows.count, count)
        parts = buffers.parts(rows.count * self.num_heads * count * (self.head_dim + 2))
        kernels.launch(
            STEP.of(f"pk::attend_step<{CTYPES[qkv.dtype.name]}, {together}>", overlapping=True),
            (rows.count, self.num_heads, count),
            (_THREADS, 1, 1),
            *(qkv, rows.positions, rows.slots, cache.k, cache.v),
            *self._turning(tables, qkv),
            *(parts, buffers.counters, buffers.out),
            self._call(rows, cache, qkv, rotates=tables is not None, places=places),
        )

    def _parts(self, cache: LayerCache) -> int:
        """Of a row's keys, at most."""
        return min(-(-cache.k.shape[2] // _PART), _PARTS)

    def _together(self, rows: int, parts: int) -> int:
        """Query heads of a block: as many as share a head of keys, up to four; one where blocks are never enough."""
        together = next(count for count in _TOGETHER if count >= min(self.num_kv_groups, _TOGETHER[-1]))
        blocks = rows * self.num_kv_heads * -(-self.num_kv_groups // together) * parts
        return together if blocks >= ENOUGH else 1

    def _turning(self, tables: Tables | None, qkv: GPUArray) -> tuple[GPUArray, ...]:
        """Tables and norms that heads are turned with, or what stands in their place."""
        norms = [qkv if norm is None else norm.weight for norm in (self.q_norm, self.k_norm)]
        return *(tables or (qkv, qkv)), *norms

    def _call(
        self, rows: Rows, cache: LayerCache, qkv: GPUArray, *, rotates: bool = False, places: bool = False
    ) -> bytes:
        capacity, norm = cache.k.shape[2], self.q_norm
        return _CALL.pack(
            heads=self.num_heads,
            kv_heads=self.num_kv_heads,
            dim=self.head_dim,
            capacity=capacity,
            window=self.window or 0,
            width=qkv.shape[1],
            rows=rows.count,
            parts=self._parts(cache),
            rotates=rotates,
            normalises=norm is not None,
            scale=self.scale,
            epsilon=0.0 if norm is None else norm.eps,
            places=places,
            enough=ENOUGH,
        )

    def _attend_on_host(self, rows: Rows, cache: LayerCache, buffers: AttentionBuffers) -> None:
        import numpy as np

        q = host.values(buffers.qkv[:, : self.q_dim])
        q = q.reshape(rows.count, self.num_kv_heads, self.num_kv_groups, self.head_dim)
        result = np.empty((rows.count, self.q_dim), np.float32)
        positions, slots = host.memory(rows.positions), host.memory(rows.slots)
        with np.errstate(all="ignore"):
            if rows.first is None:
                for row in range(rows.count):
                    low, end = self._seen(int(positions[row]), int(positions[row]) + 1)
                    k, v = _cached(cache, int(slots[row]), low, end)
                    result[row] = self._weighted(q[row], k, v, None).reshape(-1)
            else:
                for start, first, last in blocks(rows.first, rows.count):
                    block = self._block(q[first:last], cache, int(slots[0]), start, rows.first + first)
                    result[first:last] = block
        host.store(buffers.out, result)

    def _block(self, q: Any, cache: LayerCache, slot: int, start: int, first: int) -> Any:
        """Rows from position `first` of the block that starts at `start`, computed as part of the whole block."""
        import numpy as np

        count, capacity = q.shape[0], cache.k.shape[2]
        low, end = self._seen(start, min(start + BLOCK, capacity))
        for array in (cache.k, cache.v):  # what is not there yet must be numbers; their weights are zero
            host.memory(array)[slot, :, first + count : end] = 0
        k, v = _cached(cache, slot, low, end)
        padded = np.zeros((self.num_kv_heads, self.num_kv_groups, BLOCK, self.head_dim), np.float32)
        padded[:, :, first - start : first - start + count] = q.transpose(1, 2, 0, 3)
        queries, keys = np.arange(start, start + BLOCK)[:, None], np.arange(low, end)
        seen = keys <= queries
        if self.window is not None:
            seen &= keys > queries - self.window
        seen[queries[:, 0] >= capacity] = True  # rows that no sequence can have
        flat = padded.reshape(self.num_kv_heads, -1, self.head_dim)
        result = self._weighted(flat, k, v, np.tile(seen, (self.num_kv_groups, 1)))
        result = result.reshape(padded.shape)[:, :, first - start : first - start + count]
        return result.transpose(2, 0, 1, 3).reshape(count, self.q_dim)

    def _seen(self, first: int, end: int) -> tuple[int, int]:
        """The keys that queries from `first` see, up to `end`."""
        return (0 if self.window is None else max(0, first + 1 - self.window)), end

    def _weighted(self, q: Any, k: Any, v: Any, seen: Any) -> Any:
        """softmax(scale q k^T) v for q (Hkv, n, D), k and v (Hkv, keys, D)."""
        import numpy as np

        scores = np.matmul(q, k.transpose(0, 2, 1))
        scores *= np.float32(self.scale)
        if seen is not None:
            scores = np.where(seen, scores, np.float32(-np.inf))
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return np.matmul(weights, v) / weights.sum(axis=-1, keepdims=True)


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that attention of a prompt can ask for."""
    for name in ("float32", "float16", "bfloat16"):
        ctype = CTYPES[name]
        yield (f"pk::place<{ctype}>",)


@STEP.lists
def step_instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that attention of a step can ask for."""
    for name in ("float32", "float16", "bfloat16"):
        yield tuple(f"pk::attend_step<{CTYPES[name]}, {count}>" for count in _TOGETHER)


CausalSelfAttention = LlamaAttention = Attention


def _cached(cache: LayerCache, slot: int, low: int, end: int) -> tuple[Any, Any]:
    """Keys and values of a sequence in float32."""
    k, v = (host.values(array[slot, :, low:end]) for array in (cache.k, cache.v))
    return (k, v) if k.dtype.itemsize == 4 else (k.astype("float32"), v.astype("float32"))


def _rotated(x: Any, cos: Any, sin: Any) -> Any:
    import numpy as np

    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)


def _bits(values: Any, like: GPUArray) -> Any:
    """Values as elements of a cache: bfloat16 as bits."""
    import numpy as np

    if like.dtype.name != "bfloat16":
        return values.astype(like.dtype.to_numpy_dtype(), copy=False)
    return (host.converted(values, like.dtype).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
