"""Kernels of all layouts walk arrays that broadcast to a result: walk.cuh's Walk, and in which pieces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from math import prod
from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.array import layout
from pygpukit.array.layout import Shape
from pygpukit.kernels.structure import Structure, in_header
from pygpukit.ops.operands import span
from pygpukit.ops.raw import address

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

BLOCK = 256
_PACK_BYTES = 16  # of a thread's elements of the widest array
_REACH = 2**31 - 1 - 16 * BLOCK  # elements of a walk, and from the first to the last of each array


def of(arrays: Sequence[GPUArray]) -> Iterator[tuple[Sequence[GPUArray], bytes, int]]:
    """(the storage of each array, Walk, blocks of BLOCK threads): of all, or of halves where places exceed 32 bits.

    The last array is the result.
    """
    spans, starts = zip(*(span(array) for array in arrays), strict=True)
    if max(array.size for array in (*spans, arrays[-1])) > _REACH:
        for half in _halves(arrays):
            yield from of(half)
        return
    out, together = arrays[-1], _PACK_BYTES // max(array.itemsize for array in arrays)
    strides = [layout.broadcast_strides(array.shape, array.strides, out.shape) for array in arrays]
    shape, strides = layout.collapse(out.shape, strides)
    steps = [[step // array.itemsize for step in own] for array, own in zip(arrays, strides, strict=True)]
    if not shape:  # one element
        shape, steps = (1,), [[1]] * len(arrays)
    counted = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    linear = [own == counted for own in steps]
    quotients = [_quotient(extent) for extent in shape]
    packed = _walk_of(len(arrays)).pack(
        size=out.size,
        ndim=len(shape),
        packs=_in_packs(out, shape, steps[-1], linear[-1], together),
        linear=sum(1 << k for k, own in enumerate(linear) if own),
        extent=shape,
        factor=[factor for factor, _ in quotients],
        shift=[shift for _, shift in quotients],
        start=starts,
        end=[array.size for array in spans],
        stride=steps,
    )
    yield spans, packed, -(-out.size // (BLOCK * together))


@cache
def _walk_of(operands: int) -> Structure:
    return in_header("walk.cuh", "Walk", Operands=operands)


def _in_packs(out: GPUArray, shape: Shape, steps: Sequence[int], linear: bool, together: int) -> bool:
    """True when neighbours in the result lie in one pack of memory."""
    if address(out) % (together * out.itemsize):
        return False
    return linear or (steps[-1] == 1 and not any(n % together for n in (shape[-1], *steps[:-1])))


@cache
def _quotient(extent: int) -> tuple[int, int]:
    """Factor and shift with which a number below 2^31 is divided by the extent."""
    bits = (extent - 1).bit_length()
    return (((1 << bits) - extent) << 32) // extent + 1, bits


def _halves(arrays: Sequence[GPUArray]) -> Iterator[list[GPUArray]]:
    """The arrays cut in two along the axis along which one of them reaches farthest."""
    shape = arrays[-1].shape
    strides = [layout.broadcast_strides(array.shape, array.strides, shape) for array in arrays]
    farthest = [
        (extent - 1) * max(abs(own[axis]) // array.itemsize for array, own in zip(arrays, strides, strict=True))
        for axis, extent in enumerate(shape)
    ]
    axis = farthest.index(max(farthest))
    middle = shape[axis] // 2
    for begin, extent in ((0, middle), (middle, shape[axis] - middle)):
        part = (*shape[:axis], extent, *shape[axis + 1 :])
        yield [
            native.view(array, part, own, array.offset + begin * own[axis])
            for array, own in zip(arrays, strides, strict=True)
        ]
