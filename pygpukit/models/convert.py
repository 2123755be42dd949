"""Host values from one data type to another; bfloat16 and 8-bit floats are bits on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit.core.dtypes import STORAGE_ONLY, DataType, bfloat16

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

_CHUNK = 1 << 16  # elements; keeps what is made on the way in the processor's cache


def convert(values: Array, source: DataType, target: DataType) -> Array:
    """values of type have as values of type want, rounded to nearest even. The array itself where nothing changes."""
    import numpy as np

    if source == target:
        return values
    flat = values.reshape(-1)
    result = np.empty(flat.shape, target.to_numpy_dtype())
    for start in range(0, flat.size, _CHUNK):
        part = slice(start, start + _CHUNK)
        result[part] = _narrow(_wide(flat[part], source), target)
    return result.reshape(values.shape)


def _wide(values: Array, have: DataType) -> Array:
    import numpy as np

    if have == bfloat16:
        return (values.astype(np.uint32) << np.uint32(16)).view(np.float32)
    if have in STORAGE_ONLY:
        from pygpukit.ops import storage

        return storage.decoded(values, have)
    return values


def _narrow(values: Array, target: DataType) -> Array:
    import numpy as np

    if target == bfloat16:
        return _brain(np.asarray(values, np.float32))
    if target in STORAGE_ONLY:
        from pygpukit.ops import storage

        return storage.encoded(values, target)
    with np.errstate(over="ignore"):  # beyond float16 is infinity
        return values.astype(target.to_numpy_dtype(), copy=False)


def _brain(values: Array) -> Array:
    """The bits of bfloat16, rounded to nearest even, in few passes: this is most of what loading a model costs."""
    import numpy as np

    bits = values.view(np.uint32)
    rounded = bits >> np.uint32(16)
    rounded &= np.uint32(1)
    rounded += np.uint32(0x7FFF)
    rounded += bits
    rounded >>= np.uint32(16)
    wrong = np.isnan(values)
    if wrong.any():
        rounded[wrong] = (bits[wrong] >> np.uint32(16)) | np.uint32(0x40)  # quiet, with its sign
    return rounded.astype(np.uint16)
