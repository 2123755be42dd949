"""Powers of magnitudes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygpukit.array import promotion
from pygpukit.ops import elementwise
from pygpukit.ops.elementwise import math

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray


def squared(D: GPUArray) -> GPUArray:
    """|D|^2, without the root in between."""
    if D.dtype not in promotion.COMPLEX:
        return elementwise.mul(D, D)
    re, im = math.real(D), math.imag(D)
    return elementwise.add(elementwise.mul(re, re), elementwise.mul(im, im))


def to_power(magnitude: GPUArray, power: float) -> GPUArray:
    """magnitude ** power; of power 1 itself."""
    if power == 1:
        return magnitude
    return elementwise.mul(magnitude, magnitude) if power == 2 else elementwise.power(magnitude, power)
