"""Attention by NumPy, on the simulated device: in float32, over the arrays' memory, inside a host launch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.ops import host
from pygpukit.ops.nn.attention.extras import FAR, Extras
from pygpukit.ops.nn.attention.problem import Call, Problem

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

_BLOCK = 512  # queries taken at a time, so that the bits of one do not depend on how many there are


def refusal(p: Problem) -> str:
    """Where kernels compute."""
    return "" if host.computes() else "kernels compute"


def tiling(p: Problem) -> None:
    """There is none to choose."""


def run(p: Problem, call: Call, tiling: None) -> None:
    """Fill the result, which has elements."""
    Q, K, V, out, scale, offset, more = call

    def fill() -> None:
        if more.ahead == FAR and more.lengths is None and not more.change_scores and p.keys:
            attend_all(Q, K, V, out, scale)
        else:
            attend(Q, K, V, out, scale, offset, more)

    native.host_launch("attention", fill, [Q, K, V, out, *more.arrays])


def attend(
    Q: GPUArray, K: GPUArray, V: GPUArray, out: GPUArray, scale: float, offset: int | None, more: Extras
) -> None:
    """Query by query, each with the keys that it sees. offset: None for one by which the last query sees the last key,
    of each batch element's length where there are lengths."""
    import numpy as np

    q, k, v = (host.values(x).astype(np.float32) for x in (Q, K, V))
    mask = None if more.mask is None else host.values(more.mask)
    result = np.zeros(Q.shape, np.float32)
    counts = [K.shape[-2]]
    parts: list[Any] = [...]
    if more.lengths is not None:
        counts = np.clip(host.values(more.lengths), 0, K.shape[-2]).tolist()
        if len(counts) > 1:
            parts = [slice(b, b + 1) for b in range(len(counts))]
    for part, keys in zip(parts, counts, strict=True):
        start = keys - Q.shape[-2] if offset is None else offset
        own = None if mask is None else mask[part]
        attend_values(q[part], k[part], v[part], result[part], scale, start, keys, more, own)
    host.store(out, result)


def attend_values(
    q: Any, k: Any, v: Any, result: Any, scale: float, offset: int, keys: int, more: Extras, mask: Any = None
) -> None:
    """attend() of NumPy arrays in float32 with one number of keys, into zeros."""
    import numpy as np

    k, v = (np.repeat(x, q.shape[-3] // k.shape[-3], axis=-3) for x in (k, v))
    sinks = None if more.sinks is None else host.values(more.sinks)
    with np.errstate(all="ignore"):
        for i in range(q.shape[-2]):
            first, seen = max(i + offset - more.behind, 0), min(i + offset + more.ahead + 1, keys)
            if seen <= first:
                continue
            scores = (k[..., first:seen, :] @ q[..., i, :, None])[..., 0] * np.float32(scale)
            if more.cap:
                scores = np.float32(more.cap) * np.tanh(scores / np.float32(more.cap))
            if mask is not None:
                scores = scores + mask[..., i, first:seen]
            top = scores.max(axis=-1, keepdims=True)
            if more.change_scores:
                top = np.where(top == -np.inf, np.float32(0), top if sinks is None else np.maximum(top, sinks[:, None]))
            weights = np.exp(scores - top)
            total = (weights[..., None, :] @ v[..., first:seen, :])[..., 0, :]
            sums = weights.sum(axis=-1, keepdims=True)
            if sinks is not None:
                sums = sums + np.exp(sinks[:, None] - top)
            weighted = total / sums
            result[..., i, :] = np.where(sums == 0, np.float32(0), weighted) if more.change_scores else weighted


def attend_all(Q: GPUArray, K: GPUArray, V: GPUArray, out: GPUArray, scale: float) -> None:
    """Every query with every key: blocks of queries, the last one filled up, a head at a time."""
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
