"""Discrete Fourier transforms along one axis, with NumPy's names, arguments and results; gp.fft is their namespace.

float32 and complex64 are transformed in single precision, and so are float16 and bfloat16, whose results are float32 or
complex64; float64, complex128, integers and bool in double precision. Any length and any strides; an axis is cut, or
filled up with zeros, to n. norm: where the factor 1/n is: "backward" (None) in the inverse transform, "forward" in the
other, "ortho" its root in both. out: an array of the result's shape, of a type able to hold it, that is written and
returned. All raise ShapeError (axis, n, out), DTypeError, InvalidSpecError (norm) and DeviceMismatchError. All are
asynchronous on the current stream; a row gives the same bits each time and whatever else is in the batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygpukit.ops import elementwise
from pygpukit.ops.fft.transform import transform
from pygpukit.ops.operands import check_array

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

# The norm that makes a transform's factor that of its inverse.
_SWAPPED = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def fft(
    a: GPUArray, n: int | None = None, axis: int = -1, norm: str | None = None, out: GPUArray | None = None
) -> GPUArray:
    """X[k] = sum over j of a[j] exp(-2 pi i j k / n), complex, n of them. n: a's extent along axis when left out."""
    return transform("fft", a, n, axis, norm, out)


def ifft(
    a: GPUArray, n: int | None = None, axis: int = -1, norm: str | None = None, out: GPUArray | None = None
) -> GPUArray:
    """The inverse of fft(): the sum with exp(+2 pi i j k / n), divided by n."""
    return transform("ifft", a, n, axis, norm, out)


def rfft(
    a: GPUArray, n: int | None = None, axis: int = -1, norm: str | None = None, out: GPUArray | None = None
) -> GPUArray:
    """The first n // 2 + 1 values of fft() of real numbers; the others are their conjugates. Complex a: DTypeError."""
    return transform("rfft", a, n, axis, norm, out)


def irfft(
    a: GPUArray, n: int | None = None, axis: int = -1, norm: str | None = None, out: GPUArray | None = None
) -> GPUArray:
    """The inverse of rfft(): n real numbers from n // 2 + 1 complex ones.

    n: 2 (m - 1) of m values when left out; give it for an odd one. The imaginary part of the first value, and of the
    last of an even n, counts as zero.
    """
    return transform("irfft", a, n, axis, norm, out)


def hfft(
    a: GPUArray, n: int | None = None, axis: int = -1, norm: str | None = None, out: GPUArray | None = None
) -> GPUArray:
    """fft() of a Hermitian signal, of which a is the first half: n real numbers. n: as irfft()."""
    a = check_array(a, "hfft")
    return transform("irfft", elementwise.conj(a), n, axis, _SWAPPED.get(norm, norm), out, what="hfft")


def ihfft(
    a: GPUArray, n: int | None = None, axis: int = -1, norm: str | None = None, out: GPUArray | None = None
) -> GPUArray:
    """The inverse of hfft(): the first n // 2 + 1 values of ifft() of real numbers. Complex a: DTypeError."""
    half = transform("rfft", a, n, axis, _SWAPPED.get(norm, norm), out, what="ihfft")
    return elementwise.conj(half, out=half)
