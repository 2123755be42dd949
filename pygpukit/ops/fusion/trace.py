"""Functions of arrays as expressions: found by calling them with stand-ins, a list of steps for ops/fusion."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from pygpukit._core import native
from pygpukit.array import layout, promotion
from pygpukit.core.dtypes import DataType, as_dtype, bool_
from pygpukit.core.errors import DTypeError
from pygpukit.ops.elementwise import operations
from pygpukit.ops.elementwise.operations import Op, compute_dtype
from pygpukit.ops.methods.operators import Operators
from pygpukit.ops.operands import Deferred, is_array

# An operand of a step: an array's value, by position among inputs and then steps, or a number, by position.
Value = tuple[str, int]


class FuseError(TypeError):
    """A function that cannot be fused; the message says where it leaves the arrays' elements."""


@dataclass(frozen=True)
class Step:
    """op(*operands) computed in `dtype`; the result has type `result`."""

    op: Op
    dtype: DataType
    result: DataType
    operands: tuple[Value, ...]


@dataclass
class Trace:
    """The steps of one call. numbers: how to get each number from the call's arguments, and the type it takes."""

    name: str
    inputs: list[Expression] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    numbers: list[tuple[Number, DataType]] = field(default_factory=list)
    values: list[Expression] = field(default_factory=list)  # inputs, then results of steps
    settled: list[Number] = field(default_factory=list)  # numbers whose value the steps depend on

    def fits(self, arguments: Sequence[Any]) -> bool:
        """True when a call with other numbers among its arguments has the same steps."""
        return all(type(one.evaluate(arguments)) is type(one.value) for one, _ in self.numbers) and all(
            one.evaluate(arguments) == one.value for one in self.settled
        )

    def input(self, shape: layout.Shape, dtype: DataType) -> Expression:
        """A stand-in for an argument; all inputs come before the first step."""
        value = self._value(shape, dtype)
        self.inputs.append(value)
        return value

    def step(self, op: Op, dtype: DataType, result: DataType, operands: Sequence[Any]) -> Expression:
        """The result of a further step. Operands are expressions of the right type, or numbers."""
        taken = tuple(self._operand(operand, dtype) for operand in operands)
        shape: layout.Shape = ()
        for operand in operands:
            if isinstance(operand, Expression):
                shape = layout.broadcast_shapes(shape, operand.shape, op.name)
        self.steps.append(Step(op, dtype, result, taken))
        return self._value(shape, result)

    def _value(self, shape: layout.Shape, dtype: DataType) -> Expression:
        expression = Expression(self, len(self.values), shape, dtype)
        self.values.append(expression)
        return expression

    def _operand(self, operand: Any, dtype: DataType) -> Value:
        if isinstance(operand, Expression):
            return "value", operand.position
        number = operand if isinstance(operand, Number) else Number(operand)
        self.numbers.append((number, dtype))
        return "number", len(self.numbers) - 1


