"""The methods of GPUArray that are operations: bound to the class, which is then the class of new arrays.

The compiled core imports this module when it makes the first array. Each method calls its operation directly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.array.array import GPUArray as GPUArray
from pygpukit.array.indexing import index_view
from pygpukit.core.dtypes import as_dtype
from pygpukit.ops import copying, indexing, operands, shape
from pygpukit.ops.elementwise import math
from pygpukit.ops.indexing import padding
from pygpukit.ops.matmul import matmul
from pygpukit.ops.methods.habits import Habits
from pygpukit.ops.methods.operators import Operators
from pygpukit.ops.methods.ordering import Ordering
from pygpukit.ops.methods.reducing import Reductions

if TYPE_CHECKING:
    from pygpukit.core.dtypes import DTypeLike


class Methods(Operators, Reductions, Ordering, Habits):
    """Type checkers see it as a base of GPUArray; bind() gives the class its methods."""

    __slots__ = ()

    # ---- elements ----

    def __getitem__(self: Any, key: Any) -> GPUArray:
        view = index_view(key, self.shape, self.strides, self.offset)
        return indexing.get(self, key) if view is None else self._view(*view)

    def __setitem__(self: Any, key: Any, value: Any) -> None:
        view = index_view(key, self.shape, self.strides, self.offset)
        if view is None:
            indexing.put_at(self, key, value)
            return
        target = self._view(*view)
        value = operands.check_operand(value, "setting elements")
        if operands.is_array(value):
            copying.copy_to(value, target)
        elif target.size:
            copying.fill(target, value)

    @property
    def real(self: Any) -> GPUArray:
        """A view of the real parts; of other types the array itself."""
        return math.real(self)

    @property
    def imag(self: Any) -> GPUArray:
        """A view of the imaginary parts; of other types zeros."""
        return math.imag(self)

    # ---- shapes and indexing, as NumPy's methods ----

    def compress(self: Any, condition: Any, axis: int | None = None) -> GPUArray:
        """gp.compress(condition, self, axis)."""
        return indexing.compress(condition, self, axis)

    def diagonal(self: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> GPUArray:
        """gp.diagonal(self, ...), a view."""
        return shape.diagonal(self, offset, axis1, axis2)

    def flatten(self: Any) -> GPUArray:
        """All elements in C order, 1-D, always a copy."""
        return shape.flatten(self)

    def put(self: Any, indices: Any, values: Any, mode: str = "raise") -> None:
        """gp.put(self, indices, values, mode)."""
        indexing.put(self, indices, values, mode)

    def ravel(self: Any) -> GPUArray:
        """All elements in C order, 1-D; copied only when the strides ask for it."""
        return shape.ravel(self)

    def repeat(self: Any, repeats: Any, axis: int | None = None) -> GPUArray:
        """gp.repeat(self, repeats, axis)."""
        return padding.repeat(self, repeats, axis)

    def squeeze(self: Any, axis: int | Sequence[int] | None = None) -> GPUArray:
        """A view without the axes of one element, or without those given."""
        return shape.squeeze(self, axis)

    def swapaxes(self: Any, axis1: int, axis2: int) -> GPUArray:
        """A view with two axes exchanged."""
        return shape.swapaxes(self, axis1, axis2)

    def take(
        self: Any, indices: Any, axis: int | None = None, out: GPUArray | None = None, mode: str = "raise"
    ) -> GPUArray:
        """gp.take(self, indices, axis, out, mode)."""
        return indexing.take(self, indices, axis, out, mode)

    # ---- copies ----

    def contiguous(self: Any) -> GPUArray:
        """The array itself when it is C-contiguous, else a C-contiguous copy."""
        return copying.contiguous(self)

    def clone(self: Any) -> GPUArray:
        """A new C-contiguous array with the same elements."""
        return copying.clone(self)

    def astype(self: Any, dtype: DTypeLike) -> GPUArray:
        """A new C-contiguous array with the elements converted to dtype, as NumPy converts them.

        Integers wrap, floats to integers truncate (undefined out of range), complex to real drops the imaginary part.
        fp8 and fp4: rounded to nearest even; what is too large becomes NaN in float8_e4m3, infinity in float8_e5m2 and
        6 in float4_e2m1 (so does NaN). int4: integers wrap, floats truncate and saturate, NaN becomes 0.
        """
        return copying.astype(self, as_dtype(dtype))

    # ---- matrices; the element-wise operators are in operators.py ----

    def __matmul__(self: Any, other: GPUArray) -> GPUArray:
        return matmul(self, other)

    def __rmatmul__(self: Any, other: Any) -> GPUArray:
        return matmul(other, self)

    def __imatmul__(self: Any, other: GPUArray) -> GPUArray:
        return matmul(self, other, out=self)

    def _into(self: Any, out: Any, what: str) -> GPUArray:
        """out, with this array's elements in it. Raises as every operation does for an out that does not fit."""
        copying.copy_to(self, operands.check_out(out, self.shape, self.dtype, what))
        return out


class _Empty:
    """What every class has."""

    __slots__ = ()


def bind(methods: type) -> None:
    """Make what a class and its bases define methods of GPUArray itself: a call costs what any method's does."""
    for one in reversed(methods.__mro__[:-1]):
        for name in vars(one).keys() - vars(_Empty).keys():
            setattr(GPUArray, name, vars(one)[name])


bind(Methods)
native.register_array_type(GPUArray)
