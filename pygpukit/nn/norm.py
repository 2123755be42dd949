"""Norm: RMS norm or layer norm of rows, as a layer, and as the beginning of a product."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pygpukit.core.errors import InvalidSpecError
from pygpukit.ops import host
from pygpukit.ops.nn import norm as operations

if TYPE_CHECKING:
    from collections.abc import Callable

    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DataType


class Norm:
    """x / sqrt(mean(x * x) + eps) * weight, or with norm_type "layernorm" (x - mean) / sqrt(variance + eps) * weight
    + bias, along the last axis. operation: what computes it in the place of the built-in kernels, None for these."""

    def __init__(
        self,
        weight: GPUArray,
        bias: GPUArray | None = None,
        norm_type: Literal["rmsnorm", "layernorm"] = "rmsnorm",
        eps: float = 1e-5,
    ) -> None:
        if norm_type not in ("rmsnorm", "layernorm"):
            raise InvalidSpecError(f"norm_type is {norm_type!r}, must be 'rmsnorm' or 'layernorm'", "norm_type")
        self.weight, self.bias, self.norm_type, self.eps = weight, bias, norm_type, eps
        self.operation: Callable[..., GPUArray] | None = None

    def __call__(self, x: GPUArray, *, out: GPUArray | None = None) -> GPUArray:
        """The rows of x, normalised: out, which may be x, or a new array of x's type."""
        if self.norm_type == "rmsnorm":
            return (self.operation or operations.rmsnorm)(x, self.weight, self.eps, out=out)
        return (self.operation or operations.layernorm)(x, self.weight, self.bias, self.eps, out=out)

    def rows(self, x: GPUArray, dtype: DataType) -> GPUArray:
        """The rows of x by the operation that replaces the built-in kernels, of a type."""
        result = self(x)
        return result if result.dtype == dtype else result.astype(dtype.name)

    @property
    def centered(self) -> str:
        """True if the mean is taken away, as kernels are named."""
        return "true" if self.norm_type == "layernorm" else "false"

    @property
    def shift(self) -> GPUArray:
        """The bias, or what kernels are given in its place."""
        return self.weight if self.bias is None else self.bias

    @property
    def arrays(self) -> list[GPUArray]:
        """Weight and bias."""
        return [self.weight, *([] if self.bias is None else [self.bias])]

    @property
    def operands(self) -> tuple[GPUArray, GPUArray | None, float, bool]:
        """As native.host_linear() takes it."""
        return self.weight, self.bias, self.eps, self.norm_type == "layernorm"

    def on_host(self, x: Any) -> Any:
        """The rows of a float32 array, normalised and rounded to the weight's type; inside a host launch."""
        import numpy as np

        eps = np.float32(self.eps)
        if self.norm_type == "layernorm":
            x = x - x.mean(axis=-1, keepdims=True, dtype=np.float32)
        scale = np.reciprocal(np.sqrt((x * x).mean(axis=-1, keepdims=True, dtype=np.float32) + eps))
        result = x * scale * host.values(self.weight)
        if self.bias is not None:
            result = result + host.values(self.bias)
        return host.converted(result, self.weight.dtype)


RMSNorm = LayerNorm = Norm
