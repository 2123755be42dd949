"""isclose and allclose: how far two arrays are apart, on the device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit.array import layout, promotion
from pygpukit.core.dtypes import float64
from pygpukit.ops import elementwise
from pygpukit.ops import reduce as reduction
from pygpukit.ops.elementwise import logic
from pygpukit.ops.operands import check_devices, check_operand, is_array

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.operands import Operand

__all__ = ["allclose", "isclose"]


def isclose(a: Operand, b: Operand, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> GPUArray:
    """Where |a - b| <= atol + rtol * |b|, as bool; the operands broadcast, one at least is an array.

    Infinities are close to themselves, NaN to nothing, or with equal_nan to NaN. Integers are compared as float64.
    """
    a, b = _operands("isclose", a, b)
    bound = elementwise.add(elementwise.mul(elementwise.abs(b), rtol), atol) if is_array(b) else atol + rtol * abs(b)
    near = logic.less_equal(elementwise.abs(elementwise.sub(a, b)), bound)
    finite = logic.isfinite(b) if is_array(b) else b - b == 0
    near = logic.logical_or(logic.logical_and(near, finite), logic.equal(a, b))
    if not equal_nan:
        return near
    missing = [logic.isnan(operand) if is_array(operand) else operand != operand for operand in (a, b)]
    return logic.logical_or(near, logic.logical_and(missing[0], missing[1]))


def allclose(a: Operand, b: Operand, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """True where isclose() holds everywhere. Waits for the answer."""
    a, b = _operands("allclose", a, b)
    return bool(reduction.all(isclose(a, b, rtol, atol, equal_nan)))


def _operands(what: str, a: Any, b: Any) -> list[Any]:
    """Both as arrays of floats or numbers, checked before anything is launched."""
    operands = [check_operand(operand, what) for operand in (a, b)]
    arrays = [operand for operand in operands if is_array(operand)]
    if len(arrays) == 2:
        check_devices(what, *arrays)
        layout.broadcast_shapes(arrays[0].shape, arrays[1].shape, what)
    return [_inexact(operand) for operand in operands]


def _inexact(operand: Any) -> Any:
    if is_array(operand) and not promotion.is_inexact(operand.dtype):
        return operand.astype(float64)
    return operand
