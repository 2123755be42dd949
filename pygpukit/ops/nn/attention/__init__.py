"""Scaled dot-product attention, causal or not, with grouped heads and for caches that are filled in part."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.core.dtypes import DataType, bfloat16, float16, float32, int32
from pygpukit.core.errors import DTypeError, InvalidSpecError, ShapeError
from pygpukit.ops import copying, host
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.operands import check_array, check_devices, check_out, overlaps, same_view, span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["sdpa", "sdpa_causal"]
LOW_LEVEL = ["sdpa_causal_fixed_cache", "sdpa_causal_fixed_cache_ptr"]

SOURCE = kernels.KernelSpec(__file__, "attention.cu")
_PLACE, _ATTENTION = SOURCE.structure("AttentionPlace"), SOURCE.structure("Attention")
_TYPES = (float32, float16, bfloat16)
_LANES = 8  # attention.cu: kLanes
# Head dimensions up to this one: queries and keys at a time, as many as fit 48 KiB of shared memory.
_TILES = {64: (32, 32), 128: (32, 32), 256: (16, 16)}
MAX_HEAD_DIM = max(_TILES)
_BLOCK = 512  # queries that the host takes at a time, so that the bits of one do not depend on how many there are


def sdpa(Q: GPUArray, K: GPUArray, V: GPUArray, scale: float = 0.0, *, out: GPUArray | None = None) -> GPUArray:
    """softmax(Q K^T scale) V, of Q's shape: every query sees every key. Otherwise as sdpa_causal(),
    but on the simulated device the bits of a query depend on its place among the queries, too, not on what they are."""
    what = "sdpa"
    _check(what, Q, K, V)
    if not host.computes() or not Q.size or not K.shape[-2]:
        return sdpa_causal(Q, K, V, scale, out=out, offset=K.shape[-2])
    target = Q if out is None else check_out(out, Q.shape, Q.dtype, what)
    result = native.empty(target.shape, target.dtype)
    factor = scale if scale > 0 else 1 / math.sqrt(Q.shape[-1])
    native.host_launch("attention", lambda: _all_on_host(Q, K, V, result, factor), [Q, K, V, result])
    if out is None:
        return result
    copying.copy_to(result, out)
    return out


def sdpa_causal(
    Q: GPUArray,
    K: GPUArray,
    V: GPUArray,
    scale: float = 0.0,
    *,
    out: GPUArray | None = None,
    offset: int | None = None,
) -> GPUArray:
    """softmax(Q K^T scale + causal mask) V, of Q's shape.

    Q: (H, q, D) or (B, H, q, D); K and V: the same with kv positions and Hkv heads, H a multiple of Hkv: neighbouring
    query heads share one. Any strides, D up to 256. scale: 1 / sqrt(D) when 0 or below. Query i sees the keys
    j <= i + offset; offset: kv - q when None, so that the last query sees all of a cached prefix; a query that sees
    nothing gives zeros, and keys and values that no query sees are not read. float32, float16 or bfloat16, alike;
    computed in float32. out: written and returned. Asynchronous; each query's bits depend on its own keys alone.
    Raises ShapeError, DTypeError, DeviceMismatchError.
    """
    what = "sdpa_causal"
    _check(what, Q, K, V)
    if out is not None:
        check_out(out, Q.shape, Q.dtype, what)
        check_devices(what, out)
    direct = out is not None and out.dtype == Q.dtype and not any(_touch(out, x) for x in (Q, K, V))
    target = out if out is not None and direct else native.empty(Q.shape, Q.dtype)
    _attend(Q, K, V, target, scale, K.shape[-2] - Q.shape[-2] if offset is None else int(offset), None)
    if out is None or direct:
        return target
    copying.copy_to(target, out)
    return out


def sdpa_causal_fixed_cache(
    Q: GPUArray, K: GPUArray, V: GPUArray, out: GPUArray, context_len: int, scale: float = 0.0
) -> None:
    """sdpa_causal() into out with the first context_len positions of the caches K and V, (Hkv, Smax, D).

    Raises InvalidSpecError for a length that the caches do not have, and as sdpa_causal().
    """
    what = "sdpa_causal_fixed_cache"
    _check(what, Q, K, V)
    if not 0 <= context_len <= K.shape[-2]:
        raise InvalidSpecError(f"{what}: context_len is {context_len}, the cache has {K.shape[-2]}", "context_len")
    sdpa_causal(Q, K[..., :context_len, :], V[..., :context_len, :], scale, out=check_array(out, f"{what}: out"))


def sdpa_causal_fixed_cache_ptr(
    Q: GPUArray,
    K: GPUArray,
    V: GPUArray,
    out: GPUArray,
    context_len_buf: GPUArray,
    max_kv_len: int,
    scale: float = 0.0,
) -> None:
    """sdpa_causal_fixed_cache() with the length read on the device, from one int32: a captured graph follows it.

    Lengths count up to max_kv_len only. out must not share memory with Q, K and V. Errors as sdpa_causal().
    """
    what = "sdpa_causal_fixed_cache_ptr"
    _check(what, Q, K, V)
    check_array(out, f"{what}: out")
    if check_array(context_len_buf, f"{what}: context_len_buf").dtype != int32 or context_len_buf.size != 1:
        raise DTypeError(
            f"{what}: context_len_buf is {context_len_buf.dtype} of shape {context_len_buf.shape}, must be one int32"
        )
    if not 0 <= max_kv_len <= K.shape[-2]:
        raise InvalidSpecError(f"{what}: max_kv_len is {max_kv_len}, the cache has {K.shape[-2]}", "max_kv_len")
    if out.shape != Q.shape or out.dtype != Q.dtype or any(_touch(out, x) for x in (Q, K, V)):
        raise ShapeError(
            f"{what}: out is {out.dtype} of shape {out.shape}; "
            f"it must be {Q.dtype} of shape {Q.shape} and share no memory with Q, K and V"
        )
    check_devices(what, Q, out, context_len_buf)
    _attend(Q, K[..., :max_kv_len, :], V[..., :max_kv_len, :], out, scale, 0, context_len_buf)


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that attention can ask for."""
    for dtype in _TYPES:
        yield tuple(_expression(dtype, width) for width in _TILES)


