"""GPUArray: a strided n-dimensional array in device memory, with NumPy's habits and no implicit transfers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.core import layout, scalars
from pygpukit.core.dtypes import as_dtype
from pygpukit.core.errors import ShapeError
from pygpukit.core.format import array_repr
from pygpukit.core.indexing import index_view
from pygpukit.core.interop import cuda_array_interface
from pygpukit.ops import copying, elementwise, operands, pointwise
from pygpukit.ops.matmul.gemm import matmul

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.core.dtypes import DTypeLike
    from pygpukit.ops.operands import Operand


class GPUArray(native.ArrayBase):
    """An array on the device.

    Indexing with integers, slices (any step), None and "..." gives views; assigning through them writes on the device.
    Operators broadcast and promote as NumPy 2. Work is asynchronous on the current stream; to_numpy(), item(), float(),
    int(), bool() and repr() wait for it and copy to the host, nothing else does.

    GPUArray(shape, dtype) is empty(shape, dtype).
    """

    __slots__ = ()
    __array_ufunc__ = None  # NumPy leaves operators to this class, which refuses host arrays by name

    def __new__(cls, shape: int | tuple[int, ...], dtype: DTypeLike = "float32") -> GPUArray:
        return native.empty(shape, dtype)

    # ---- attributes ----

    @property
    def T(self) -> GPUArray:
        """A view with the axes in reverse order."""
        return self.transpose()

    @property
    def on_gpu(self) -> bool:
        """False while the pool keeps the array's memory on the host; any use brings it back."""
        return self.resident

    @property
    def last_access(self) -> float:
        """When a launch or copy last used the array's memory, in seconds since the process started."""
        return self.last_use_ns * 1e-9

    # ---- to the host ----

    def to_numpy(self) -> np.ndarray[Any, Any]:
        """A copy on the host, C-contiguous. Waits for the array's work; Ctrl-C interrupts.

        Types NumPy lacks come as their bits: bfloat16 as uint16, 8-bit and 4-bit floats as uint8, int4 as int8; convert
        with .astype("float32") first for values.
        """
        import numpy as np

        result = np.empty(self.shape, self.dtype.to_numpy_dtype())
        if result.size:
            native.copy_to_host(result, copying.contiguous(self))
        return result

    def item(self) -> Any:
        """The only element as a Python number. Raises ShapeError unless size is 1. Waits for the array's work."""
        if self.size != 1:
            raise ShapeError(f"item(): the array has {self.size} elements, shape {self.shape}; index one first")
        data = bytearray(self.itemsize)
        native.copy_to_host(data, copying.contiguous(self))
        return scalars.decode(bytes(data), self.dtype)

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ShapeError(
                f"the truth value of an array with {self.size} elements is ambiguous; reduce it to one element first"
            )
        return bool(self.item())

    def __index__(self) -> int:
        if self.ndim or not isinstance(value := self.item(), int) or isinstance(value, bool):
            raise TypeError(f"only 0-d integer arrays are indices, this is {self.dtype} of shape {self.shape}")
        return value

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise TypeError(
            f"a GPUArray of shape {self.shape} is not converted to NumPy implicitly; "
            "call .to_numpy(), which copies it to the host"
        )

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return cuda_array_interface(self)

    # ---- views ----

    def __getitem__(self, key: Any) -> GPUArray:
        return self._view(*index_view(key, self.shape, self.strides, self.offset))

    def __setitem__(self, key: Any, value: Any) -> None:
        target = self[key]
        value = operands.check_operand(value, "setting elements")
        if operands.is_array(value):
            copying.copy_to(value, target)
        elif target.size:
            copying.fill(target, value)

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of a 0-d array; use .size")
        return self.shape[0]

    def __iter__(self) -> Iterator[GPUArray]:
        return (self[i] for i in range(len(self)))

    def reshape(self, *shape: Any) -> GPUArray:
        """The same elements in C order in another shape; one extent may be -1. A view if strides allow, else copied."""
        return self._reshaped(_extents(shape), "reshape", may_copy=True)

    def view(self, new_shape: Any) -> GPUArray:
        """Another view of the same memory. An int or tuple is a shape, a data type reinterprets the bits.

        Raises ShapeError when the shape cannot be had without a copy, or when the types differ in size.
        """
        if isinstance(new_shape, (int, tuple, list)):
            return self._reshaped(_extents((new_shape,)), "view", may_copy=False)
        dtype = as_dtype(new_shape)
        if dtype.itemsize != self.itemsize:
            raise ShapeError(
                f"view: {self.dtype} has {self.itemsize} bytes, {dtype} has {dtype.itemsize}; use .astype()"
            )
        return native.view(self, self.shape, self.strides, self.offset, dtype)

    def transpose(self, *axes: Any) -> GPUArray:
        """A view with permuted axes, reversed when none are given."""
        order = _extents(axes) if axes and axes != (None,) else tuple(reversed(range(self.ndim)))
        order = tuple(layout.normalize_axis(axis, self.ndim, "transpose") for axis in order)
        if sorted(order) != list(range(self.ndim)):
            raise ShapeError(
                f"transpose: axes {order} are not a permutation of the {self.ndim} axes of shape {self.shape}"
            )
        return self._view(tuple(self.shape[i] for i in order), tuple(self.strides[i] for i in order), self.offset)

    def permute(self, *axes: Any) -> GPUArray:
        """transpose() with all axes given."""
        return self.transpose(*axes)

    def narrow(self, offset: int, length: int) -> GPUArray:
        """A 1-D view of `length` elements from element `offset` on, in C order. The array must be contiguous."""
        return self._reshaped((self.size,), "narrow", may_copy=False)[_range(offset, length, self.size, "narrow")]

    def slice_rows(self, num_rows: int) -> GPUArray:
        """A view of the first num_rows rows."""
        return self[_range(0, num_rows, len(self), "slice_rows")]

    # ---- copies ----

    def contiguous(self) -> GPUArray:
        """The array itself when it is C-contiguous, else a C-contiguous copy."""
        return copying.contiguous(self)

    def clone(self) -> GPUArray:
        """A new C-contiguous array with the same elements."""
        return copying.clone(self)

    def astype(self, dtype: DTypeLike) -> GPUArray:
        """A new C-contiguous array with the elements converted to dtype, as NumPy converts them.

        Integers wrap, floats to integers truncate (undefined out of range), complex to real drops the imaginary part.
        """
        return copying.astype(self, as_dtype(dtype))

    def __copy__(self) -> GPUArray:
        return self.clone()

    def __deepcopy__(self, memo: Any) -> GPUArray:
        return self.clone()

    def __reduce__(self) -> Any:
        raise TypeError("a GPUArray is not pickled: its memory is this process's; pickle .to_numpy() instead")

    def fill(self, value: Any) -> None:
        """Set every element to a Python number."""
        self[...] = value

    # ---- operators ----

    def __add__(self, other: Operand) -> GPUArray:
        return elementwise.add(self, other)

    def __radd__(self, other: Operand) -> GPUArray:
        return elementwise.add(other, self)

    def __iadd__(self, other: Operand) -> GPUArray:
        return elementwise.add(self, other, out=self)

    def __sub__(self, other: Operand) -> GPUArray:
        return elementwise.sub(self, other)

    def __rsub__(self, other: Operand) -> GPUArray:
        return elementwise.sub(other, self)

    def __isub__(self, other: Operand) -> GPUArray:
        return elementwise.sub(self, other, out=self)

    def __mul__(self, other: Operand) -> GPUArray:
        return elementwise.mul(self, other)

    def __rmul__(self, other: Operand) -> GPUArray:
        return elementwise.mul(other, self)

    def __imul__(self, other: Operand) -> GPUArray:
        return elementwise.mul(self, other, out=self)

    def __truediv__(self, other: Operand) -> GPUArray:
        return elementwise.div(self, other)

    def __rtruediv__(self, other: Operand) -> GPUArray:
        return elementwise.div(other, self)

    def __itruediv__(self, other: Operand) -> GPUArray:
        return elementwise.div(self, other, out=self)

    def __neg__(self) -> GPUArray:
        return elementwise.neg(self)

    def __matmul__(self, other: GPUArray) -> GPUArray:
        return matmul(self, other)

    def __rmatmul__(self, other: Any) -> GPUArray:
        return matmul(other, self)

    def __imatmul__(self, other: GPUArray) -> GPUArray:
        return matmul(self, other, out=self)

    def __eq__(self, other: object) -> Any:
        return self._compare(pointwise.EQ, other)

    def __ne__(self, other: object) -> Any:
        return self._compare(pointwise.NE, other)

    def __lt__(self, other: Operand) -> GPUArray:
        return elementwise.binary(pointwise.LT, self, other, None)

    def __le__(self, other: Operand) -> GPUArray:
        return elementwise.binary(pointwise.LE, self, other, None)

    def __gt__(self, other: Operand) -> GPUArray:
        return elementwise.binary(pointwise.LT, other, self, None)

    def __ge__(self, other: Operand) -> GPUArray:
        return elementwise.binary(pointwise.LE, other, self, None)

    __hash__ = object.__hash__  # by identity, so that arrays can be keys although == compares elements

    def __repr__(self) -> str:
        return array_repr(self)

    # ---- internal ----

    def _compare(self, op: pointwise.Op, other: Any) -> Any:
        if other is None or isinstance(other, str):
            return NotImplemented  # not numbers: never equal, as for any object
        return elementwise.binary(op, self, other, None)

    def _view(self, shape: layout.Shape, strides: layout.Shape, offset: int) -> GPUArray:
        return native.view(self, shape, strides, offset)

    def _reshaped(self, shape: layout.Shape, what: str, may_copy: bool) -> GPUArray:
        shape = layout.resolve_shape(shape, self.size, what)
        strides = layout.reshape_strides(self.shape, self.strides, shape, self.itemsize)
        if strides is not None:
            return self._view(shape, strides, self.offset)
        if may_copy:
            return self.clone().reshape(shape)
        raise ShapeError(
            f"{what}: shape {self.shape} with strides {self.strides} cannot be viewed as {shape} without a copy; "
            "use .reshape() or .contiguous() first"
        )


def _extents(args: tuple[Any, ...]) -> layout.Shape:
    """(2, 3), ((2, 3),) and ([2, 3],) alike."""
    if len(args) == 1 and isinstance(args[0], (tuple, list)):
        return tuple(args[0])
    return args


def _range(offset: int, length: int, extent: int, what: str) -> slice:
    if offset < 0 or length < 0 or offset + length > extent:
        raise ShapeError(f"{what}: {offset} to {offset + length} is not inside 0 to {extent}")
    return slice(offset, offset + length)


native.register_array_type(GPUArray)