class Expression(Operators, Deferred):
    """Stands for an array in a function that is traced: shape, dtype, operators and element-wise functions.

    Whatever needs an element's value raises FuseError.
    """

    __slots__ = ("dtype", "position", "shape", "trace")
    __array_ufunc__ = None

    def __init__(self, trace: Trace, position: int, shape: layout.Shape, dtype: DataType) -> None:
        self.trace, self.position, self.shape, self.dtype = trace, position, shape, dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def astype(self, dtype: Any) -> Expression:
        """The elements converted, as GPUArray.astype()."""
        target = as_dtype(dtype)
        for one in (self.dtype, target):
            compute_dtype(operations.COPY, one)
        return self if target is self.dtype else self.trace.step(operations.COPY, self.dtype, target, (self,))

    def record(self, op: Op, operands: Sequence[Any], out: Any) -> Expression:
        """The step that op(*operands) is, with the conversions that the operation itself would do first."""
        if out is not None:
            raise FuseError(f"fuse: {op.name} writes to an array inside {self.trace.name}(); return the result instead")
        for operand in operands:
            if is_array(operand):
                raise FuseError(f"fuse: {op.name} uses an array that is no argument of {self.trace.name}(); pass it")
            if isinstance(operand, Expression) and operand.trace is not self.trace:
                raise FuseError(f"fuse: {op.name} uses a stand-in that outlived its call; return results instead")
            if not isinstance(operand, (Expression, bool, int, float, complex, Number)):
                raise DTypeError(f"{op.name}: a {type(operand).__name__} is not an operand; pass arrays as arguments")
        first = operands[0]
        if op is operations.SELECT and not isinstance(first, Expression):
            raise DTypeError("where: the condition must be an array")
        typed = operands[1:] if op is operations.SELECT else operands
        dtype = compute_dtype(op, _common(typed)) if op is not operations.COPY else self.dtype
        converted = [one.astype(dtype) if isinstance(one, Expression) else one for one in typed]
        if op is operations.SELECT:
            converted.insert(0, first.astype(bool_))
        return self.trace.step(op, dtype, op.result_dtype(dtype), converted)

    def settle(self, number: Any) -> Any:
        """The value of a number among the arguments, on which the steps depend from now on."""
        if not isinstance(number, Number):
            return number
        self.trace.settled.append(number)
        return number.value

    def _refuse(self, what: str) -> NoReturn:
        raise FuseError(
            f"fuse: {self.trace.name}() {what}, but the values of arrays are not known while it becomes a kernel; "
            "choose between values with gp.where(condition, a, b), or do this outside of the function"
        )

    def __bool__(self) -> bool:
        self._refuse("branches on an array")

    def __float__(self) -> float:
        self._refuse("takes a number out of an array")

    __int__ = __index__ = __complex__ = item = __float__

    def to_numpy(self) -> NoReturn:
        """Refused: there are no elements yet."""
        self._refuse("copies an array to the host")

    __array__ = to_numpy

    def __iter__(self) -> NoReturn:
        self._refuse("iterates over an array")

    def __getitem__(self, key: Any) -> NoReturn:
        self._refuse("indexes an array")

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        self._refuse("writes to an array")


class Number:
    """Stands for a Python number among the arguments: arithmetic on it is done on the host at every call."""

    __slots__ = ("evaluate", "value")
    __array_ufunc__ = None

    def __init__(self, value: Any, evaluate: Callable[[Sequence[Any]], Any] | None = None) -> None:
        self.value = value
        self.evaluate = evaluate or (lambda arguments: value)

    def __bool__(self) -> bool:
        raise FuseError(
            "fuse: the function branches on a number among its arguments, which may be another one at the next call; "
            "use gp.where(condition, a, b), or take the number from outside of the function"
        )

    def __repr__(self) -> str:
        return f"Number({self.value!r})"


def _arithmetic(function: Callable[..., Any], reflected: bool) -> Callable[[Number, Any], Any]:
    def method(self: Number, other: Any) -> Any:
        if isinstance(other, Expression):
            return NotImplemented
        if not isinstance(other, Number):
            if isinstance(other, native.ArrayBase) or not isinstance(other, (bool, int, float, complex)):
                return NotImplemented
            other = Number(other)
        a, b = (other, self) if reflected else (self, other)
        return Number(function(a.value, b.value), lambda inputs: function(a.evaluate(inputs), b.evaluate(inputs)))

    return method


def _of_one(function: Callable[[Any], Any]) -> Callable[[Number], Number]:
    def method(self: Number) -> Number:
        return Number(function(self.value), lambda inputs: function(self.evaluate(inputs)))

    return method


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    setattr(Number, f"__{_name}__", _arithmetic(getattr(operator, _name), reflected=False))
    setattr(Number, f"__r{_name}__", _arithmetic(getattr(operator, _name), reflected=True))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Number, f"__{_name}__", _arithmetic(getattr(operator, _name), reflected=False))
for _name in ("neg", "pos", "abs"):
    setattr(Number, f"__{_name}__", _of_one(getattr(operator, _name)))


def _common(operands: Sequence[Any]) -> DataType:
    """The type that expressions and numbers promote to together."""
    types = [one.dtype for one in operands if isinstance(one, Expression)]
    numbers = [one.value if isinstance(one, Number) else one for one in operands if not isinstance(one, Expression)]
    if not types:
        return promotion.promote(*(promotion.of_number(number) for number in numbers))
    dtype = types[0]
    for other in types[1:]:
        dtype = promotion.promote(dtype, other)
    for number in numbers:
        dtype = promotion.with_scalar(dtype, number)
    return dtype
