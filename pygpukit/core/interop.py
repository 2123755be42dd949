"""Handing arrays to other libraries: the CUDA array interface, version 3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.core.backend import is_sim
from pygpukit.core.dtypes import STORAGE_ONLY, DataType, bfloat16, bool_
from pygpukit.core.promotion import COMPLEX, FLOATS, UNSIGNED

if TYPE_CHECKING:
    from pygpukit.core.array import GPUArray

_LEGACY_DEFAULT_STREAM = 1  # the interface's number for stream 0, which it does not allow


def cuda_array_interface(array: GPUArray) -> dict[str, Any]:
    """The interface's dictionary, with the current stream as the one to order on.

    Raises AttributeError, so that hasattr() is False, on the simulated device and for types the interface cannot name.
    """
    if is_sim():
        raise AttributeError("__cuda_array_interface__: the simulated device has no CUDA memory; use .to_numpy()")
    return {
        "version": 3,
        "shape": array.shape,
        "strides": None if array.is_contiguous() else array.strides,
        "typestr": typestr(array.dtype),
        "data": (array.device_ptr if array.size else 0, False),
        "stream": native.current_stream().handle or _LEGACY_DEFAULT_STREAM,
    }


def typestr(dtype: DataType) -> str:
    """NumPy's short name of a type. Raises AttributeError for the types it has none for."""
    if dtype == bfloat16 or dtype in STORAGE_ONLY:
        raise AttributeError(
            f"__cuda_array_interface__ has no name for {dtype}; hand over .view('uint{8 * dtype.itemsize}') instead"
        )
    kind = "b" if dtype == bool_ else "f" if dtype in FLOATS else "c" if dtype in COMPLEX else "i"
    if dtype in UNSIGNED:
        kind = "u"
    return f"{'|' if dtype.itemsize == 1 else '<'}{kind}{dtype.itemsize}"
