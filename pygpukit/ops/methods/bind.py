"""The methods of GPUArray that are operations: bound to the class, which is then the class of new arrays.

The compiled core imports this module when it makes the first array. Each method calls its operation directly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.array import promotion
from pygpukit.array.array import GPUArray as GPUArray
from pygpukit.array.indexing import index_view
from pygpukit.array.order import columns
from pygpukit.core.dtypes import as_dtype
from pygpukit.core.errors import DTypeError
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
        operands.check_writable(self, "setting elements")
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

    @real.setter
    def real(self: Any, value: Any) -> None:
        math.real(self)[...] = value

    @property
    def imag(self: Any) -> GPUArray:
        """A view of the imaginary parts; of other types zeros that cannot be written."""
        return math.imag(self)

    @imag.setter
    def imag(self: Any, value: Any) -> None:
        if self.dtype not in promotion.COMPLEX:
            raise TypeError(f"imag: an array of {self.dtype} has no imaginary parts to set; convert it first")
        math.imag(self)[...] = value

    # ---- shapes and indexing, as NumPy's methods ----

    def compress(self: Any, condition: Any, axis: int | None = None) -> GPUArray:
        """gp.compress(condition, self, axis)."""
        return indexing.compress(condition, self, axis)

    def diagonal(self: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> GPUArray:
        """gp.diagonal(self, ...), a view."""
        return shape.diagonal(self, offset, axis1, axis2)

    def flatten(self: Any, order: str = "C") -> GPUArray:
        """All elements, 1-D, in this order, always a copy."""
        return shape.flatten(self, order)

    def put(self: Any, indices: Any, values: Any, mode: str = "raise") -> None:
        """gp.put(self, indices, values, mode)."""
        indexing.put(self, indices, values, mode)

    def ravel(self: Any, order: str = "C") -> GPUArray:
        """All elements, 1-D, in this order; copied only when the strides ask for it."""
        return shape.ravel(self, order)

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

    def astype(
        self: Any, dtype: DTypeLike, order: str = "C", casting: str = "unsafe", *, copy: bool = True
    ) -> GPUArray:
        """A new array with the elements converted to dtype, as NumPy converts them.

        order: "C", "F", or "A" and "K" for the array's own. casting: the rule that the conversion must keep, else
        DTypeError. copy: False gives the array itself where there is nothing to convert.
        Integers wrap, floats to integers truncate (undefined out of range), complex to real drops the imaginary part.
        fp8 and fp4: rounded to nearest even; what is too large becomes NaN in float8_e4m3, infinity in float8_e5m2 and
        6 in float4_e2m1 (so does NaN). int4: integers wrap, floats truncate and saturate, NaN becomes 0.
        """
        target = as_dtype(dtype)
        if casting != "unsafe":
            promotion.check_casting(casting, "astype")
            if not promotion.can_cast(self.dtype, target, casting):
                raise DTypeError(f"astype: {self.dtype} does not convert to {target} with casting={casting!r}")
        if order != "C" and columns(order, self):
            same = not copy and target is self.dtype and self.T.is_contiguous()
            return self if same else copying.astype(self.T, target).T
        return self if not copy and target is self.dtype else copying.astype(self, target)

    # ---- matrices; the element-wise operators are in operators.py ----

    def __matmul__(self: Any, other: Any) -> Any:
        other = _matrix(other)
        return NotImplemented if other is None else matmul(self, other)

    def __rmatmul__(self: Any, other: Any) -> Any:
        other = _matrix(other)
        return NotImplemented if other is None else matmul(other, self)

    def __imatmul__(self: Any, other: Any) -> Any:
        other = _matrix(other)
        return NotImplemented if other is None else matmul(self, other, out=self)

    def __contains__(self: Any, value: Any) -> bool:
        """True where any element equals the value."""
        equal: Any = self == value
        return bool(equal.any().item()) if operands.is_array(equal) else False

    def _into(self: Any, out: Any, what: str) -> GPUArray:
        """out, with this array's elements in it. Raises as every operation does for an out that does not fit."""
        copying.copy_to(self, operands.check_out(out, self.shape, self.dtype, what))
        return out


def _matrix(other: Any) -> Any:
    """An operand of @, None for a type that is none."""
    if isinstance(other, native.ArrayBase):
        return other
    try:
        return operands.check_operand(other, "matmul")
    except operands.NoOperandError:
        return None


class _Empty:
    """The methods that every class has."""

    __slots__ = ()


def bind(methods: type) -> None:
    """Make what a class and its bases define methods of GPUArray itself: a call costs what any method's does."""
    for one in reversed(methods.__mro__[:-1]):
        for name in vars(one).keys() - vars(_Empty).keys():
            setattr(GPUArray, name, vars(one)[name])


bind(Methods)
native.register_array_type(GPUArray)
