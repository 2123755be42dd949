"""Problem: what the plan of a product follows from, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING

from pygpukit.core import device
from pygpukit.core.cached import cached_property
from pygpukit.core.device import Facts
from pygpukit.core.dtypes import bfloat16, float16, float32, int8, int32
from pygpukit.ops.matmul.layout.batch import is_one_product
from pygpukit.ops.matmul.layout.operand import Operand

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DataType
    from pygpukit.ops.matmul.epilogue.epilogue import Epilogue

MAX_BATCH = 65535  # a grid's second extent
FP8 = ("fp8", "decoded")
FP8_SINCE = 89  # compute capability 8.9
_PADDING = 15  # elements that a row is filled up with, at most


def family(operands: DataType, result: DataType, tf32: bool) -> str | None:
    """The tensor-core family of operands of one type and a result of another: "half", "int8" or "tf32"; None where
    CUDA cores do. tf32: allowed."""
    if operands == result and operands in (bfloat16, float16):
        return "half"
    if operands == int8 and result == int32:
        return "int8"
    return "tf32" if tf32 and operands == result == float32 else None


@dataclass(frozen=True)
class Problem:
    """a @ b, stacks of matrices with the same batch axes.

    family: of family(), and "fp8" and "decoded" (half precision with fp8 weights). dtype, result: of the operands, once
    they are converted, and of the product. invariant: a row's bits depend on no other row. epilogue: "" for none,
    "elements" for what follows element by element, "gated" for what joins columns. scales: why tensor cores do not take
    the operands' scales, "" where they do.
    """

    family: str | None
    dtype: DataType
    result: DataType
    a: Operand
    b: Operand
    invariant: bool = True
    epilogue: str = ""
    scales: str = ""
    device: Facts = field(default_factory=lambda: device.current())

    @classmethod
    def of(
        cls,
        family: str | None,
        a: GPUArray,
        b: GPUArray,
        result: DataType,
        dtype: DataType | None = None,
        *,
        invariant: bool = True,
        epilogue: Epilogue | None = None,
        scales: str = "",
    ) -> Problem:
        """The problem of two arrays. dtype: what they are converted to first, into dense copies."""
        dtype = dtype or a.dtype
        left, right = (
            Operand.of(x) if x.dtype == dtype else Operand.dense(tuple(x.shape), dtype.itemsize) for x in (a, b)
        )
        return cls(family, dtype, result, left, right, invariant, "" if epilogue is None else epilogue.kind(), scales)

    @cached_property
    def extents(self) -> tuple[int, int, int, int]:
        """Products, m, n, k."""
        *batch, m, k = self.a.shape
        return prod(batch), m, self.b.shape[-1], k

    @cached_property
    def folded(self) -> Problem:
        """The same with the rows of all products in one, where they have one right operand: what kernels launch."""
        if len(self.a.shape) == 2 or not is_one_product(self.b, self.a):
            return self
        a, b = self.a.rows(), self.b.matrix()
        return self if (a, b) == (self.a, self.b) else replace(self, a=a, b=b)

    @cached_property
    def a_transposed(self) -> bool:
        """a is read along m."""
        in_place = self.folded.a.in_place()
        return in_place is not None and in_place[0]

    @cached_property
    def b_along_k(self) -> bool:
        """b is read along k, where it lies or from a copy."""
        in_place = self.folded.b.in_place()
        return in_place is None or in_place[0]

    @cached_property
    def uncounted(self) -> str:
        """Why tensor cores do not make the product whatever kernels there are, "" where they may."""
        products, m, n, k = self.extents
        if self.family is None:
            return f"{self.dtype} is computed as it is, by multiply-adds in ascending order"
        if not products * m * n * k:
            return "the product is empty"
        width, depth = n + _PADDING, k + _PADDING
        if products > MAX_BATCH or max(m * depth, depth * width, m * width) * products > 2**31 - 1:
            return "an operand has more elements than a tile kernel counts"
        if self.family in FP8 and self.device.capability < FP8_SINCE:
            return "the device's tensor cores know no fp8; decoded to float32, on CUDA cores"
        return ""
