"""GPUArray: a strided n-dimensional array in device memory, with NumPy's habits and no implicit transfers.

Here is what an array is. The methods that are operations come from ops/methods/bind.py when the first array is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from pygpukit._core import native
from pygpukit.array import dlpack, drawing, elsewhere, layout, numpy_protocols, scalars
from pygpukit.array.format import array_repr
from pygpukit.array.interop import cuda_array_interface
from pygpukit.array.order import columns
from pygpukit.core import deferred
from pygpukit.core.device import DeviceLike, current_device
from pygpukit.core.dtypes import as_dtype
from pygpukit.core.errors import ShapeError

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.methods import Methods  # a stub, so that nothing here names an operation
    from pygpukit.core.dtypes import DTypeLike
else:

    class Methods:
        __slots__ = ()


class GPUArray(Methods, native.ArrayBase):
    """An array on the device.

    Indexing with integers, slices (any step), None and "..." gives views, with lists, index arrays and masks copies;
    assigning through either writes on the device.
    Operators broadcast and promote as NumPy 2. Work is asynchronous on the current stream; to_numpy(), item(), float(),
    int(), bool() and repr() wait for it and copy to the host, nothing else does.

    GPUArray(shape, dtype) is empty(shape, dtype).
    """

    __slots__ = ()

    def __new__(cls, shape: int | tuple[int, ...], dtype: DTypeLike = "float32", order: str = "C") -> GPUArray:
        return native.empty(shape, dtype, order)

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

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            """Called for what there is not."""
            elsewhere.refuse(self, name)

    # ---- to the host ----

    def to_numpy(self) -> np.ndarray[Any, Any]:
        """A copy on the host, C-contiguous. Waits for the array's work; Ctrl-C interrupts.

        Types NumPy lacks come as their bits: bfloat16 as uint16, 8-bit and 4-bit floats as uint8, int4 as int8; convert
        with .astype("float32") first for values.
        """
        import numpy as np

        result = np.empty(self.shape, self.dtype.to_numpy_dtype())
        if result.size:
            self._copy_to_host(result)
        return result

    def item(self, *index: Any) -> Any:
        """The only element as a Python number, or the one at an index: of all in C order, or one for each axis.

        Raises ShapeError where the element is not said and size is not 1. Waits for the array's work.
        """
        if index:
            place = _extents(index)
            return (self.ravel() if len(place) == 1 else self)[place].item()
        if self.size != 1:
            raise ShapeError(f"item(): the array has {self.size} elements, shape {self.shape}; index one first")
        data = bytearray(self.itemsize)
        self._copy_to_host(data)
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
        if drawing.is_drawing():
            return drawing.values(self, dtype)
        raise TypeError(
            f"a GPUArray of shape {self.shape} is not converted to NumPy implicitly; "
            "call .to_numpy(), which copies it to the host"
        )

    # ---- standards: DLPack, CUDA array interface, array API, NumPy's protocols ----

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return cuda_array_interface(self)

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A DLPack capsule over the array's memory; the memory stays in place until the consumer lets go of it.

        stream: the consumer's stream, which waits for the array's work: None or 1 (legacy default), 2 (per-thread
        default), a handle, or -1 for no ordering. max_version: below (1, 0), or None, gives the older, unversioned
        capsule. dl_device: where it is wanted; (1, 0), the host, gives a copy there and waits for it. copy: True gives
        a copy on the same device, False refuses where one would be needed.
        Raises BufferError for what cannot be handed over, and on the simulated device unless dl_device is given.
        """
        return dlpack.export(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.device_of(self)

    def to_device(self, device: DeviceLike, /, *, stream: int | None = None) -> GPUArray:
        """The array itself when it is on that device, else a copy there, which is ordered as operations are.

        It goes straight where the array's device can access the other's memory (gp.cuda.can_access_peer), else by way
        of the host. device: its number, a gp.cuda.Device, or a text such as "cuda:1". stream: None only; the copy comes
        after the work of both devices' streams, and later work there after the copy. Raises DeviceMismatchError for an
        unknown device.
        """
        return dlpack.to_device(self, device, stream)

    def to(self, device: DeviceLike, /) -> GPUArray:
        """to_device(), by the name that PyTorch has for it; .astype() makes other types."""
        return dlpack.to_device(self, device, None)

    @property
    def mT(self) -> GPUArray:
        """A view with the last two axes swapped. Raises ShapeError for fewer than two axes."""
        if self.ndim < 2:
            raise ShapeError(f"mT: the array has shape {self.shape}; at least two axes are needed")
        return self.transpose(*range(self.ndim - 2), self.ndim - 1, self.ndim - 2)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The module `pygpukit.array_api`. Raises ValueError for a version of the standard it does not follow."""
        import pygpukit

        return pygpukit.array_api.checked(api_version)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return numpy_protocols.call_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return numpy_protocols.call_function(func, args, kwargs)

    # ---- views ----

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of a 0-d array; use .size")
        return self.shape[0]

    def __iter__(self) -> Iterator[GPUArray]:
        return (self[i] for i in range(len(self)))

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> GPUArray:
        """The same elements, read and placed in this order, in another shape; one extent may be -1.

        A view if strides allow, else copied; copy: True always copies, False raises ShapeError instead.
        """
        if order != "C" and columns(order, self):
            return self.T.reshape(_extents(shape)[::-1], copy=copy).T
        array = self.clone() if copy else self
        return array._reshaped(_extents(shape), "reshape", may_copy=copy is not False)

    def view(self, new_shape: Any = None, *, dtype: DTypeLike | None = None) -> GPUArray:
        """Another view of the same memory. An int or tuple is a shape, a data type reinterprets the bits.

        A type of another size divides or joins the elements of the last axis, which must then be dense. Raises
        ShapeError when the shape or type cannot be had without a copy.
        """
        if dtype is None and (new_shape is None or isinstance(new_shape, (int, tuple, list))):
            shape = self.shape if new_shape is None else _extents((new_shape,))
            return self._reshaped(shape, "view", may_copy=False)
        target = as_dtype(new_shape if dtype is None else dtype)
        shape, strides = layout.retyped(self.shape, self.strides, self.dtype, target)
        return native.view(self, shape, strides, self.offset, target)

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

    def __copy__(self) -> GPUArray:
        return self.clone()

    def __deepcopy__(self, memo: Any) -> GPUArray:
        return self.clone()

    def __reduce__(self) -> Any:
        raise TypeError(
            "a GPUArray is not pickled: its memory is this process's; pickle .to_numpy() instead, or, for Dask, call "
            "gp.dask.register()"
        )

    def fill(self, value: Any) -> None:
        """Set every element to a Python number."""
        self[...] = value

    def __repr__(self) -> str:
        return array_repr(self)

    # ---- in a notebook ----

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from pygpukit.array.rich import mimebundle

        return mimebundle(self)

    def _repr_html_(self) -> str:
        return self._repr_mimebundle_()["text/html"]

    # ---- internal ----

    def _copy_to_host(self, buffer: Any) -> None:
        """All elements, dense, into a writable buffer of the host, whichever device is current."""
        if self.device != native.current_device():
            with current_device(self.device):
                return self._copy_to_host(buffer)
        native.copy_to_host(buffer, self.contiguous())
        deferred.check()

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
    """(2, 3), ((2, 3),) and ([2, 3],) alike, of any integers."""
    return layout.integers(args[0] if len(args) == 1 else args, "an extent")


def _range(offset: int, length: int, extent: int, what: str) -> slice:
    if offset < 0 or length < 0 or offset + length > extent:
        raise ShapeError(f"{what}: {offset} to {offset + length} is not inside 0 to {extent}")
    return slice(offset, offset + length)
