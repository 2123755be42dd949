"""Problem: what the plan of attention follows from, and nothing else; Call: the arrays that it is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pygpukit.core import device
from pygpukit.core.device import Facts

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DataType
    from pygpukit.ops.nn.attention.extras import Extras

_FURTHEST = 1 << 28  # positions that a tile kernel tells apart


class Call(NamedTuple):
    """The arrays of attention, Q to out ([batch,] heads, positions, D). scale: of scores. offset: the first query's
    place among the keys; None where the last query stands at the last key. more: with masks, lengths and sinks."""

    Q: GPUArray
    K: GPUArray
    V: GPUArray
    out: GPUArray
    scale: float
    offset: int | None
    more: Extras


class Problem(NamedTuple):
    """Attention of arrays of one type.

    heads: of queries, of all batch elements; group: of them, that share keys. queries, keys: positions. place: of the
    first query among the keys. ahead, behind: keys after and before its own place that a query sees. lengths: keys are
    counted on the device. weighed: a mask, a cap or sinks change scores. reach: elements that an array spans, at most.
    """

    dtype: DataType
    heads: int
    group: int
    queries: int
    keys: int
    dim: int
    place: int
    ahead: int
    behind: int
    lengths: bool
    weighed: bool
    reach: int
    device: Facts

    @classmethod
    def of(cls, call: Call) -> Problem:
        """The problem of the arrays of a call."""
        Q, K, V, _, _, offset, more = call
        heads, queries, dim = Q.shape[-3:]
        keys = K.shape[-2]
        place = keys - queries if offset is None else offset
        return cls(
            Q.dtype,
            heads * (Q.shape[0] if Q.ndim == 4 else 1),
            heads // K.shape[-3],
            queries,
            keys,
            dim,
            max(-_FURTHEST, min(place, _FURTHEST)),
            min(more.ahead, 2 * _FURTHEST),
            min(more.behind, 2 * _FURTHEST),
            more.lengths is not None,
            more.mask is not None or more.cap != 0 or more.sinks is not None,
            max(map(_reach, (Q, K, V))),
            device.current(),
        )

    @property
    def seen(self) -> int:
        """Keys that are read: none behind the last that a query sees, where lengths do not tell."""
        return self.keys if self.lengths else min(self.keys, self.queries + self.place + self.ahead)

    @property
    def causal(self) -> bool:
        """Queries see the keys up to their place, all of them."""
        return self.ahead == 0 and self.behind >= self.seen


def _reach(array: GPUArray) -> int:
    """Elements that it has, or that lie between its first and its last."""
    if array.is_contiguous():
        return array.size
    steps = zip(array.shape, array.strides, strict=True)
    return max(array.size, sum((extent - 1) * abs(stride) for extent, stride in steps) // array.itemsize)
