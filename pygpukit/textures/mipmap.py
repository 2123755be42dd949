"""Smaller levels of a mipmap: means of neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygpukit.textures.shape import Shape

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray


def halved(array: GPUArray, shape: Shape, level: int) -> GPUArray:
    """The array of one level as the next one, of that number, has it: the means of pairs along each axis.

    An axis of one element stays; the last element of an odd axis counts for nothing.
    """
    before, after = shape.level(level - 1), shape.level(level)
    for axis, (old, new) in enumerate(zip(before, after, strict=True)):
        if old != new:
            before_it = [slice(None)] * axis
            pairs = [(*before_it, slice(start, 2 * new, 2)) for start in (0, 1)]
            first, second = (array[pair] for pair in pairs)
            array = (first + second) * 0.5
    return array
