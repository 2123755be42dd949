"""Where elements are not zero: nonzero, flatnonzero, argwhere. Each waits once, for their number.

Any dtype that compares with zero; all raise DTypeError (storage types) and DeviceMismatchError. Positions are counted
on the device and come in C order: the same result on every run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.core.dtypes import bool_, int64
from pygpukit.core.errors import ShapeError
from pygpukit.ops import elementwise, host
from pygpukit.ops.elementwise import operations
from pygpukit.ops.indexing import masks
from pygpukit.ops.operands import check_array, check_devices

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["argwhere", "flatnonzero", "nonzero"]

SOURCE = kernels.KernelSpec(__file__, "unravel.cu")
_AXES = SOURCE.structure("Axes")
_BLOCK = 256


def flatnonzero(a: GPUArray) -> GPUArray:
    """Indices, int64 and ascending, of the elements of the flattened array that are not zero."""
    return masks.flatnonzero(_mask(a, "flatnonzero"))


def nonzero(a: GPUArray) -> tuple[GPUArray, ...]:
    """For each axis the int64 coordinates of the elements that are not zero, in C order.

    Raises ShapeError for a 0-d array.
    """
    mask = _mask(a, "nonzero")
    if not mask.ndim:
        raise ShapeError("nonzero: a 0-d array has no axes; use .reshape(1) first")
    return tuple(_coordinates(mask))


def argwhere(a: GPUArray) -> GPUArray:
    """The coordinates of the elements that are not zero, one row each: int64, shape (count, ndim)."""
    return _coordinates(_mask(a, "argwhere")).T


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that the functions above can ask for, beside those of masks."""
    yield ("pk::unravel",)


def _mask(a: GPUArray, what: str) -> GPUArray:
    """a as bool: which elements are not zero."""
    a = check_array(a, what)
    check_devices(what, a)
    if a.dtype == bool_:
        return a
    operations.compute_dtype(operations.NE, a.dtype)
    return elementwise.binary(operations.NE, a, 0, None)


def _coordinates(mask: GPUArray) -> GPUArray:
    """Of the true elements: (ndim, count)."""
    positions = masks.flatnonzero(mask)
    if mask.ndim == 1:
        return positions.reshape(1, -1)
    out = native.empty((mask.ndim, positions.size), int64)
    if not out.size:
        return out
    if host.computes():

        def compute() -> None:
            import numpy as np

            host.memory(out)[...] = np.unravel_index(host.memory(positions), mask.shape)

        native.host_launch("unravel", compute, [positions, out])
        return out
    packed = _AXES.pack(count=positions.size, ndim=mask.ndim, shape=mask.shape)
    grid = (-(-positions.size // _BLOCK), 1, 1)
    kernels.launch(SOURCE.of("pk::unravel"), grid, (_BLOCK, 1, 1), positions, out, packed)
    return out
