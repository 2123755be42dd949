"""Linear and LayerNorm: rows times a weight, and rows normalised."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pygpukit.ops as ops
from pygpukit.ops.matmul.gemm import matmul

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray


class Linear:
    """x W^T + b for x (..., in). weight: (out, in); bias: (out,) or None."""

    def __init__(self, weight: GPUArray, bias: GPUArray | None = None) -> None:
        self.weight, self.bias = weight, bias
        self.out_features, self.in_features = weight.shape

    def __call__(self, x: GPUArray) -> GPUArray:
        result = matmul(x, self.weight.T)
        return result if self.bias is None else ops.add(result, self.bias)


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
