"""Moving elements without looking at them: by item size, and in pieces as wide as layout and alignment allow."""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

# Item size -> C++ type of the kernels.
RAW = {
    1: "unsigned char",
    2: "unsigned short",
    4: "unsigned int",
    8: "unsigned long long",
    16: "pk::complex_t<double>",
}
# Item size -> a type of that size, for views.
DTYPES = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64", 16: "complex128"}


def address(array: GPUArray) -> int:
    """Where the first element lies, as far as alignment goes: pool memory starts at multiples of more than 16 bytes."""
    return array.offset if array.block else array.device_ptr


def widest(*numbers: int) -> int:
    """The widest piece, up to 16 bytes, that divides all of these addresses, strides and lengths."""
    return gcd(16, *numbers)
