"""Caches of keys and values: rows put in at a position, for caches by position and for caches by query head."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.core.dtypes import int32, int64
from pygpukit.core.errors import DTypeError, InvalidSpecError, ShapeError
from pygpukit.ops.operands import check_array, check_devices

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

LOW_LEVEL = [
    "kv_cache_prefill",
    "kv_cache_prefill_gqa",
    "kv_cache_update",
    "kv_cache_update_gqa",
    "kv_cache_update_gqa_ptr",
    "slice_rows_range_ptr",
    "split_qkv_batch",
]


def kv_cache_update(new_kv: GPUArray, cache: GPUArray, position: int) -> None:
    """cache[position] = new_kv[0]: new_kv (1, Hkv, D), cache (S, Hkv, D). Errors as kv_cache_prefill()."""
    _one_row("kv_cache_update", new_kv)
    _by_position("kv_cache_update", new_kv, cache, position)


def kv_cache_prefill(new_kv: GPUArray, cache: GPUArray, start_pos: int = 0) -> None:
    """cache[start_pos : start_pos + L] = new_kv: new_kv (L, Hkv, D), cache (S, Hkv, D), converted to its type.

    Asynchronous. Raises ShapeError, DeviceMismatchError, InvalidSpecError (rows that the cache does not have).
    """
    _by_position("kv_cache_prefill", new_kv, cache, start_pos)


def kv_cache_update_gqa(new_kv: GPUArray, cache: GPUArray, num_heads: int, position: int) -> None:
    """One position of a cache by query head, (num_heads, S, D), from new_kv (1, Hkv, D): each of its heads for all
    query heads that share it. Errors as kv_cache_prefill()."""
    _one_row("kv_cache_update_gqa", new_kv)
    _by_head("kv_cache_update_gqa", new_kv, cache, num_heads, position)


def kv_cache_prefill_gqa(new_kv: GPUArray, cache: GPUArray, num_heads: int, start_pos: int = 0) -> None:
    """kv_cache_update_gqa() of L positions: new_kv (L, Hkv, D)."""
    _by_head("kv_cache_prefill_gqa", new_kv, cache, num_heads, start_pos)


def kv_cache_update_gqa_ptr(new_kv: GPUArray, cache: GPUArray, num_heads: int, position_buf: GPUArray) -> None:
    """kv_cache_update_gqa() at the position that one int32 on the device holds: a captured graph follows it.

    A position that the cache does not have raises IndexError at the next wait, as indexing does.
    """
    what = "kv_cache_update_gqa_ptr"
    _one_row(what, new_kv)
    heads = _heads(what, new_kv, cache, num_heads)
    heads[:, :, _number(what, "position_buf", position_buf)] = new_kv.transpose(1, 0, 2)[:, None]


def split_qkv_batch(
    qkv: GPUArray,
    q_out: GPUArray,
    k_out: GPUArray,
    v_out: GPUArray,
    q_dim: int,
    k_dim: int,
    v_dim: int,
) -> None:
    """The columns of qkv, (S, q_dim + k_dim + v_dim), into three contiguous arrays of as many elements, of any shape.

    Asynchronous. Raises ShapeError, DeviceMismatchError.
    """
    what = "split_qkv_batch"
    check_array(qkv, f"{what}: qkv")
    if qkv.ndim != 2 or qkv.shape[1] != q_dim + k_dim + v_dim:
        raise ShapeError(f"{what}: qkv has shape {qkv.shape}, must be (S, {q_dim + k_dim + v_dim})")
    start = 0
    for name, out, width in (("q_out", q_out, q_dim), ("k_out", k_out, k_dim), ("v_out", v_out, v_dim)):
        if check_array(out, f"{what}: {name}").size != qkv.shape[0] * width or not out.is_contiguous():
            raise ShapeError(
                f"{what}: {name} has shape {out.shape}, must have {qkv.shape[0]} x {width} elements, contiguous"
            )
        check_devices(what, qkv, out)
        out.view((qkv.shape[0], width))[...] = qkv[:, start : start + width]
        start += width


def slice_rows_range_ptr(table: GPUArray, out: GPUArray, start_pos_buf: GPUArray, count: int) -> None:
    """out = table[start : start + count] with the start in one int32 on the device: a captured graph follows it.

    table: (rows, ...), out: (count, ...). Rows that the table does not have raise IndexError at the next wait.
    """
    from pygpukit.array.factory import ones
    from pygpukit.ops.scan import cumsum

    what = "slice_rows_range_ptr"
    check_array(table, f"{what}: table")
    if check_array(out, f"{what}: out").shape != (count, *table.shape[1:]):
        raise ShapeError(f"{what}: out has shape {out.shape}, must be {(count, *table.shape[1:])}")
    check_devices(what, table, out)
    numbers = cumsum(ones(count, "int64")) - 1  # made on the device: a capture can have it
    out[...] = table[numbers + _number(what, "start_pos_buf", start_pos_buf)]


def _one_row(what: str, new_kv: GPUArray) -> None:
    if check_array(new_kv, f"{what}: new_kv").ndim != 3 or new_kv.shape[0] != 1:
        raise ShapeError(f"{what}: new_kv has shape {new_kv.shape}, must be (1, heads, D)")


def _by_position(what: str, new_kv: GPUArray, cache: GPUArray, start: int) -> None:
    _check(what, new_kv, cache)
    if new_kv.shape[1:] != cache.shape[1:]:
        raise ShapeError(f"{what}: new_kv has shape {new_kv.shape} and cache {cache.shape}; heads and D must be alike")
    _room(what, new_kv.shape[0], start, cache.shape[0])
    cache[start : start + new_kv.shape[0]] = new_kv


def _by_head(what: str, new_kv: GPUArray, cache: GPUArray, num_heads: int, start: int) -> None:
    heads = _heads(what, new_kv, cache, num_heads)
    _room(what, new_kv.shape[0], start, cache.shape[1])
    heads[:, :, start : start + new_kv.shape[0]] = new_kv.transpose(1, 0, 2)[:, None]


def _heads(what: str, new_kv: GPUArray, cache: GPUArray, num_heads: int) -> GPUArray:
    """The cache as (Hkv, query heads that share one, S, D)."""
    _check(what, new_kv, cache)
    shared = new_kv.shape[1]
    if cache.shape[0] != num_heads or not shared or num_heads % shared or cache.shape[2] != new_kv.shape[2]:
        raise ShapeError(
            f"{what}: cache has shape {cache.shape} and new_kv {new_kv.shape}; they must be ({num_heads}, S, D) and "
            f"(rows, Hkv, D) with {num_heads} a multiple of Hkv"
        )
    step, *rest = cache.strides
    strides = step * (num_heads // shared), step, *rest
    return native.view(cache, (shared, num_heads // shared, *cache.shape[1:]), strides, cache.offset)


def _check(what: str, new_kv: GPUArray, cache: GPUArray) -> None:
    for name, array in (("new_kv", new_kv), ("cache", cache)):
        if check_array(array, f"{what}: {name}").ndim != 3:
            raise ShapeError(f"{what}: {name} has shape {array.shape}, must have three axes")
    check_devices(what, new_kv, cache)


def _room(what: str, rows: int, start: int, positions: int) -> None:
    if not 0 <= start <= positions - rows:
        raise InvalidSpecError(
            f"{what}: {rows} rows from position {start} do not fit a cache of {positions} positions", "start_pos"
        )


def _number(what: str, name: str, array: GPUArray) -> GPUArray:
    if check_array(array, f"{what}: {name}").dtype not in (int32, int64) or array.size != 1:
        raise DTypeError(f"{what}: {name} is {array.dtype} of shape {array.shape}, must be one int32")
    return array.reshape(1)