def _expression(dtype: DataType, width: int) -> str:
    rows, keys = _TILES[width]
    return f"pk::attention<{CTYPES[dtype.name]}, {width}, {rows}, {keys}>"


def _touch(a: GPUArray, b: GPUArray) -> bool:
    return same_view(a, b) or overlaps(a, b)


def _check(what: str, Q: GPUArray, K: GPUArray, V: GPUArray) -> None:
    arrays = [check_array(x, f"{what}: {name}") for name, x in (("Q", Q), ("K", K), ("V", V))]
    if Q.dtype not in _TYPES or K.dtype != Q.dtype or V.dtype != Q.dtype:
        raise DTypeError(
            f"{what}: Q is {Q.dtype}, K {K.dtype}, V {V.dtype}; they must be float32, float16 or bfloat16, alike"
        )
    fits = Q.ndim in (3, 4) and K.ndim == Q.ndim and K.shape == V.shape
    fits = fits and Q.shape[:-3] == K.shape[:-3] and Q.shape[-1] == K.shape[-1]
    if not fits or K.shape[-3] == 0 or Q.shape[-3] % K.shape[-3]:
        raise ShapeError(
            f"{what}: Q has shape {Q.shape}, K {K.shape} and V {V.shape}; they must be ([batch,] heads, positions, D), "
            "K and V alike, with Q's heads a multiple of K's"
        )
    if not 0 < Q.shape[-1] <= MAX_HEAD_DIM:
        raise ShapeError(f"{what}: the head dimension is {Q.shape[-1]}, must be 1 to {MAX_HEAD_DIM}")
    check_devices(what, *arrays)


