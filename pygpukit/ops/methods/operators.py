"""Python's operators on arrays: what GPUArray, and what stands for one in a fused function, have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit.ops import elementwise
from pygpukit.ops.elementwise import logic, operations

if TYPE_CHECKING:
    from pygpukit.ops.operands import Operand


class Operators:
    """Every operator but @ as the function of that meaning in ops/elementwise and ops/elementwise/logic.py."""

    __slots__ = ()

    def __add__(self: Any, other: Operand) -> Any:
        return elementwise.add(self, other)

    def __radd__(self: Any, other: Operand) -> Any:
        return elementwise.add(other, self)

    def __iadd__(self: Any, other: Operand) -> Any:
        return elementwise.add(self, other, out=self)

    def __sub__(self: Any, other: Operand) -> Any:
        return elementwise.sub(self, other)

    def __rsub__(self: Any, other: Operand) -> Any:
        return elementwise.sub(other, self)

    def __isub__(self: Any, other: Operand) -> Any:
        return elementwise.sub(self, other, out=self)

    def __mul__(self: Any, other: Operand) -> Any:
        return elementwise.mul(self, other)

    def __rmul__(self: Any, other: Operand) -> Any:
        return elementwise.mul(other, self)

    def __imul__(self: Any, other: Operand) -> Any:
        return elementwise.mul(self, other, out=self)

    def __truediv__(self: Any, other: Operand) -> Any:
        return elementwise.div(self, other)

    def __rtruediv__(self: Any, other: Operand) -> Any:
        return elementwise.div(other, self)

    def __itruediv__(self: Any, other: Operand) -> Any:
        return elementwise.div(self, other, out=self)

    def __floordiv__(self: Any, other: Operand) -> Any:
        return elementwise.floor_divide(self, other)

    def __rfloordiv__(self: Any, other: Operand) -> Any:
        return elementwise.floor_divide(other, self)

    def __ifloordiv__(self: Any, other: Operand) -> Any:
        return elementwise.floor_divide(self, other, out=self)

    def __mod__(self: Any, other: Operand) -> Any:
        return elementwise.remainder(self, other)

    def __rmod__(self: Any, other: Operand) -> Any:
        return elementwise.remainder(other, self)

    def __imod__(self: Any, other: Operand) -> Any:
        return elementwise.remainder(self, other, out=self)

    def __pow__(self: Any, other: Operand) -> Any:
        return elementwise.power(self, other)

    def __rpow__(self: Any, other: Operand) -> Any:
        return elementwise.power(other, self)

    def __ipow__(self: Any, other: Operand) -> Any:
        return elementwise.power(self, other, out=self)

    def __and__(self: Any, other: Operand) -> Any:
        return logic.bitwise_and(self, other)

    def __rand__(self: Any, other: Operand) -> Any:
        return logic.bitwise_and(other, self)

    def __iand__(self: Any, other: Operand) -> Any:
        return logic.bitwise_and(self, other, out=self)

    def __or__(self: Any, other: Operand) -> Any:
        return logic.bitwise_or(self, other)

    def __ror__(self: Any, other: Operand) -> Any:
        return logic.bitwise_or(other, self)

    def __ior__(self: Any, other: Operand) -> Any:
        return logic.bitwise_or(self, other, out=self)

    def __xor__(self: Any, other: Operand) -> Any:
        return logic.bitwise_xor(self, other)

    def __rxor__(self: Any, other: Operand) -> Any:
        return logic.bitwise_xor(other, self)

    def __ixor__(self: Any, other: Operand) -> Any:
        return logic.bitwise_xor(self, other, out=self)

    def __lshift__(self: Any, other: Operand) -> Any:
        return logic.bitwise_left_shift(self, other)

    def __rlshift__(self: Any, other: Operand) -> Any:
        return logic.bitwise_left_shift(other, self)

    def __ilshift__(self: Any, other: Operand) -> Any:
        return logic.bitwise_left_shift(self, other, out=self)

    def __rshift__(self: Any, other: Operand) -> Any:
        return logic.bitwise_right_shift(self, other)

    def __rrshift__(self: Any, other: Operand) -> Any:
        return logic.bitwise_right_shift(other, self)

    def __irshift__(self: Any, other: Operand) -> Any:
        return logic.bitwise_right_shift(self, other, out=self)

    def __neg__(self: Any) -> Any:
        return elementwise.neg(self)

    def __pos__(self: Any) -> Any:
        return elementwise.positive(self)

    def __abs__(self: Any) -> Any:
        return elementwise.abs(self)

    def __invert__(self: Any) -> Any:
        return logic.bitwise_invert(self)

    def __eq__(self: Any, other: object) -> Any:
        return _compare(operations.EQ, self, other)

    def __ne__(self: Any, other: object) -> Any:
        return _compare(operations.NE, self, other)

    def __lt__(self: Any, other: Operand) -> Any:
        return logic.less(self, other)

    def __le__(self: Any, other: Operand) -> Any:
        return logic.less_equal(self, other)

    def __gt__(self: Any, other: Operand) -> Any:
        return logic.greater(self, other)

    def __ge__(self: Any, other: Operand) -> Any:
        return logic.greater_equal(self, other)

    __hash__ = object.__hash__  # by identity, so that arrays can be keys although == compares elements


def _compare(op: operations.Op, a: Any, b: Any) -> Any:
    if b is None or isinstance(b, str):
        return NotImplemented  # not numbers: never equal, as for any object
    return elementwise.binary(op, a, b, None)
