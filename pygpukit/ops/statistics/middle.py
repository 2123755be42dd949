"""The middle of rows without sorting them: kernels of middle.cu, for median() on a device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.array import promotion
from pygpukit.core.dtypes import DataType, bool_
from pygpukit.ops import copying, host, sorting
from pygpukit.ops.elementwise.pointwise import CTYPES

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

SOURCE = kernels.KernelSpec(__file__, "middle.cu")
_CALL = SOURCE.structure("MiddleCall")
_SHORT, _SHORT_THREADS = 32, 128  # elements of a row that has a thread for each; threads of a block of such rows
_WARP_ROW = 256  # elements that a warp takes
_HELD_BYTES = 65536  # of keys in shared memory
_LONGEST = 131072  # elements: of longer rows there are few, whose sorting takes more blocks


def suits(rows: GPUArray) -> bool:
    """True where find() takes them: on a device, with elements, and no row too long."""
    return not host.computes() and bool(rows.size) and rows.shape[-1] <= _LONGEST


def find(rows: GPUArray) -> GPUArray:
    """The middle of each row (last axis) or the mean of the two in the middle, NaN where there is one."""
    dtype, length = promotion.true_divide(rows.dtype), rows.shape[-1]
    out = native.empty(rows.shape[:-1], dtype)
    lanes = 1 << (length - 1).bit_length()
    call = _CALL.pack(rows=out.size, length=length, lanes=lanes)
    expression, threads, held = _form(rows.dtype, length)
    blocks = -(-out.size // (threads // lanes)) if length <= _SHORT else out.size
    kernel = SOURCE.of(expression, shared_bytes=held)
    kernels.launch(kernel, (blocks, 1, 1), (threads, 1, 1), copying.contiguous(rows), out, call)
    return out


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that find() can ask for."""
    for name in CTYPES:
        dtype = DataType.from_string(name)
        if dtype not in promotion.COMPLEX and dtype != bool_:  # which is ordered as uint8
            max_length = _HELD_BYTES // dtype.itemsize
            lengths = (_SHORT, _WARP_ROW, max_length // 2, max_length, _LONGEST)
            yield tuple(dict.fromkeys(_form(dtype, length)[0] for length in lengths))


def _form(dtype: DataType, length: int) -> tuple[str, int, int]:
    """The kernel for rows of this length, threads of a block, bytes of shared memory for keys."""
    types = f"{sorting.ctype(dtype)}, {CTYPES[promotion.true_divide(dtype).name]}"
    if length <= _SHORT:
        return f"pk::middle_of_short<{types}>", _SHORT_THREADS, 0
    held = length * dtype.itemsize
    if held > _HELD_BYTES:
        return f"pk::middle_of_row<{types}, 1024, false>", 1024, 0
    threads = 32 if length <= _WARP_ROW else 256 if 4 * held <= 3 * _HELD_BYTES else 512
    return f"pk::middle_of_row<{types}, {threads}, true>", threads, held
