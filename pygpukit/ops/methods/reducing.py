"""The methods of arrays that reduce, as the functions of ops/reduce."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit.ops import reduce as reduction
from pygpukit.ops.contraction import products

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DTypeLike
    from pygpukit.ops.reduce import Axis


class Reductions:
    """A base of GPUArray."""

    __slots__ = ()

    def all(
        self: Any, axis: Axis = None, out: GPUArray | None = None, keepdims: bool = False, *, where: Any = None
    ) -> GPUArray:
        """True where all elements along axis are true."""
        return reduction.all(self, axis, out, keepdims, where=where)

    def any(
        self: Any, axis: Axis = None, out: GPUArray | None = None, keepdims: bool = False, *, where: Any = None
    ) -> GPUArray:
        """True where any element along axis is true."""
        return reduction.any(self, axis, out, keepdims, where=where)

    def argmax(self: Any, axis: int | None = None, out: GPUArray | None = None, *, keepdims: bool = False) -> GPUArray:
        """Index of the first largest element along axis."""
        return reduction.argmax(self, axis, out, keepdims)

    def argmin(self: Any, axis: int | None = None, out: GPUArray | None = None, *, keepdims: bool = False) -> GPUArray:
        """Index of the first smallest element along axis."""
        return reduction.argmin(self, axis, out, keepdims)

    def max(
        self: Any,
        axis: Axis = None,
        out: GPUArray | None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> GPUArray:
        """The largest element along axis."""
        return reduction.max(self, axis, out, keepdims, initial, where)

    def mean(
        self: Any,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: GPUArray | None = None,
        keepdims: bool = False,
        *,
        where: Any = None,
    ) -> GPUArray:
        """Arithmetic mean along axis."""
        return reduction.mean(self, axis, dtype, out, keepdims, where=where)

    def min(
        self: Any,
        axis: Axis = None,
        out: GPUArray | None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> GPUArray:
        """The smallest element along axis."""
        return reduction.min(self, axis, out, keepdims, initial, where)

    def prod(
        self: Any,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: GPUArray | None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> GPUArray:
        """Product along axis."""
        return reduction.prod(self, axis, dtype, out, keepdims, initial, where)

    def std(
        self: Any,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: GPUArray | None = None,
        ddof: float = 0,
        keepdims: bool = False,
        *,
        where: Any = None,
    ) -> GPUArray:
        """Standard deviation along axis."""
        return reduction.std(self, axis, dtype, out, ddof, keepdims, where=where)

    def sum(
        self: Any,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: GPUArray | None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> GPUArray:
        """Sum along axis."""
        return reduction.sum(self, axis, dtype, out, keepdims, initial, where)

    def trace(
        self: Any,
        offset: int = 0,
        axis1: int = 0,
        axis2: int = 1,
        dtype: DTypeLike | None = None,
        out: GPUArray | None = None,
    ) -> GPUArray:
        """Sum of the diagonal of two axes; see gp.trace()."""
        return products.trace(self, offset, axis1, axis2, dtype, out)

    def var(
        self: Any,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: GPUArray | None = None,
        ddof: float = 0,
        keepdims: bool = False,
        *,
        where: Any = None,
    ) -> GPUArray:
        """Variance along axis."""
        return reduction.var(self, axis, dtype, out, ddof, keepdims, where=where)
