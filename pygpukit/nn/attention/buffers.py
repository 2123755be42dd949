"""Buffers that attention writes between its launches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.array import factory
from pygpukit.core.dtypes import float32

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray


@dataclass
class AttentionBuffers:
    """(R, q + k + v) and (R, q), of the weights' type, for up to R rows.

    counters: int32 (R, heads), zeros before and after each decode step, in which its blocks count. whole: of views, the
    buffers whose first rows they are.
    """

    qkv: GPUArray
    out: GPUArray
    counters: GPUArray
    whole: AttentionBuffers | None = None
    _partials: GPUArray | None = None

    @classmethod
    def of(cls, count: int, qkv: int, out: int, heads: int, dtype: str) -> AttentionBuffers:
        """New ones for up to count rows."""
        return cls(
            factory.zeros((count, qkv), dtype),
            factory.zeros((count, out), dtype),
            factory.zeros((count, heads), "int32"),
        )

    def partials(self, width: int) -> GPUArray:
        """Room for the partial results of a decode step, float32 (R * width,) or more: the same for every layer, and
        for all views."""
        if self.whole is not None:
            return self.whole.partials(width)
        size = self.qkv.shape[0] * width
        if self._partials is None or self._partials.size < size:
            self._partials = native.empty((size,), float32)
        return self._partials

    def first(self, count: int) -> AttentionBuffers:
        """Views of the first rows."""
        return AttentionBuffers(self.qkv[:count], self.out[:count], self.counters[:count], self.whole or self)
