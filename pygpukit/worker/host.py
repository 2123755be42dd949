"""NumPy arrays over the border: written into one file in memory, read out of it on the other side.

They are read, not mapped: a process that shortens a file while another one looks at it would end that one too.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

_ALIGNMENT = 64


def pack(arrays: Sequence[np.ndarray[Any, Any]]) -> tuple[list[dict[str, Any]], list[int]]:
    """Descriptions of the arrays, and the file's descriptor as the only one of a list, which the caller closes."""
    import numpy as np

    if not arrays:
        return [], []
    file = os.memfd_create("pygpukit-host-arrays", os.MFD_CLOEXEC)
    try:
        descriptions, offset = [], 0
        for array in arrays:
            _write(file, _bytes(np.ascontiguousarray(array)), offset)
            descriptions.append({"dtype": array.dtype.str, "shape": list(array.shape), "offset": offset})
            offset += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
    except BaseException:
        os.close(file)
        raise
    return descriptions, [file]


def unpack(descriptions: Sequence[dict[str, Any]], descriptors: Sequence[int]) -> list[np.ndarray[Any, Any]]:
    """The arrays, in memory of this process. Raises ValueError for descriptions that leave the file."""
    import numpy as np

    arrays = []
    for one in descriptions:
        dtype, shape = np.dtype(one["dtype"]), tuple(one["shape"])
        if dtype.hasobject or any(extent < 0 for extent in shape):
            raise ValueError(f"{dtype} of shape {shape} is no host array")
        nbytes = dtype.itemsize * int(np.prod(shape, dtype=object))
        if nbytes > os.fstat(descriptors[0]).st_size - one["offset"]:
            raise ValueError(f"a host array of {nbytes} bytes at offset {one['offset']} leaves its file")
        array = np.empty(shape, dtype)
        _read(descriptors[0], _bytes(array), one["offset"])
        arrays.append(array)
    return arrays


def _bytes(array: Any) -> memoryview:
    return memoryview(array.reshape(-1).view("uint8"))


def _write(file: int, data: memoryview, offset: int) -> None:
    while data:
        written = os.pwrite(file, data, offset)
        data, offset = data[written:], offset + written


def _read(file: int, target: memoryview, offset: int) -> None:
    while target:
        count = os.preadv(file, [target], offset)
        if count == 0:
            raise ValueError("a file of host arrays ended early")
        target, offset = target[count:], offset + count
