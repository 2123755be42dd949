"""Epilogue: scale, bias, activation and residual that follow the sums of a matrix product."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pygpukit.kernels import activation
from pygpukit.kernels.structure import in_header
from pygpukit.ops import host, raw
from pygpukit.ops.matmul.layout.operand import ALIGNMENT

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.matmul.epilogue.quantise import Conversion

_EPILOGUE = in_header("epilogue.cuh", "Epilogue")


def in_kernel(a: GPUArray, b: GPUArray, out: GPUArray, epilogue: Epilogue) -> bool:
    """An epilogue that a kernel applies in its own launch, but for conversions."""
    return epilogue.conversion is None


def in_another_launch(a: GPUArray, b: GPUArray, out: GPUArray, epilogue: Epilogue) -> bool:
    """Of kernels whose launch ends with the rounded sums."""
    return False


@dataclass(frozen=True)
class Epilogue:
    """act(alpha sum + bias) + beta residual, of each element of a product.

    act: one of linear.py's ACTIVATIONS; "swiglu": silu of the first half of the columns times the second half. bias: as
    many numbers as the product has columns, contiguous. residual: of the result's shape. Both of the product's type, to
    which the result is rounded; conversion: what it becomes then.
    """

    alpha: float = 1.0
    bias: GPUArray | None = None
    act: str | None = None
    residual: GPUArray | None = None
    beta: float = 1.0
    conversion: Conversion | None = None

    def arrays(self) -> list[GPUArray]:
        """Those that there are."""
        return [x for x in (self.bias, self.residual) if x is not None]

    def is_nothing(self) -> bool:
        """True if the rounded sum itself is the result, before it is converted."""
        return self.alpha == 1 and self.act is None and not self.arrays()

    def kind(self) -> str:
        """As a problem has it: "", "elements" or "gated"."""
        return "" if self.is_nothing() else "gated" if self.act == "swiglu" else "elements"

    def by_pieces(self, out: GPUArray) -> bool:
        """True if it can be done in whole pieces of 16 bytes: arrays are dense, their rows whole pieces."""
        arrays = [array for array in (out, self.residual, self.bias) if array is not None]
        return all(
            array.shape[-1] * array.itemsize % ALIGNMENT == 0
            and array.is_contiguous()
            and raw.address(array) % ALIGNMENT == 0
            for array in arrays
        )

    def packed(self, columns: int) -> bytes:
        """epilogue.cuh: Epilogue."""
        return _EPILOGUE.pack(
            alpha=self.alpha,
            beta=self.beta,
            columns=columns,
            activation=activation.number(self.act),
            has_bias=self.bias is not None,
            has_residual=self.residual is not None,
            unused=0,
        )

    def on_host(self, sums: Any) -> Any:
        """The result of sums in float32 or float64, by NumPy."""
        from pygpukit.ops.elementwise import host_functions as functions

        if self.alpha != 1:
            sums = sums * sums.dtype.type(self.alpha)
        if self.bias is not None:
            sums = sums + host.values(self.bias)
        if self.act == "swiglu":
            columns = sums.shape[-1] // 2
            sums = functions.silu(sums[..., :columns]) * sums[..., columns:]
        else:
            sums = functions.activated(sums, self.act)
        if self.residual is None:
            return sums
        return sums + sums.dtype.type(self.beta) * host.values(self.residual)
