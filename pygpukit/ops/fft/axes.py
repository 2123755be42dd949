"""Transforms along several axes: one axis after the other, the last first. Types, norm and errors as for one axis.

s: the extents along the axes, -1 for an axis as it is; axes: all, or the last len(s), when left out; an axis that is
named twice is transformed twice. out: as for one axis.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from pygpukit.array import layout
from pygpukit.core.dtypes import DataType
from pygpukit.core.errors import ShapeError
from pygpukit.ops import copying
from pygpukit.ops.fft.transform import checked_norm, result_dtype, transform
from pygpukit.ops.operands import check_array

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

    Extents: TypeAlias = "Sequence[int] | None"

_LAST_TWO = (-2, -1)


def fftn(
    a: GPUArray, s: Extents = None, axes: Extents = None, norm: str | None = None, out: GPUArray | None = None
) -> GPUArray:
    """fft() along several axes."""
    return _complex("fftn", "fft", a, s, axes, norm, out)


def ifftn(
    a: GPUArray, s: Extents = None, axes: Extents = None, norm: str | None = None, out: GPUArray | None = None
) -> GPUArray:
    """The inverse of fftn(): ifft() along several axes."""
    return _complex("ifftn", "ifft", a, s, axes, norm, out)


def rfftn(
    a: GPUArray, s: Extents = None, axes: Extents = None, norm: str | None = None, out: GPUArray | None = None
) -> GPUArray:
    """rfft() along the last of several axes, then fft() along the others. Complex a: DTypeError."""
    return _from_real("rfftn", a, s, axes, norm, out)


def irfftn(
    a: GPUArray, s: Extents = None, axes: Extents = None, norm: str | None = None, out: GPUArray | None = None
) -> GPUArray:
    """The inverse of rfftn(): ifft() along all axes but the last, then irfft() along it.

    s: the extents of the result; the last one is 2 (m - 1) of m values when left out.
    """
    return _to_real("irfftn", a, s, axes, norm, out)


def fft2(
    a: GPUArray, s: Extents = None, axes: Extents = _LAST_TWO, norm: str | None = None, out: GPUArray | None = None
) -> GPUArray:
    """fftn() along the last two axes."""
    return _complex("fft2", "fft", a, s, axes, norm, out)


def ifft2(
    a: GPUArray, s: Extents = None, axes: Extents = _LAST_TWO, norm: str | None = None, out: GPUArray | None = None
) -> GPUArray:
    """ifftn() along the last two axes."""
    return _complex("ifft2", "ifft", a, s, axes, norm, out)


def rfft2(
    a: GPUArray, s: Extents = None, axes: Extents = _LAST_TWO, norm: str | None = None, out: GPUArray | None = None
) -> GPUArray:
    """rfftn() along the last two axes."""
    return _from_real("rfft2", a, s, axes, norm, out)


def irfft2(
    a: GPUArray, s: Extents = None, axes: Extents = _LAST_TWO, norm: str | None = None, out: GPUArray | None = None
) -> GPUArray:
    """irfftn() along the last two axes."""
    return _to_real("irfft2", a, s, axes, norm, out)


def _complex(
    what: str, name: str, a: GPUArray, s: Extents, axes: Extents, norm: str | None, out: GPUArray | None
) -> GPUArray:
    a = check_array(a, what)
    checked_norm(norm, what)
    pairs = _pairs(what, a, s, axes)
    if not pairs:
        return _converted(a, result_dtype(name, a.dtype, what), out)
    for position, (n, axis) in enumerate(reversed(pairs)):
        last = position == len(pairs) - 1
        a = transform(name, a, n, axis, norm, out if last else None, what=what)
    return a


def _from_real(what: str, a: GPUArray, s: Extents, axes: Extents, norm: str | None, out: GPUArray | None) -> GPUArray:
    a = check_array(a, what)
    *others, (n, axis) = _some(what, _pairs(what, a, s, axes))
    a = transform("rfft", a, n, axis, norm, None if others else out, what=what)
    for position, (n, axis) in enumerate(reversed(others)):
        last = position == len(others) - 1
        a = transform("fft", a, n, axis, norm, out if last else None, what=what)
    return a


def _to_real(what: str, a: GPUArray, s: Extents, axes: Extents, norm: str | None, out: GPUArray | None) -> GPUArray:
    a = check_array(a, what)
    *others, (n, axis) = _some(what, _pairs(what, a, s, axes))
    for own, other in others:
        a = transform("ifft", a, own, other, norm, None, what=what)
    return transform("irfft", a, None if s is None else n, axis, norm, out, what=what)


def _some(what: str, pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    if not pairs:
        raise ShapeError(f"{what}: there is no axis to transform along; give an array or axes with at least one")
    return pairs


def _pairs(what: str, a: GPUArray, s: Extents, axes: Extents) -> list[tuple[int, int]]:
    """The extent and the axis of each transform. All is checked before the first one runs."""
    if axes is None:
        axes = range(a.ndim) if s is None else range(-len(s), 0)
    axes = [layout.normalize_axis(operator.index(axis), a.ndim, what) for axis in axes]
    extents = [-1] * len(axes) if s is None else [-1 if n is None else operator.index(n) for n in s]
    if len(extents) != len(axes):
        raise ShapeError(f"{what}: s has {len(extents)} extents for {len(axes)} axes; give one for each")
    if bad := [n for n in extents if n < 1 and n != -1]:
        raise ShapeError(f"{what}: an extent in s is {bad[0]}; it is at least 1, or -1 for the axis as it is")
    return [(a.shape[axis] if n == -1 else n, axis) for n, axis in zip(extents, axes, strict=True)]


def _converted(a: GPUArray, dtype: DataType, out: GPUArray | None) -> GPUArray:
    return copying.astype(a, dtype) if out is None else copying.astype(a, dtype)._into(out, "fftn")
