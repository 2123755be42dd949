"""The axes that a function reduces, brought together as the last one."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from pygpukit.array import layout, promotion
from pygpukit.array.layout import Shape
from pygpukit.core.errors import DTypeError, ShapeError
from pygpukit.ops import shape
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.operands import check_array, check_devices

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

    Axis = int | Sequence[int] | None


class Rows(NamedTuple):
    """array: the elements to reduce along its last axis. shape: of the result; kept: the same with keepdims."""

    array: GPUArray
    shape: Shape
    kept: Shape


def rows_of(a: Any, axis: Axis, what: str) -> Rows:
    """The rows of an array of real numbers along some axes, None for all. Raises ShapeError, DTypeError,
    DeviceMismatchError."""
    a = check_real(a, what)
    axes = range(a.ndim) if axis is None else layout.integers(axis, f"{what}: axis")
    own = [layout.normalize_axis(each, a.ndim, what) for each in axes]
    if len(set(own)) != len(own):
        raise ShapeError(f"{what}: axis {axis} names an axis of shape {a.shape} twice")
    others = [k for k in range(a.ndim) if k not in own]
    extents = tuple(a.shape[k] for k in others)
    last = shape.transpose(a, (*others, *sorted(own)))
    rows = shape.reshape(last, (*extents, prod(a.shape[k] for k in own)))
    return Rows(rows, extents, tuple(1 if k in own else extent for k, extent in enumerate(a.shape)))


def check_real(a: Any, what: str) -> GPUArray:
    """a, an array of real numbers on the current device."""
    a = check_array(a, what)
    check_devices(what, a)
    if a.dtype.name not in CTYPES:
        raise DTypeError(f"{what}: {a.dtype} is a storage type without an order; convert to a type that computes first")
    if a.dtype in promotion.COMPLEX:
        raise DTypeError(f"{what}: complex numbers have no order; apply it to their parts or magnitudes, convert first")
    return a
