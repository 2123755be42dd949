"""Array memory as NumPy arrays on the simulated device, for operations that compute there, inside a host launch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.array import promotion, scalars
from pygpukit.core.backend import is_sim
from pygpukit.core.dtypes import STORAGE_ONLY, DataType, bfloat16, bool_

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray

_through_kernels = False


def computes() -> bool:
    """True where operations compute with NumPy: on the simulated device, unless built_in_kernels() is open."""
    return is_sim() and not _through_kernels


@contextmanager
def built_in_kernels() -> Iterator[None]:
    """Operations run their CUDA kernels on the simulated device, too: how the kernels are tested without a GPU."""
    global _through_kernels
    before, _through_kernels = _through_kernels, True
    try:
        yield
    finally:
        _through_kernels = before


def memory(array: GPUArray) -> np.ndarray[Any, Any]:
    """The elements themselves, as a NumPy view with the array's strides (bfloat16 as its uint16 bits)."""
    import numpy as np

    dtype = array.dtype.to_numpy_dtype()
    if not array.size:  # NumPy takes no strides backwards from a buffer without elements
        return np.empty(array.shape, dtype)
    return np.ndarray(array.shape, dtype, native.host_buffer(array), array.offset, array.strides)


def values(array: GPUArray) -> np.ndarray[Any, Any]:
    """The elements to compute with, where bfloat16 and floats that only store become float32."""
    elements = memory(array)
    if array.dtype in STORAGE_ONLY:
        from pygpukit.ops import storage

        return storage.decoded(elements, array.dtype)
    if array.dtype != bfloat16:
        return elements
    import numpy as np

    return (elements.astype(np.uint32) << np.uint32(16)).view(np.float32)


def rounded(value: Any, dtype: DataType) -> Any:
    """A Python number as one element of dtype, in the type that values() computes with."""
    import numpy as np

    element = scalars.decode(scalars.encode(value, dtype), dtype)
    return np.asarray(element, np.float32 if dtype == bfloat16 else dtype.to_numpy_dtype())


def converted(result: Any, dtype: DataType) -> np.ndarray[Any, Any]:
    """Computed values as elements of dtype, in the type that values() computes with."""
    import numpy as np

    if np.iscomplexobj(result) and dtype not in promotion.COMPLEX and dtype != bool_:
        result = np.real(result)  # as a plain conversion does, without NumPy's warning
    if dtype != bfloat16:
        return np.asarray(result).astype(dtype.to_numpy_dtype(), copy=False)
    return (bfloat16_bits(result).astype(np.uint32) << np.uint32(16)).view(np.float32)


def store(array: GPUArray, result: Any) -> None:
    """Write computed values, converted to the array's type; the floats that NumPy lacks are rounded to nearest even."""
    import numpy as np

    target = memory(array)
    if np.iscomplexobj(result) and target.dtype.kind not in "bc":
        result = np.real(result)
    if array.dtype in STORAGE_ONLY:
        from pygpukit.ops import storage

        result = storage.encoded(result, array.dtype)
    np.copyto(target, bfloat16_bits(result) if array.dtype == bfloat16 else result, casting="unsafe")


def bfloat16_bits(result: Any) -> np.ndarray[Any, Any]:
    """The bits of real numbers as bfloat16, rounded once, to nearest even; a NaN stays a NaN."""
    import numpy as np

    single = _round_to_last_bit(np.asarray(result))
    bits = single.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    quiet = (bits >> np.uint32(16)) | np.uint32(0x40)
    return np.where(np.isnan(single), quiet, rounded)


def _round_to_last_bit(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """As float32, whose last bit is 1 unless it is exact: a second rounding sees on which side of a middle it is."""
    import numpy as np

    if values.dtype.kind in "iu" and values.itemsize == 8:
        low = values & values.dtype.type(0xFFF)
        large = np.abs(values.astype(np.float64)) >= 2.0**53
        values = np.where(large & (low != 0), (values - low) | values.dtype.type(0x800), values)
    single = values.astype(np.float32)
    if values.dtype.kind not in "iuf" or values.itemsize < 4 or values.dtype == np.float32:
        return single
    exact = values.astype(np.float64)
    rest = exact - single.astype(np.float64)
    bits = single.view(np.uint32)
    even = (rest != 0) & (single != 0) & (bits & 1 == 0) & np.isfinite(single)
    step = np.where((rest > 0) == (single > 0), 1, -1).astype(np.int32).view(np.uint32)
    return np.where(even, bits + step, bits).view(np.float32)
