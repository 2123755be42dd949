"""TritonArray: an array as Triton sees one, by address, shape, strides in elements and Triton's name of its type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit.array.factory import from_numpy as array_from_numpy
from pygpukit.core.errors import DTypeError
from pygpukit.ops.operands import check_array

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray

# The package's types by Triton's names.
DTYPES = {
    "float64": "fp64",
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float8_e4m3": "fp8e4nv",
    "float8_e5m2": "fp8e5",
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "uint64": "u64",
    "uint32": "u32",
    "uint16": "u16",
    "uint8": "u8",
    "bool": "u1",
}


class TritonArray:
    """A GPUArray with the attributes that Triton's kernels look for; it keeps the array.

    Raises DTypeError for a type that Triton does not have, TypeError for anything but an array.
    """

    def __init__(self, arr: GPUArray) -> None:
        self.array = check_array(arr, "TritonArray")
        if arr.dtype.name not in DTYPES:
            raise DTypeError(f"TritonArray: Triton has no {arr.dtype}; it has {', '.join(DTYPES)}")

    @property
    def dtype(self) -> str:
        """Name of the type, as Triton has it: "fp16"."""
        return DTYPES[self.array.dtype.name]

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents."""
        return self.array.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.array.ndim

    @property
    def numel(self) -> int:
        """Number of elements."""
        return self.array.size

    def data_ptr(self) -> int:
        """Address of the first element on the device."""
        return int(self.array.device_ptr)

    def stride(self, dim: int | None = None) -> int | tuple[int, ...]:
        """Elements from one index to the next, of an axis or of all."""
        strides = tuple(step // self.array.itemsize for step in self.array.strides)
        return strides if dim is None else strides[dim]

    def __repr__(self) -> str:
        return f"TritonArray({self.dtype}, {self.shape})"


def from_gpuarray(arr: GPUArray) -> TritonArray:
    """An array as Triton's kernels take it; nothing is copied. Raises as TritonArray().

    Examples
    --------
    >>> gp.triton.from_gpuarray(gp.zeros((2, 3), "float16"))
    TritonArray(fp16, (2, 3))
    """
    return TritonArray(arr)


def from_numpy(arr: np.ndarray[Any, Any]) -> TritonArray:
    """A NumPy array, copied to the device. Raises as gp.from_numpy() and TritonArray()."""
    return TritonArray(array_from_numpy(arr))


def plain(value: Any) -> Any:
    """The GPUArray of a TritonArray; anything else as it is."""
    return value.array if isinstance(value, TritonArray) else value
