"""Python's operators on arrays: what GPUArray, and what stands for one in a fused function, have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pygpukit.ops import elementwise
from pygpukit.ops.elementwise import logic, operations
from pygpukit.ops.operands import NoOperandError

if TYPE_CHECKING:
    from pygpukit.ops.operands import Operand


def _forward(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """The operator with the array on the left."""

    def operator(self: Any, other: Any) -> Any:
        try:
            return function(self, other)
        except NoOperandError:
            return NotImplemented

    return operator


def _reflected(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """The operator with the array on the right."""

    def operator(self: Any, other: Any) -> Any:
        try:
            return function(other, self)
        except NoOperandError:
            return NotImplemented

    return operator


def _in_place(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """The operator that writes the array on the left."""

    def operator(self: Any, other: Any) -> Any:
        try:
            return function(self, other, out=self)
        except NoOperandError:
            return NotImplemented

    return operator


class Operators:
    """Every operator but @ as the function of that meaning in ops/elementwise and ops/elementwise/logic.py.

    An operand of a type that no operation knows is left to that type's own operator, as Python wants it.
    """

    __slots__ = ()

    __add__, __radd__, __iadd__ = _forward(elementwise.add), _reflected(elementwise.add), _in_place(elementwise.add)
    __sub__, __rsub__, __isub__ = _forward(elementwise.sub), _reflected(elementwise.sub), _in_place(elementwise.sub)
    __mul__, __rmul__, __imul__ = _forward(elementwise.mul), _reflected(elementwise.mul), _in_place(elementwise.mul)
    __truediv__, __rtruediv__, __itruediv__ = (
        _forward(elementwise.div),
        _reflected(elementwise.div),
        _in_place(elementwise.div),
    )
    __floordiv__, __rfloordiv__, __ifloordiv__ = (
        _forward(elementwise.floor_divide),
        _reflected(elementwise.floor_divide),
        _in_place(elementwise.floor_divide),
    )
    __mod__, __rmod__, __imod__ = (
        _forward(elementwise.remainder),
        _reflected(elementwise.remainder),
        _in_place(elementwise.remainder),
    )
    __pow__, __rpow__, __ipow__ = (
        _forward(elementwise.power),
        _reflected(elementwise.power),
        _in_place(elementwise.power),
    )
    __and__, __rand__, __iand__ = (
        _forward(logic.bitwise_and),
        _reflected(logic.bitwise_and),
        _in_place(logic.bitwise_and),
    )
    __or__, __ror__, __ior__ = _forward(logic.bitwise_or), _reflected(logic.bitwise_or), _in_place(logic.bitwise_or)
    __xor__, __rxor__, __ixor__ = (
        _forward(logic.bitwise_xor),
        _reflected(logic.bitwise_xor),
        _in_place(logic.bitwise_xor),
    )
    __lshift__, __rlshift__, __ilshift__ = (
        _forward(logic.bitwise_left_shift),
        _reflected(logic.bitwise_left_shift),
        _in_place(logic.bitwise_left_shift),
    )
    __rshift__, __rrshift__, __irshift__ = (
        _forward(logic.bitwise_right_shift),
        _reflected(logic.bitwise_right_shift),
        _in_place(logic.bitwise_right_shift),
    )

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

    __lt__, __le__ = _forward(logic.less), _forward(logic.less_equal)
    __gt__, __ge__ = _forward(logic.greater), _forward(logic.greater_equal)

    def __divmod__(self: Any, other: Operand) -> Any:
        quotient = self // other
        return (quotient, self % other) if quotient is not NotImplemented else NotImplemented

    def __rdivmod__(self: Any, other: Operand) -> Any:
        return other // self, other % self

    __hash__ = object.__hash__  # by identity, so that arrays can be keys although == compares elements


def _compare(op: operations.Op, a: Any, b: Any) -> Any:
    if b is None or isinstance(b, str):
        return NotImplemented  # not numbers: never equal, as for any object
    if isinstance(b, (list, tuple)):  # numbers written out: the question whether they are these has an answer
        from pygpukit.array.factory import asarray

        b = asarray(b)
    try:
        return elementwise.binary(op, a, b, None)
    except NoOperandError:
        return NotImplemented
