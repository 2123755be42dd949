"""Triangles: the part of an array's last two axes on one side of a diagonal, as NumPy's functions.

Errors: ShapeError naming the function and the shape, DeviceMismatchError. The same bits on every run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.array import layout
from pygpukit.core.errors import ShapeError
from pygpukit.ops import host, raw
from pygpukit.ops.indexing import places
from pygpukit.ops.operands import check_array, check_devices, span
from pygpukit.ops.prepared import prepared

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["tril", "triu"]

SOURCE = kernels.KernelSpec(__file__, "triangles.cu")
_TRIANGLE = SOURCE.structure("Triangle")
_BLOCK = 256
_PACK_BYTES = 16  # that a thread makes


@prepared
def tril(array: GPUArray, k: int = 0) -> GPUArray:
    """A copy with zeros above the k-th diagonal of the last two axes; a 1-D array is every row of a square."""
    return _triangle(array, k, upper=False, what="tril")


@prepared
def triu(array: GPUArray, k: int = 0) -> GPUArray:
    """A copy with zeros below the k-th diagonal of the last two axes; a 1-D array is every row of a square."""
    return _triangle(array, k, upper=True, what="triu")


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that the functions above can ask for."""
    for item in raw.RAW.values():
        yield (f"pk::triangle<{item}>",)


def _triangle(array: GPUArray, k: int, upper: bool, what: str) -> GPUArray:
    array = check_array(array, what)
    check_devices(what, array)
    k = layout.integer(k, f"{what}: k")
    if array.ndim == 1:
        array = native.view(array, (array.size, array.size), (0, array.strides[0]), array.offset)
    if array.ndim < 2:
        raise ShapeError(f"{what}: shape {array.shape} has fewer than 2 axes")
    out = native.empty(array.shape, array.dtype)
    if not out.size:
        return out
    if host.computes():
        import numpy as np

        def compute() -> None:
            host.memory(out)[...] = (np.triu if upper else np.tril)(host.memory(array), k)

        native.host_launch(what, compute, [array, out])
        return out
    dense, start = span(array)
    packed = places.layout_fields(array.shape, (start,), (tuple(step // array.itemsize for step in array.strides),))
    rows, columns = array.shape[-2:]
    which = _TRIANGLE.pack(rows=rows, columns=columns, diagonal=k, upper=upper, span=dense.size)
    blocks = -(-out.nbytes // (_BLOCK * _PACK_BYTES))
    expression = f"pk::triangle<{raw.RAW[array.itemsize]}>"
    kernels.launch(SOURCE.of(expression), (blocks, 1, 1), (_BLOCK, 1, 1), dense, out, packed, which)
    return out
