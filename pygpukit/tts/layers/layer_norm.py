"""LayerNorm: rows normalised, with or without weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pygpukit.ops as ops

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray


class LayerNorm:
    """Normalisation along the last axis. weight, bias: its length, or None."""

    def __init__(self, weight: GPUArray | None, bias: GPUArray | None = None, eps: float = 1e-5) -> None:
        self.weight, self.bias, self.eps = weight, bias, eps

    @property
    def normalized_shape(self) -> tuple[int, ...]:
        """The weight's shape."""
        return () if self.weight is None else self.weight.shape

    def __call__(self, x: GPUArray) -> GPUArray:
        return ops.layernorm(x, self.weight, self.bias, self.eps)
