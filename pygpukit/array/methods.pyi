"""Stub of the methods that ops/methods/bind.py gives to GPUArray; there is no file of this name at run time.

Written by tools/name_stubs.py from the classes in ops/methods/.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

from pygpukit.array.array import GPUArray
from pygpukit.array.promotion import Scalar
from pygpukit.core.dtypes import DTypeLike

Axis: TypeAlias = int | tuple[int, ...] | None
Operand: TypeAlias = GPUArray | Scalar

class Methods:
    def __add__(self: Any, other: Any) -> Any: ...
    def __radd__(self: Any, other: Any) -> Any: ...
    def __iadd__(self: Any, other: Any) -> Any: ...
    def __sub__(self: Any, other: Any) -> Any: ...
    def __rsub__(self: Any, other: Any) -> Any: ...
    def __isub__(self: Any, other: Any) -> Any: ...
    def __mul__(self: Any, other: Any) -> Any: ...
    def __rmul__(self: Any, other: Any) -> Any: ...
    def __imul__(self: Any, other: Any) -> Any: ...
    def __truediv__(self: Any, other: Any) -> Any: ...
    def __rtruediv__(self: Any, other: Any) -> Any: ...
    def __itruediv__(self: Any, other: Any) -> Any: ...
    def __floordiv__(self: Any, other: Any) -> Any: ...
    def __rfloordiv__(self: Any, other: Any) -> Any: ...
    def __ifloordiv__(self: Any, other: Any) -> Any: ...
    def __mod__(self: Any, other: Any) -> Any: ...
    def __rmod__(self: Any, other: Any) -> Any: ...
    def __imod__(self: Any, other: Any) -> Any: ...
    def __pow__(self: Any, other: Any) -> Any: ...
    def __rpow__(self: Any, other: Any) -> Any: ...
    def __ipow__(self: Any, other: Any) -> Any: ...
    def __and__(self: Any, other: Any) -> Any: ...
    def __rand__(self: Any, other: Any) -> Any: ...
    def __iand__(self: Any, other: Any) -> Any: ...
    def __or__(self: Any, other: Any) -> Any: ...
    def __ror__(self: Any, other: Any) -> Any: ...
    def __ior__(self: Any, other: Any) -> Any: ...
    def __xor__(self: Any, other: Any) -> Any: ...
    def __rxor__(self: Any, other: Any) -> Any: ...
    def __ixor__(self: Any, other: Any) -> Any: ...
    def __lshift__(self: Any, other: Any) -> Any: ...
    def __rlshift__(self: Any, other: Any) -> Any: ...
    def __ilshift__(self: Any, other: Any) -> Any: ...
    def __rshift__(self: Any, other: Any) -> Any: ...
    def __rrshift__(self: Any, other: Any) -> Any: ...
    def __irshift__(self: Any, other: Any) -> Any: ...
    def __neg__(self: Any) -> Any: ...
    def __pos__(self: Any) -> Any: ...
    def __abs__(self: Any) -> Any: ...
    def __invert__(self: Any) -> Any: ...
    def __eq__(self: Any, other: object) -> Any: ...
    def __ne__(self: Any, other: object) -> Any: ...
    def __lt__(self: Any, other: Any) -> Any: ...
    def __le__(self: Any, other: Any) -> Any: ...
    def __gt__(self: Any, other: Any) -> Any: ...
    def __ge__(self: Any, other: Any) -> Any: ...
    def __divmod__(self: Any, other: Operand) -> Any: ...
    def __rdivmod__(self: Any, other: Operand) -> Any: ...
    def __hash__(self) -> int: ...
    def all(
        self: Any, axis: Axis = None, out: GPUArray | None = None, keepdims: bool = False, *, where: Any = None
    ) -> GPUArray:
        """True where all elements along axis are true."""

    def any(
        self: Any, axis: Axis = None, out: GPUArray | None = None, keepdims: bool = False, *, where: Any = None
    ) -> GPUArray:
        """True where any element along axis is true."""

    def argmax(self: Any, axis: int | None = None, out: GPUArray | None = None, *, keepdims: bool = False) -> GPUArray:
        """Index of the first largest element along axis."""

    def argmin(self: Any, axis: int | None = None, out: GPUArray | None = None, *, keepdims: bool = False) -> GPUArray:
        """Index of the first smallest element along axis."""

    def max(
        self: Any,
        axis: Axis = None,
        out: GPUArray | None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> GPUArray:
        """The largest element along axis."""

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

    def min(
        self: Any,
        axis: Axis = None,
        out: GPUArray | None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> GPUArray:
        """The smallest element along axis."""

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

    def trace(
        self: Any,
        offset: int = 0,
        axis1: int = 0,
        axis2: int = 1,
        dtype: DTypeLike | None = None,
        out: GPUArray | None = None,
    ) -> GPUArray:
        """Sum of the diagonal of two axes; see gp.trace()."""

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

    def argsort(
        self: Any,
        axis: int | None = -1,
        kind: str | None = None,
        *,
        descending: bool = False,
        stable: bool | None = True,
    ) -> GPUArray:
        """int64 indices that sort the array along axis, stably; see gp.argsort()."""

    def argpartition(self: Any, kth: Any, axis: int | None = -1, kind: str = "introselect") -> GPUArray:
        """int64 indices that partition the array along axis; see gp.argpartition()."""

    def cumprod(self: Any, axis: int | None = None, dtype: DTypeLike | None = None) -> GPUArray:
        """Products of the elements up to each one; see gp.cumprod()."""

    def cumsum(self: Any, axis: int | None = None, dtype: DTypeLike | None = None) -> GPUArray:
        """Sums of the elements up to each one; see gp.cumsum()."""

    def nonzero(self: Any) -> tuple[GPUArray, ...]:
        """Coordinates of the elements that are not zero; see gp.nonzero(). Waits for their count."""

    def partition(self: Any, kth: Any, axis: int = -1, kind: str = "introselect") -> None:
        """Partition the array itself along axis, as NumPy's method; gp.partition() gives a partitioned copy."""

    def searchsorted(self: Any, v: Operand, side: str = "left", sorter: GPUArray | None = None) -> GPUArray:
        """Positions in this sorted array at which v keeps it sorted; see gp.searchsorted()."""

    def sort(
        self: Any, axis: int = -1, kind: str | None = None, *, descending: bool = False, stable: bool | None = True
    ) -> None:
        """Sort the array itself along axis, as NumPy's method; gp.sort() gives a sorted copy."""

    def topk(self: Any, k: int, axis: int = -1, largest: bool = True, sorted: bool = True) -> tuple[GPUArray, GPUArray]:
        """(values, indices) of the k largest or smallest elements along axis; see gp.topk()."""

    def copy(self: Any, order: str = "C") -> GPUArray:
        """A new array with the same elements, dense in this order."""

    def tolist(self: Any) -> Any:
        """The elements as nested lists of Python numbers; of a 0-d array the number. Waits for the array's work."""

    def tobytes(self: Any, order: str = "C") -> bytes:
        """The bytes of the elements in C or F order, on the host. Waits for the array's work."""

    def conj(self: Any, out: GPUArray | None = None) -> GPUArray:
        """gp.conj(self)."""

    def conjugate(self: Any, out: GPUArray | None = None) -> GPUArray:
        """gp.conj(self)."""

    def clip(
        self: Any, min: Operand | None = None, max: Operand | None = None, out: GPUArray | None = None
    ) -> GPUArray:
        """gp.clip(self, min, max)."""

    def round(self: Any, decimals: int = 0, out: GPUArray | None = None) -> GPUArray:
        """gp.round(self, decimals)."""

    def dot(self: Any, b: Operand, out: GPUArray | None = None) -> GPUArray:
        """gp.dot(self, b, out)."""

    def __round__(self: Any, digits: int | None = None) -> Any:
        """round(x): of a 0-d array a Python number, as NumPy's scalars; of others the array rounded."""

    def __format__(self: Any, spec: str) -> str:
        """A 0-d array formats as its number, others only without a format."""

    def __getitem__(self: Any, key: Any) -> GPUArray: ...
    def __setitem__(self: Any, key: Any, value: Any) -> None: ...
    @property
    def real(self: Any) -> GPUArray:
        """A view of the real parts; of other types the array itself."""

    @real.setter
    def real(self: Any, value: Any) -> None: ...
    @property
    def imag(self: Any) -> GPUArray:
        """A view of the imaginary parts; of other types zeros that cannot be written."""

    @imag.setter
    def imag(self: Any, value: Any) -> None: ...
    def compress(self: Any, condition: Any, axis: int | None = None) -> GPUArray:
        """gp.compress(condition, self, axis)."""

    def diagonal(self: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> GPUArray:
        """gp.diagonal(self, ...), a view."""

    def flatten(self: Any, order: str = "C") -> GPUArray:
        """All elements, 1-D, in this order, always a copy."""

    def put(self: Any, indices: Any, values: Any, mode: str = "raise") -> None:
        """gp.put(self, indices, values, mode)."""

    def ravel(self: Any, order: str = "C") -> GPUArray:
        """All elements, 1-D, in this order; copied only when the strides ask for it."""

    def repeat(self: Any, repeats: Any, axis: int | None = None) -> GPUArray:
        """gp.repeat(self, repeats, axis)."""

    def squeeze(self: Any, axis: int | Sequence[int] | None = None) -> GPUArray:
        """A view without the axes of one element, or without those given."""

    def swapaxes(self: Any, axis1: int, axis2: int) -> GPUArray:
        """A view with two axes exchanged."""

    def take(
        self: Any, indices: Any, axis: int | None = None, out: GPUArray | None = None, mode: str = "raise"
    ) -> GPUArray:
        """gp.take(self, indices, axis, out, mode)."""

    def contiguous(self: Any) -> GPUArray:
        """The array itself when it is C-contiguous, else a C-contiguous copy."""

    def clone(self: Any) -> GPUArray:
        """A new C-contiguous array with the same elements."""

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

    def __matmul__(self: Any, other: Any) -> Any: ...
    def __rmatmul__(self: Any, other: Any) -> Any: ...
    def __imatmul__(self: Any, other: Any) -> Any: ...
    def __contains__(self: Any, value: Any) -> bool:
        """True where any element equals the value."""

    def _into(self: Any, out: Any, what: str) -> GPUArray:
        """out, with this array's elements in it. Raises as every operation does for an out that does not fit."""
