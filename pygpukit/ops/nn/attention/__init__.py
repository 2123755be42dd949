"""Scaled dot-product attention, causal or not, with grouped heads and for caches that are filled in part."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.core.dtypes import int32
from pygpukit.core.errors import DTypeError, InvalidSpecError, ShapeError
from pygpukit.core.sizes import whole
from pygpukit.ops import copying
from pygpukit.ops.nn.attention.choose import attend
from pygpukit.ops.nn.attention.extras import Extras, checked
from pygpukit.ops.nn.attention.simt import MAX_HEAD_DIM, TYPES
from pygpukit.ops.operands import check_array, check_devices, check_out, may_share_memory
from pygpukit.ops.prepared import exchangeable

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["sdpa", "sdpa_causal"]
LOW_LEVEL = ["sdpa_causal_fixed_cache", "sdpa_causal_fixed_cache_ptr"]

_FURTHEST = 2**31  # beyond any key


@exchangeable
def sdpa(
    Q: GPUArray,
    K: GPUArray,
    V: GPUArray,
    scale: float = 0.0,
    *,
    out: GPUArray | None = None,
    window: int | None = None,
    lengths: GPUArray | None = None,
    mask: GPUArray | None = None,
    soft_cap: float | None = None,
    sinks: GPUArray | None = None,
) -> GPUArray:
    """softmax(Q K^T scale) V, of Q's shape: every query sees every key. Otherwise as sdpa_causal(), but a window
    reaches as far after a query's place as before it, and on the simulated device, without keywords, the bits of a
    query depend on its place among the queries, too, not on what they are."""
    check("sdpa", Q, K, V)
    scale, more = checked(
        "sdpa",
        (*Q.shape[:-1], K.shape[-2]),
        False,
        scale=scale,
        window=window,
        lengths=lengths,
        mask=mask,
        soft_cap=soft_cap,
        sinks=sinks,
    )
    return _attended("sdpa", Q, K, V, scale, out, None, more)


@exchangeable
def sdpa_causal(
    Q: GPUArray,
    K: GPUArray,
    V: GPUArray,
    scale: float = 0.0,
    *,
    out: GPUArray | None = None,
    offset: int | None = None,
    window: int | None = None,
    lengths: GPUArray | None = None,
    mask: GPUArray | None = None,
    soft_cap: float | None = None,
    sinks: GPUArray | None = None,
) -> GPUArray:
    """softmax(Q K^T scale + causal mask) V, of Q's shape.

    Q: (H, q, D) or (B, H, q, D); K and V: the same with kv positions and Hkv heads, H a multiple of Hkv: neighbouring
    query heads share one. Any strides, D up to 256. scale: 1 / sqrt(D) when 0 or below. Query i sees the keys
    j <= i + offset; offset: kv - q when None, so that the last query sees all of a cached prefix; a query that sees
    nothing gives zeros, and what keys and values that no query sees hold is of no effect. float32, float16 or bfloat16,
    alike; scores and sums are float32. out: written and returned. Asynchronous. Each query's bits depend on its own
    keys alone, however a prompt is split. bfloat16 and float16 run on tensor cores where D is a multiple of 8.

    window: the query at j sees the `window` keys up to j. lengths: int32 (B,) on the device, how many keys each batch
    element has, from 0 to kv, beyond which they are cut; without an offset its last query sees its last key. mask:
    bool, True where seen, or a float added to the scores; broadcast to ([B,] H, q, kv). soft_cap: scores become
    cap tanh(score / cap), before the mask (Gemma 2). sinks: (H,), a score of each head that takes a share of the
    weights and has no value (gpt-oss). With mask, soft_cap or sinks another kernel runs, on CUDA cores and with other
    roundings; in float32 with a window, too (docs/attention.md).
    Raises ShapeError, DTypeError, DeviceMismatchError, InvalidSpecError.
    """
    check("sdpa_causal", Q, K, V)
    if offset is not None:
        offset = whole(offset, "sdpa_causal: offset", "a whole number of keys, or None for kv - q")
        offset = max(-_FURTHEST, min(offset, _FURTHEST))
    scale, more = checked(
        "sdpa_causal",
        (*Q.shape[:-1], K.shape[-2]),
        True,
        scale=scale,
        window=window,
        lengths=lengths,
        mask=mask,
        soft_cap=soft_cap,
        sinks=sinks,
    )
    return _attended("sdpa_causal", Q, K, V, scale, out, offset, more)


def sdpa_causal_fixed_cache(
    Q: GPUArray,
    K: GPUArray,
    V: GPUArray,
    out: GPUArray,
    context_len: int,
    scale: float = 0.0,
    *,
    window: int | None = None,
    mask: GPUArray | None = None,
    soft_cap: float | None = None,
    sinks: GPUArray | None = None,
) -> None:
    """sdpa_causal() into out with the first context_len positions of the caches K and V, (Hkv, Smax, D).

    Raises InvalidSpecError for a length that the caches do not have, and as sdpa_causal().
    """
    what = "sdpa_causal_fixed_cache"
    check(what, Q, K, V)
    context_len = whole(context_len, f"{what}: context_len", "a whole number of positions")
    if not 0 <= context_len <= K.shape[-2]:
        raise InvalidSpecError(f"{what}: context_len is {context_len}, the cache has {K.shape[-2]}", "context_len")
    check_array(out, f"{what}: out")
    shape = (*Q.shape[:-1], context_len)
    scale, more = checked(what, shape, True, scale=scale, window=window, mask=mask, soft_cap=soft_cap, sinks=sinks)
    _attended(what, Q, K[..., :context_len, :], V[..., :context_len, :], scale, out, None, more)


def sdpa_causal_fixed_cache_ptr(
    Q: GPUArray,
    K: GPUArray,
    V: GPUArray,
    out: GPUArray,
    context_len_buf: GPUArray,
    max_kv_len: int,
    scale: float = 0.0,
    *,
    window: int | None = None,
    mask: GPUArray | None = None,
    soft_cap: float | None = None,
    sinks: GPUArray | None = None,
) -> None:
    """sdpa_causal_fixed_cache() with the length read on the device, from one int32: a captured graph follows it.

    Lengths count up to max_kv_len only. out must not share memory with Q, K and V. Errors as sdpa_causal().
    """
    what = "sdpa_causal_fixed_cache_ptr"
    check(what, Q, K, V)
    check_out(out, Q.shape, Q.dtype, what)
    if check_array(context_len_buf, f"{what}: context_len_buf").dtype != int32 or context_len_buf.size != 1:
        raise DTypeError(
            f"{what}: context_len_buf is {context_len_buf.dtype} of shape {context_len_buf.shape}, must be one int32"
        )
    max_kv_len = whole(max_kv_len, f"{what}: max_kv_len", "a whole number of positions")
    if not 0 <= max_kv_len <= K.shape[-2]:
        raise InvalidSpecError(f"{what}: max_kv_len is {max_kv_len}, the cache has {K.shape[-2]}", "max_kv_len")
    if out.dtype != Q.dtype or any(may_share_memory(out, x) for x in (Q, K, V)):
        raise ShapeError(f"{what}: out is {out.dtype}; it must be {Q.dtype} and share no memory with Q, K and V")
    check_devices(what, Q, out, context_len_buf)
    shape = (*Q.shape[:-1], max_kv_len)
    scale, more = checked(what, shape, True, scale=scale, window=window, mask=mask, soft_cap=soft_cap, sinks=sinks)
    more = replace(more, lengths=context_len_buf.reshape(1))
    attend(Q, K[..., :max_kv_len, :], V[..., :max_kv_len, :], out, scale, None, more)


def check(what: str, Q: GPUArray, K: GPUArray, V: GPUArray) -> None:
    """Raises DTypeError, ShapeError or DeviceMismatchError unless attention takes them."""
    arrays = [check_array(x, f"{what}: {name}") for name, x in (("Q", Q), ("K", K), ("V", V))]
    if Q.dtype not in TYPES or K.dtype != Q.dtype or V.dtype != Q.dtype:
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


def _attended(
    what: str,
    Q: GPUArray,
    K: GPUArray,
    V: GPUArray,
    scale: float,
    out: GPUArray | None,
    offset: int | None,
    more: Extras,
) -> GPUArray:
    """The result in out, which may be of another type or share memory with what is read."""
    if out is not None:
        check_out(out, Q.shape, Q.dtype, what)
        check_devices(what, out)
    read = (Q, K, V, *more.arrays)
    direct = out is not None and out.dtype == Q.dtype and not any(may_share_memory(out, x) for x in read)
    target = out if out is not None and direct else native.empty(Q.shape, Q.dtype)
    attend(Q, K, V, target, scale, offset, more)
    if out is None or direct:
        return target
    copying.copy_to(target, out)
    return out
