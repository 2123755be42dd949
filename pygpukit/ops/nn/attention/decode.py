"""Attention of one to eight queries on caches, contiguous or of pages: split over the keys, each with its own bits."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.core import deferred
from pygpukit.core.dtypes import DataType, bfloat16, float16, float32, int32
from pygpukit.core.errors import DTypeError, InvalidSpecError, ShapeError
from pygpukit.ops import host
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.nn.attention import leaf, simt
from pygpukit.ops.nn.attention.extras import Extras, checked
from pygpukit.ops.operands import check_array, check_devices, check_out, may_share_memory

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["sdpa_decode"]

SOURCE = kernels.KernelSpec(__file__, "decode.cu")  # float32, and the sum of the parts
MMA = kernels.KernelSpec(__file__, "decode_mma.cu")  # 16 bits
_DECODE = SOURCE.structure("DecodeAttention")
_ROWS, _THREADS, _MMA_THREADS, _PACK = (4, 8), 256, 128, 16  # of the kernels; bytes that a thread reads at a time
_CHUNK, _MMA_CHUNK, _MMA_PARTS = 256, 64, 32  # decode.cuh: kChunk, kMaxParts
_MAX_SEQUENCES = 65535  # sequences: blocks in z
_WIDTHS = (64, 128, 256)
MAX_QUERIES, MIN_PAGE = 8, 16


def sdpa_decode(
    Q: GPUArray,
    K: GPUArray,
    V: GPUArray,
    lengths: GPUArray,
    *,
    block_table: GPUArray | None = None,
    scale: float = 0.0,
    window: int | None = None,
    soft_cap: float | None = None,
    sinks: GPUArray | None = None,
    out: GPUArray | None = None,
) -> GPUArray:
    """sdpa_causal() of the newest one to eight queries of each sequence, Q (B, H, q, D), on its cache.

    K and V: (B, Hkv, S, D), any strides; with a block table pages of 16 positions or more, (pages, Hkv, page, D), and
    block_table int32 (B, n): position j of sequence b is row j % page of page block_table[b, j // page]. lengths: int32
    (B,) on the device, how many positions each sequence has with its newest ones; cut to 0 and S, or n page. The last
    query stands at the last position. scale, window, soft_cap, sinks, types, D and errors as sdpa_causal(). A number of
    a page that is not there raises IndexError as indexing does; entries beyond a length are not read.

    Keys are taken in parts that follow from the sequence's length, and the parts are added in order: a sequence's bits
    depend neither on the batch, nor on the size of the cache, nor on its pages. In 16 bits a value that is no number
    spoils other queries of its sequence, too. On a device lengths and table are read by the kernel: a captured graph
    follows them. Asynchronous.
    """
    what = "sdpa_decode"
    keys = _check(what, Q, K, V, block_table)
    scale, more = checked(
        what, (*Q.shape[:-1], keys), True, scale=scale, window=window,
        lengths=check_array(lengths, f"{what}: lengths"), soft_cap=soft_cap, sinks=sinks,
    )  # fmt: skip
    read = [Q, K, V, *more.arrays, *(() if block_table is None else (block_table,))]
    check_devices(what, *read)
    target = native.empty(Q.shape, Q.dtype) if out is None else check_out(out, Q.shape, Q.dtype, what)
    if target.dtype != Q.dtype or any(may_share_memory(target, x) for x in read):
        raise ShapeError(f"{what}: out is {target.dtype}; it must be {Q.dtype} and share no memory with what is read")
    if not target.size:
        return target
    if host.computes():
        native.host_launch(what, lambda: _on_host(Q, K, V, target, scale, block_table, more), [*read, target])
    else:
        _on_device(Q, K, V, target, scale, keys, block_table, more)
    return target


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of what adds the parts, and of the kernel for float32."""
    for whole in (False, True):
        for rows in _ROWS:
            yield tuple(_expression(float32, width, rows, whole) for width in _WIDTHS)
    for dtype in simt.TYPES:
        yield tuple(f"pk::combine_parts<{CTYPES[dtype.name]}, {width}>" for width in _WIDTHS)


@MMA.lists
def mma_instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of the kernel for 16 bits."""
    for dtype in (float16, bfloat16):
        for whole in (False, True):
            yield tuple(_expression(dtype, width, _ROWS[-1], whole) for width in _WIDTHS)


def _expression(dtype: DataType, width: int, rows: int, whole: bool) -> str:
    if dtype == float32:
        return f"pk::attend_decode<float, {width}, {rows}, {str(whole).lower()}>"
    return f"pk::attend_rows<{CTYPES[dtype.name]}, {width}, {str(whole).lower()}>"


def _check(what: str, Q: GPUArray, K: GPUArray, V: GPUArray, table: GPUArray | None) -> int:
    """The largest number of keys that a sequence can have."""
    for name, array in (("Q", Q), ("K", K), ("V", V)):
        if check_array(array, f"{what}: {name}").dtype not in simt.TYPES or array.dtype != Q.dtype:
            raise DTypeError(
                f"{what}: Q is {Q.dtype}, {name} {array.dtype}; they must be float32, float16 or bfloat16, alike"
            )
    fits = Q.ndim == K.ndim == 4 and K.shape == V.shape and Q.shape[-1] == K.shape[-1] and K.shape[1] > 0
    if not fits or Q.shape[1] % K.shape[1] or (table is None and Q.shape[0] != K.shape[0]):
        raise ShapeError(
            f"{what}: Q has shape {Q.shape}, K {K.shape} and V {V.shape}; they must be (B, H, q, D), and K and V alike "
            f"{'(B, Hkv, S, D)' if table is None else '(pages, Hkv, page, D)'}, with H a multiple of Hkv"
        )
    if not 0 < Q.shape[-1] <= simt.MAX_HEAD_DIM:
        raise ShapeError(f"{what}: the head dimension is {Q.shape[-1]}, must be 1 to {simt.MAX_HEAD_DIM}")
    if not 1 <= Q.shape[2] <= MAX_QUERIES:
        raise ShapeError(f"{what}: {Q.shape[2]} queries, must be 1 to {MAX_QUERIES}; sdpa_causal() takes any number")
    if Q.shape[0] > _MAX_SEQUENCES:
        raise ShapeError(f"{what}: {Q.shape[0]} sequences, must be at most {_MAX_SEQUENCES}; take some at a time")
    if table is None:
        return K.shape[2]
    if check_array(table, f"{what}: block_table").dtype != int32 or table.ndim != 2 or table.shape[0] != Q.shape[0]:
        raise DTypeError(
            f"{what}: block_table is {table.dtype} of shape {table.shape}, must be int32 ({Q.shape[0]}, pages of each)"
        )
    if K.shape[2] < MIN_PAGE:
        raise InvalidSpecError(f"{what}: pages of {K.shape[2]} positions, must be {MIN_PAGE} or more", "block_table")
    return table.shape[1] * K.shape[2]


def _on_device(
    Q: GPUArray, K: GPUArray, V: GPUArray, out: GPUArray, scale: float, keys: int, table: GPUArray | None, more: Extras
) -> None:
    from pygpukit.ops import copying

    assert more.lengths is not None
    batch, heads, queries, dim = Q.shape
    width = next(width for width in _WIDTHS if dim <= width)
    group, on_cores = heads // K.shape[1], Q.dtype == float32
    parts = max(-(-keys // _CHUNK), 1) if on_cores else min(max(-(-keys // _MMA_CHUNK), 1), _MMA_PARTS)
    rows = group * queries
    of_block = _ROWS[rows > _ROWS[0]] if on_cores else _ROWS[-1]
    tiles, max_rows = -(-rows // of_block), min(rows, of_block)
    owners = batch * K.shape[1] * tiles
    work = native.empty((owners * parts * -(-max_rows * (width + 2) // 4) * 4,), float32)
    table = table if table is None else copying.contiguous(table)
    whole = all(_is_whole(array) for array in (K, V))
    if whole and not _is_whole(Q):
        Q = copying.contiguous(Q)
    (q, k, v, result), places = zip(*(simt.place(array) for array in (Q, K, V, out)), strict=True)
    packed = _DECODE.pack(
        group=group,
        key_heads=K.shape[1],
        queries=queries,
        keys=keys,
        dim=dim,
        page=max(K.shape[2], 1),
        pages=K.shape[0],
        has_table=table is not None,
        table_step=0 if table is None else table.shape[1],
        length_step=more.lengths.strides[0] // more.lengths.itemsize,
        parts=parts,
        tiles=tiles,
        **dict(zip(("q", "k", "v", "out"), places, strict=True)),
        more=simt.packed_extras(more, simt.factor(scale, dim), None),
    )
    kernels.launch(
        (SOURCE if on_cores else MMA).of(_expression(Q.dtype, width, of_block, whole)),
        (owners * parts, 1, 1) if on_cores else (K.shape[1] * tiles, parts, batch),
        (_THREADS if on_cores else _MMA_THREADS, 1, 1),
        *(q, k, v, more.lengths, more.lengths if table is None else table, work, deferred.report(), packed),
    )
    kernels.launch(
        SOURCE.of(f"pk::combine_parts<{CTYPES[Q.dtype.name]}, {width}>", overlapping=True),
        (batch * heads * queries, 1, 1),
        (width, 1, 1),
        *(work, more.lengths, q if more.sinks is None else more.sinks, result, struct.pack("<i", max_rows), packed),
    )


def _is_whole(cache: GPUArray) -> bool:
    """True where rows are dense, of whole packs, and begin at multiples of one."""
    steps = zip(cache.shape[:3], cache.strides[:3], strict=True)
    return (
        cache.strides[3] == cache.itemsize
        and cache.device_ptr % _PACK == 0
        and cache.shape[3] * cache.itemsize % _PACK == 0
        and all(extent == 1 or stride % _PACK == 0 for extent, stride in steps)
    )


def _on_host(
    Q: GPUArray, K: GPUArray, V: GPUArray, out: GPUArray, scale: float, table: GPUArray | None, more: Extras
) -> None:
    """A sequence at a time, with no more of the cache than it has."""
    import numpy as np

    assert more.lengths is not None
    q, result = host.values(Q).astype(np.float32), np.zeros(Q.shape, np.float32)
    room = K.shape[2] if table is None else table.shape[1] * K.shape[2]
    for b, length in enumerate(np.clip(host.memory(more.lengths), 0, room).tolist()):
        if table is None:
            k, v = (host.values(x)[b, :, :length] for x in (K, V))
        else:
            pages = host.memory(table)[b, : -(-length // K.shape[2])]
            if (wrong := pages[(pages < 0) | (pages >= K.shape[0])]).size:
                raise IndexError(f"sdpa_decode: block_table has page {wrong[0]}; there are {K.shape[0]}")
            k, v = (
                host.values(x)[pages].swapaxes(0, 1).reshape(K.shape[1], -1, K.shape[3])[:, :length] for x in (K, V)
            )
        k, v = (x.astype(np.float32) for x in (k, v))
        offset = length - Q.shape[2]
        leaf.attend_values(q[b], k, v, result[b], simt.factor(scale, Q.shape[3]), offset, length, more)
    host.store(out, result)
