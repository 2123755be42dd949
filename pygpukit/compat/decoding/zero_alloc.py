"""A method of Attention over its fixed cache that writes into arrays of the caller only."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from pygpukit.array import factory
from pygpukit.compat.decoding.attention import batch_of, check_rows
from pygpukit.compat.decoding.fixed_cache import fixed_cache
from pygpukit.core.errors import DTypeError, InvalidSpecError, ShapeError
from pygpukit.nn.attention.buffers import AttentionBuffers
from pygpukit.ops import copying
from pygpukit.ops.elementwise import add

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.compat.decoding.buffers import DecodeBuffers
    from pygpukit.compat.decoding.fixed_cache import FixedCache
    from pygpukit.nn.attention.layer import Attention
    from pygpukit.nn.rope import Tables


class _Step:
    """All that rows of a layer need between two calls with the same arrays."""

    def __init__(
        self,
        layer: Attention,
        rows: int,
        operands: tuple[FixedCache, DecodeBuffers, GPUArray | None, GPUArray | None],
    ) -> None:
        self.rows, self.operands = rows, operands
        cache, buffers, cos, sin = operands
        shapes = {
            "qkv_proj_out_batch": (layer.qkv_proj.out_features,),
            "attn_out_t_batch": (layer.num_heads, layer.head_dim),
            "o_proj_out_batch": (layer.o_proj.out_features,),
        }
        qkv, out, self.out = (_rows_of(layer, buffers, name, rows, shape) for name, shape in shapes.items())
        counters = factory.zeros((rows, layer.num_heads), "int32")
        self.attention = AttentionBuffers(qkv, out.reshape(rows, layer.q_dim), counters)
        self.batch = batch_of(cache, rows)
        self.offsets = factory.arange(rows, dtype="int32")
        self.tables = _halves(layer, cos, sin) if cos is not None or sin is not None else cache.tables(layer)


_STEPS: WeakKeyDictionary[Attention, _Step] = WeakKeyDictionary()


def forward_fixed_cache_batch_zero_alloc(
    self: Attention,
    x: GPUArray,
    start_position: int,
    context_len: int,
    buffers: DecodeBuffers,
    rope_cos_gpu: GPUArray | None,
    rope_sin_gpu: GPUArray | None,
    start_pos_buf: GPUArray | None,
) -> GPUArray:
    """forward_fixed_cache_batch() into arrays of the caller, for a graph: after the first call with the same arrays and
    number of rows nothing is allocated.

    Parameters
    ----------
    x : GPUArray
        (rows, hidden), after the norm, of the weights' type.
    start_position, context_len : int
        Of the first row, and start_position + rows.
    buffers : DecodeBuffers
        With room for the rows: qkv_proj_out_batch, attn_out_t_batch and o_proj_out_batch are written.
    rope_cos_gpu, rope_sin_gpu : GPUArray or None
        float32 (positions, head_dim), as precompute_freqs_cis() makes them; None: the layer's own.
    start_pos_buf : GPUArray or None
        int32 (1,): the position of the first row, read on the device; None: start_position.

    Returns
    -------
    GPUArray
        (rows, hidden): the first rows of buffers.o_proj_out_batch.

    Raises
    ------
    InvalidSpecError
        Without init_fixed_cache(), for positions or rows that it, or the buffers, have no room for, and where one of
        both tables is missing.
    ShapeError, DTypeError
        For x and buffers of other sizes or types than the layer's.
    """
    rows, cache = check_rows(self, x), fixed_cache(self)
    cache.check(start_position, rows, context_len)
    step = _STEPS.get(self)
    operands = (cache, buffers, rope_cos_gpu, rope_sin_gpu)
    if step is None or step.rows != rows or any(a is not b for a, b in zip(step.operands, operands, strict=True)):
        step = _STEPS[self] = _Step(self, rows, operands)
    add(step.offsets, start_position if start_pos_buf is None else start_pos_buf, out=step.batch.positions)
    self.compute(x, step.batch, None, cache.layer, step.tables, step.attention)
    self.o_proj.project(step.attention.out, step.out, None)
    cache.wrote(start_position + rows)
    return step.out


def _rows_of(layer: Attention, buffers: DecodeBuffers, name: str, rows: int, shape: tuple[int, ...]) -> GPUArray:
    """The first rows of one of the buffers. Raises where it is not there, too small, or of another type."""
    array: GPUArray | None = getattr(buffers, name)
    if array is None or array.shape[0] < rows:
        raise InvalidSpecError(
            f"{rows} rows, and buffers have max_batch_size={buffers.max_batch_size}; allocate them with "
            f"max_batch_size={rows}",
            "buffers",
        )
    if array.shape[1:] != shape:
        raise ShapeError(f"buffers.{name} has shape {array.shape}, must be {(array.shape[0], *shape)} for the layer")
    if array.dtype != layer.qkv_proj.weight.dtype:
        raise DTypeError(
            f"buffers.{name} is {array.dtype.name}, the layer's weights {layer.qkv_proj.weight.dtype.name}"
        )
    return array[:rows]


def _halves(layer: Attention, cos: GPUArray | None, sin: GPUArray | None) -> Tables:
    """Tables with an angle for each element of a head as the layer takes them, with one for each pair of halves."""
    if cos is None or sin is None:
        raise InvalidSpecError("give both rope_cos_gpu and rope_sin_gpu, or neither", "rope_cos_gpu")
    half = (layer.config.rotary_dim or layer.head_dim) // 2
    for name, table in (("rope_cos_gpu", cos), ("rope_sin_gpu", sin)):
        if table.ndim != 2 or table.shape[1] != 2 * half or table.dtype.name != "float32":
            raise ShapeError(f"{name} is {table.dtype.name} {table.shape}, must be float32 (positions, {2 * half})")
    return copying.contiguous(cos[:, :half]), copying.contiguous(sin[:, :half])
