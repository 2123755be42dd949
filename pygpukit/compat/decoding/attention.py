"""Methods of Attention over its fixed cache: rows of one sequence, whose positions the caller gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.compat.decoding.fixed_cache import fixed_cache
from pygpukit.core.errors import ShapeError
from pygpukit.nn.attention.buffers import AttentionBuffers
from pygpukit.nn.batch import new_batch

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.compat.decoding.fixed_cache import FixedCache
    from pygpukit.nn.attention.layer import Attention
    from pygpukit.nn.batch import Batch


def forward_fixed_cache(
    self: Attention, x: GPUArray, position: int, context_len: int, *, out: GPUArray | None = None
) -> GPUArray:
    """Attention of one row, whose key and value go into the fixed cache.

    Parameters
    ----------
    x : GPUArray
        (1, hidden), after the norm, of the weights' type.
    position : int
        Of the row; those before it were computed.
    context_len : int
        position + 1: what the row sees.
    out : GPUArray, optional
        (1, hidden), of the weights' type: written and returned.

    Returns
    -------
    GPUArray
        (1, hidden), to be added to what came in.

    Raises
    ------
    InvalidSpecError
        Without init_fixed_cache(), and for positions that it has no room for.
    ShapeError
        For more rows, or another width.

    Notes
    -----
    Heads are rotated as in a model whose context is the cache's max_seq_len; long contexts of some scalings differ.
    """
    if x.shape[0] != 1:
        raise ShapeError(f"forward_fixed_cache: x has shape {x.shape}, must be (1, hidden)")
    return _forward(self, x, position, context_len, out)


def forward_fixed_cache_batch(self: Attention, x: GPUArray, start_position: int, context_len: int) -> GPUArray:
    """forward_fixed_cache() of rows x (rows, hidden) that follow each other: each sees those before it. context_len:
    start_position + rows. Raises as that does."""
    return _forward(self, x, start_position, context_len, None)


def _forward(attention: Attention, x: GPUArray, position: int, context_len: int, out: GPUArray | None) -> GPUArray:
    import numpy as np

    hidden, weight = attention.qkv_proj.in_features, attention.qkv_proj.weight
    rows, cache = check_rows(attention, x), fixed_cache(attention)
    cache.check(position, rows, context_len)
    batch = batch_of(cache, rows)
    native.copy_from_host(batch.positions, np.arange(position, position + rows, dtype=np.int32))
    width = attention.qkv_proj.out_features
    buffers = AttentionBuffers.of(rows, width, attention.q_dim, attention.num_heads, weight.dtype.name)
    attention.compute(x, batch, None, cache.layer, cache.tables(attention), buffers)
    result = native.empty((rows, hidden), weight.dtype) if out is None else out
    attention.o_proj.project(buffers.out, result, None)
    cache.wrote(position + rows)
    return result


def check_rows(attention: Attention, x: GPUArray) -> int:
    """The rows of x. Raises ShapeError where it is not (rows, hidden)."""
    hidden = attention.qkv_proj.in_features
    if x.ndim != 2 or x.shape[1] != hidden or not x.shape[0]:
        raise ShapeError(f"x has shape {x.shape}, must be (rows, {hidden})")
    return int(x.shape[0])


def batch_of(cache: FixedCache, rows: int) -> Batch:
    """Rows of the cache's sequence, whose positions are set later."""
    import numpy as np

    batch = new_batch(rows, cache.blocks, follows=rows > 1)
    native.copy_from_host(batch.slots, np.tile(np.arange(cache.blocks, dtype=np.int32), (rows, 1)))
    return batch
