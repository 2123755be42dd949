"""Copies of weights that are rounded to tf32, once for all blocks that read them."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit._core import native

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

SOURCE = kernels.KernelSpec(__file__, "rounded.cu", "pk::round_to_tf32")
_BLOCK, _EACH = 256, 4  # rounded.cu: threads of a block, floats of each


def rounded(array: GPUArray) -> GPUArray:
    """float32 to nearest tf32, to even from the middle. Dense, whole fours. The next launch may begin early."""
    copy = native.empty(array.shape, array.dtype)
    fours = array.size // _EACH
    kernels.launch(SOURCE, (-(-fours // _BLOCK), 1, 1), (_BLOCK, 1, 1), array, copy, struct.pack("<q", fours))
    return copy
