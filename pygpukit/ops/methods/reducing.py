"""The methods of arrays that reduce, as the functions of ops/reduce."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit.ops import reduce as reduction

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DTypeLike
    from pygpukit.ops.reduce import Axis


class Reductions:
    """A base of GPUArray."""

    __slots__ = ()

    def all(self: Any, axis: Axis = None, out: GPUArray | None = None, keepdims: bool = False) -> GPUArray:
        """Whether all elements along axis are true."""
        return reduction.all(self, axis, out, keepdims)

    def any(self: Any, axis: Axis = None, out: GPUArray | None = None, keepdims: bool = False) -> GPUArray:
        """Whether any element along axis is true."""
        return reduction.any(self, axis, out, keepdims)

    def argmax(self: Any, axis: int | None = None, out: GPUArray | None = None, *, keepdims: bool = False) -> GPUArray:
        """Index of the first largest element along axis."""
        return reduction.argmax(self, axis, out, keepdims)

    def argmin(self: Any, axis: int | None = None, out: GPUArray | None = None, *, keepdims: bool = False) -> GPUArray:
        """Index of the first smallest element along axis."""
        return reduction.argmin(self, axis, out, keepdims)

    def max(self: Any, axis: Axis = None, out: GPUArray | None = None, keepdims: bool = False) -> GPUArray:
        """The largest element along axis."""
        return reduction.max(self, axis, out, keepdims)

    def mean(
        self: Any,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: GPUArray | None = None,
        keepdims: bool = False,
    ) -> GPUArray:
        """Arithmetic mean along axis."""
        return reduction.mean(self, axis, dtype, out, keepdims)

    def min(self: Any, axis: Axis = None, out: GPUArray | None = None, keepdims: bool = False) -> GPUArray:
        """The smallest element along axis."""
        return reduction.min(self, axis, out, keepdims)

    def prod(
        self: Any,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: GPUArray | None = None,
        keepdims: bool = False,
    ) -> GPUArray:
        """Product along axis."""
        return reduction.prod(self, axis, dtype, out, keepdims)

    def std(
        self: Any,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: GPUArray | None = None,
        ddof: float = 0,
        keepdims: bool = False,
    ) -> GPUArray:
        """Standard deviation along axis."""
        return reduction.std(self, axis, dtype, out, ddof, keepdims)

    def sum(
        self: Any,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: GPUArray | None = None,
        keepdims: bool = False,
    ) -> GPUArray:
        """Sum along axis."""
        return reduction.sum(self, axis, dtype, out, keepdims)

    def var(
        self: Any,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: GPUArray | None = None,
        ddof: float = 0,
        keepdims: bool = False,
    ) -> GPUArray:
        """Variance along axis."""
        return reduction.var(self, axis, dtype, out, ddof, keepdims)
