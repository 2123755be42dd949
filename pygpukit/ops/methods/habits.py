"""Methods of arrays that NumPy's have: copy, tolist, clip, round, dot, and how a 0-d array is formatted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit.array.order import columns
from pygpukit.core.dtypes import STORAGE_ONLY, bfloat16, float32, int4, int8
from pygpukit.ops import copying, elementwise
from pygpukit.ops.elementwise import math
from pygpukit.ops.matmul import products

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.operands import Operand


class Habits:
    """A base of GPUArray."""

    __slots__ = ()

    def copy(self: Any, order: str = "C") -> GPUArray:
        """A new array with the same elements, dense in this order."""
        return copying.clone(self.T).T if order != "C" and columns(order, self) else copying.clone(self)

    def tolist(self: Any) -> Any:
        """The elements as nested lists of Python numbers; of a 0-d array the number. Waits for the array's work."""
        if self.dtype == bfloat16 or self.dtype in STORAGE_ONLY:  # to_numpy() tells their bits
            self = copying.astype(self, int8 if self.dtype == int4 else float32)
        return self.to_numpy().tolist()

    def tobytes(self: Any, order: str = "C") -> bytes:
        """The bytes of the elements in C or F order, on the host. Waits for the array's work."""
        data: bytes = self.to_numpy().tobytes(order)
        return data

    def conj(self: Any, out: GPUArray | None = None) -> GPUArray:
        """gp.conj(self)."""
        return elementwise.conj(self, out=out)

    def conjugate(self: Any, out: GPUArray | None = None) -> GPUArray:
        """gp.conj(self)."""
        return elementwise.conj(self, out=out)

    def clip(
        self: Any, min: Operand | None = None, max: Operand | None = None, out: GPUArray | None = None
    ) -> GPUArray:
        """gp.clip(self, min, max)."""
        return elementwise.clip(self, min, max, out=out)

    def round(self: Any, decimals: int = 0, out: GPUArray | None = None) -> GPUArray:
        """gp.round(self, decimals)."""
        return math.round(self, decimals, out=out)

    def dot(self: Any, b: Operand, out: GPUArray | None = None) -> GPUArray:
        """gp.dot(self, b, out)."""
        return products.dot(self, b, out)

    def __round__(self: Any, digits: int | None = None) -> Any:
        """round(x): of a 0-d array a Python number, as NumPy's scalars; of others the array rounded."""
        if self.ndim == 0:
            return round(self.item(), digits)
        return math.round(self, digits or 0)

    def __format__(self: Any, spec: str) -> str:
        """A 0-d array formats as its number, others only without a format."""
        if self.ndim == 0:
            return format(self.item(), spec)
        if spec:
            raise TypeError(
                f"an array of shape {self.shape} has no format {spec!r}; format its elements, or print it without one"
            )
        return str(self)
