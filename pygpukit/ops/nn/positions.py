"""Positions without rotation: PoPE's table that is added, ALiBi's slopes and biases, iRoPE's temperature."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pygpukit.core.dtypes import float32
from pygpukit.core.errors import InvalidSpecError, ShapeError
from pygpukit.ops.operands import check_array, check_devices

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

LOW_LEVEL = [
    "alibi_add_bias",
    "alibi_compute_bias",
    "alibi_init_slopes",
    "irope_scale_q",
    "pope_init_encoding",
    "pope_inplace",
    "sdpa_irope",
]

_NEVER = -1e9  # a bias that no score outweighs


def pope_init_encoding(max_seq_len: int, head_dim: int, base: float = 10000.0) -> GPUArray:
    """Sines and cosines of positions, (max_seq_len, head_dim) float32: even elements sine, odd ones cosine of
    position / base^(2j / D) (Vaswani et al. 2017). Made in float64. Raises ShapeError, InvalidSpecError."""
    import numpy as np

    from pygpukit.array.factory import from_numpy

    if head_dim <= 0 or head_dim % 2 or max_seq_len < 0:
        raise ShapeError(f"pope_init_encoding: {max_seq_len} positions of {head_dim} elements; head_dim must be even")
    if not base > 1:
        raise InvalidSpecError(f"base is {base}, must be above 1", "base")
    angles = np.outer(np.arange(max_seq_len), base ** (-np.arange(0, head_dim, 2) / head_dim))
    return from_numpy(np.stack([np.sin(angles), np.cos(angles)], -1).reshape(max_seq_len, head_dim).astype(np.float32))


def pope_inplace(q: GPUArray, k: GPUArray, encoding: GPUArray, start_pos: int = 0) -> None:
    """q and k, (S, heads, D), each plus the encoding of its position, from start_pos on. In place, asynchronous.

    Raises ShapeError, DeviceMismatchError, InvalidSpecError (positions that the encoding does not have).
    """
    what = "pope_inplace"
    check_array(encoding, f"{what}: encoding")
    for name, array in (("q", q), ("k", k)):
        fits = check_array(array, f"{what}: {name}").ndim == 3 and encoding.ndim == 2
        if not fits or array.shape[0] != q.shape[0] or array.shape[2] != encoding.shape[1]:
            raise ShapeError(
                f"{what}: {name} has shape {array.shape} and encoding {encoding.shape}; must be (S, heads, D)"
            )
    check_devices(what, q, k, encoding)
    if not 0 <= start_pos <= encoding.shape[0] - q.shape[0]:
        raise InvalidSpecError(
            f"{what}: {q.shape[0]} positions from {start_pos}, the encoding has {encoding.shape[0]}", "start_pos"
        )
    from pygpukit import add

    for array in (q, k):
        add(array, encoding[start_pos : start_pos + q.shape[0], None].astype(array.dtype), out=array)


def alibi_init_slopes(num_heads: int) -> GPUArray:
    """2^(-8 (h + 1) / num_heads) of each head, float32 (Press et al. 2022, for powers of two). Raises ShapeError."""
    import numpy as np

    from pygpukit.array.factory import from_numpy

    if num_heads <= 0:
        raise ShapeError(f"alibi_init_slopes: num_heads is {num_heads}, must be above 0")
    return from_numpy((2.0 ** (-8.0 * (np.arange(num_heads) + 1) / num_heads)).astype(np.float32))


def alibi_compute_bias(seq_len: int, num_heads: int, slopes: GPUArray, causal: bool = True) -> GPUArray:
    """The bias of scores, (num_heads, seq_len, seq_len) float32: -slope (i - j), and -1e9 for j > i if causal."""
    from pygpukit.array.factory import arange

    _check_slopes("alibi_compute_bias", slopes, num_heads)
    places = arange(seq_len, dtype="float32")
    apart = places[:, None] - places
    bias = -(slopes.astype("float32")[:, None, None] * apart)
    if not causal:
        return bias
    from pygpukit import where

    return where(apart < 0, _NEVER, bias)


def alibi_add_bias(scores: GPUArray, slopes: GPUArray, start_pos: int = 0) -> None:
    """scores (B, H, q, kv) -= slope (start_pos + i - j), and -1e9 where a key comes after its query. In place."""
    from pygpukit import add, where
    from pygpukit.array.factory import arange

    what = "alibi_add_bias"
    if check_array(scores, f"{what}: scores").ndim != 4:
        raise ShapeError(f"{what}: scores have shape {scores.shape}, must be (B, H, q, kv)")
    _check_slopes(what, slopes, scores.shape[1])
    check_devices(what, scores, slopes)
    queries = arange(scores.shape[2], dtype="float32") + float(start_pos)
    apart = queries[:, None] - arange(scores.shape[3], dtype="float32")
    bias = where(apart < 0, _NEVER, -(slopes.astype("float32")[:, None, None] * apart))
    add(scores, bias.astype(scores.dtype), out=scores)


def irope_scale_q(Q: GPUArray, positions: GPUArray, attn_scale: float = 0.1, floor_scale: float = 8192.0) -> GPUArray:
    """Q (S, H, D) times log1p(floor((position + 1) / floor_scale)) attn_scale + 1 of its row, as Llama 4 scales queries
    of layers without rotation. positions: (S,). Raises ShapeError, DeviceMismatchError, InvalidSpecError."""
    from pygpukit import floor, log1p

    what = "irope_scale_q"
    check_array(positions, f"{what}: positions")
    if check_array(Q, f"{what}: Q").ndim != 3 or positions.shape != Q.shape[:1]:
        raise ShapeError(f"{what}: Q has shape {Q.shape} and positions {positions.shape}; must be (S, H, D) and (S,)")
    if not (floor_scale > 0 and math.isfinite(floor_scale)):
        raise InvalidSpecError(f"floor_scale is {floor_scale}, must be above 0", "floor_scale")
    check_devices(what, Q, positions)
    steps = floor((positions.astype("float32") + 1.0) / floor_scale)
    return Q * (log1p(steps) * attn_scale + 1.0).astype(Q.dtype)[:, None, None]


def sdpa_irope(
    Q: GPUArray,
    K: GPUArray,
    V: GPUArray,
    positions: GPUArray,
    attn_scale: float = 0.1,
    floor_scale: float = 8192.0,
    causal_offset: int = 0,
) -> GPUArray:
    """sdpa_causal() with queries scaled as irope_scale_q(): Q (S, H, D), K and V (kv, Hkv, D) give (S, H, D).

    Query i sees the keys j <= i + causal_offset. Errors as those.
    """
    from pygpukit.ops.nn.attention import sdpa_causal

    scaled = irope_scale_q(Q, positions, attn_scale, floor_scale)
    q, k, v = (x.transpose(1, 0, 2) for x in (scaled, K, V))
    return sdpa_causal(q, k, v, offset=causal_offset).transpose(1, 0, 2)


def _check_slopes(what: str, slopes: GPUArray, heads: int) -> None:
    if check_array(slopes, f"{what}: slopes").shape != (heads,) or slopes.dtype != float32:
        raise ShapeError(f"{what}: slopes are {slopes.dtype} of shape {slopes.shape}, must be float32 ({heads},)")
