"""The first few elements of rows in order, without sorting them: kernels of select.cu, for topk() on a device.

A block selects from one piece of a row; where a row has several pieces, what was selected of them is selected from
again. Equal elements keep their order throughout, so that the result is that of a stable sort.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.core.dtypes import int64
from pygpukit.ops.elementwise.pointwise import CTYPES

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

SOURCE = kernels.KernelSpec(__file__, "select.cu")
_CALL = SOURCE.structure("SelectCall")
_MAX_K = 64  # select.cu: kMaxK
_SHORT = 1024  # rows up to here are sorted, several to a block
_PIECE = 16384  # elements that a block takes at most
_THREADS = 256


def suits(length: int, k: int) -> bool:
    """True where selecting k of a row of `length` elements is less work than sorting it."""
    return 0 < k <= _MAX_K and length > _SHORT


def select(rows: GPUArray, k: int, descending: bool, ctype: str) -> tuple[GPUArray, GPUArray]:
    """(values, int64 indices) of the first k of each row (last axis) in order. rows: C-contiguous, not empty. ctype:
    what their elements are ordered as."""
    kernel = f"pk::select_first<{ctype}>"
    values, indices = rows, native.empty(1, int64)
    while True:
        length = values.shape[-1]
        count, pieces = rows.size // rows.shape[-1], -(-length // _PIECE)
        chosen = native.empty((*rows.shape[:-1], pieces * k), rows.dtype)
        order = native.empty(chosen.shape, int64)
        flip = 255 if descending else 0
        fields = _CALL.pack(length=length, pieces=pieces, k=k, flip=flip, indexed=values is not rows)
        grid = (count * pieces, 1, 1)
        kernels.launch(SOURCE.of(kernel), grid, (_THREADS, 1, 1), values, indices, chosen, order, fields)
        values, indices = chosen, order
        if pieces == 1:
            return values, indices


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that select() can ask for."""
    yield tuple(f"pk::select_first<{ctype}>" for name, ctype in CTYPES.items() if name != "bool")