def _attend(
    Q: GPUArray, K: GPUArray, V: GPUArray, out: GPUArray, scale: float, offset: int, length: GPUArray | None
) -> None:
    if not out.size:
        return
    dim = Q.shape[-1]
    factor = scale if scale > 0 else 1 / math.sqrt(dim)
    if host.computes():
        arrays = [Q, K, V, out, *(() if length is None else (length,))]
        native.host_launch("attention", lambda: _on_host(Q, K, V, out, factor, offset, length), arrays)
        return
    heads, queries = Q.shape[-3:-1]
    width = next(width for width in _TILES if dim <= width)
    rows = _TILES[width][0]
    spans, places = [], []
    for array in (Q, K, V, out):
        storage, start = span(array)
        spans.append(storage)
        steps = [step // array.itemsize for step in array.strides]
        places.append(_PLACE.pack(start=start, step=steps if array.ndim == 4 else [0, *steps]))
    q, k, v, result = places
    packed = _ATTENTION.pack(
        heads=heads,
        group=heads // K.shape[-3],
        queries=queries,
        keys=K.shape[-2],
        dim=dim,
        offset=offset,
        has_length=length is not None,
        q=q,
        k=k,
        v=v,
        out=result,
        scale=factor * math.log2(math.e),
    )
    batches = Q.shape[0] if Q.ndim == 4 else 1
    kernels.launch(
        SOURCE.of(_expression(Q.dtype, width)),
        (-(-queries // rows) * heads * batches, 1, 1),
        (rows * _LANES, 1, 1),
        *spans,
        spans[0] if length is None else length,
        packed,
    )


def _on_host(
    Q: GPUArray, K: GPUArray, V: GPUArray, out: GPUArray, scale: float, offset: int, length: GPUArray | None
) -> None:
    """Query by query, each with the keys that it sees."""
    import numpy as np

    q, k, v = (host.values(x).astype(np.float32) for x in (Q, K, V))
    keys = K.shape[-2]
    if length is not None:
        keys = min(max(int(host.memory(length).reshape(())), 0), keys)
        offset = keys - Q.shape[-2]
    group = Q.shape[-3] // K.shape[-3]
    k, v = (np.repeat(x, group, axis=-3) for x in (k, v))
    result = np.zeros(Q.shape, np.float32)
    with np.errstate(all="ignore"):
        for i in range(Q.shape[-2]):
            seen = min(i + offset + 1, keys)
            if seen <= 0:
                continue
            scores = (k[..., :seen, :] @ q[..., i, :, None])[..., 0] * np.float32(scale)
            weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
            total = (weights[..., None, :] @ v[..., :seen, :])[..., 0, :]
            result[..., i, :] = total / weights.sum(axis=-1, keepdims=True)
    host.store(out, result)


def _all_on_host(Q: GPUArray, K: GPUArray, V: GPUArray, out: GPUArray, scale: float) -> None:
    """Blocks of queries, the last one filled up, a head at a time."""
    import numpy as np

    q, k, v = (host.values(x).astype(np.float32, copy=False) for x in (Q, K, V))
    group, queries = Q.shape[-3] // K.shape[-3], Q.shape[-2]
    result, block = np.empty(Q.shape, np.float32), np.zeros((_BLOCK, Q.shape[-1]), np.float32)
    with np.errstate(all="ignore"):
        for place in np.ndindex(*Q.shape[:-2]):
            own = (*place[:-1], place[-1] // group)
            keys, values = np.ascontiguousarray(k[own]), np.ascontiguousarray(v[own])
            for start in range(0, queries, _BLOCK):
                count = min(_BLOCK, queries - start)
                np.multiply(q[place][start : start + count], np.float32(scale), out=block[:count])
                block[count:] = 0
                weights = block @ keys.T
                weights -= weights.max(axis=-1, keepdims=True)
                np.exp(weights, out=weights)
                total = (weights @ values) / weights.sum(axis=-1, keepdims=True)
                result[place][start : start + count] = total[:count]
    host.store(out, result)
