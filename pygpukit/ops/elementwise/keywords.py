"""The keywords that NumPy's ufuncs have beside out=: where=, dtype= and casting=."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.array import layout, promotion
from pygpukit.core.dtypes import DataType, as_dtype, bool_
from pygpukit.core.errors import DTypeError
from pygpukit.ops import copying
from pygpukit.ops.elementwise import operations, pointwise
from pygpukit.ops.operands import check_array, check_operand, check_out, check_writable, is_array

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

Function = Callable[..., Any]


def ufunc(operands: int) -> Callable[[Function], Any]:
    """Decorator of a function of arrays, function(a, out=) or function(a, b, out=): it takes the keywords, too, and
    out by position."""

    def decorate(function: Function) -> Any:
        what = function.__name__

        def one(
            a: Any, out: Any = None, *, where: Any = True, dtype: Any = None, casting: str = promotion.SAME_KIND
        ) -> Any:
            if where is True and dtype is None and casting == promotion.SAME_KIND:
                return function(a, out=out)
            return call(what, function, (a,), out, where, dtype, casting)

        def two(
            a: Any, b: Any, out: Any = None, *, where: Any = True, dtype: Any = None, casting: str = promotion.SAME_KIND
        ) -> Any:
            if where is True and dtype is None and casting == promotion.SAME_KIND:
                return function(a, b, out=out)
            return call(what, function, (a, b), out, where, dtype, casting)

        chosen: Any = one if operands == 1 else two
        for name in ("__name__", "__qualname__", "__module__", "__doc__"):
            setattr(chosen, name, getattr(function, name))
        return chosen

    return decorate


def call(
    what: str, function: Function, operands: tuple[Any, ...], out: Any, where: Any, dtype: Any, casting: str
) -> GPUArray:
    """function(*operands), computed in `dtype`, converted under the rule `casting`, written where `where` is true.

    Elsewhere out keeps its elements; without out they are zero. Raises DTypeError for a conversion that the rule does
    not allow, ValueError for an unknown rule, and what the function raises.
    """
    promotion.check_casting(casting, what)
    result = function(*(operands if dtype is None else _converted(what, operands, as_dtype(dtype), casting)))
    if dtype is not None and result.dtype != as_dtype(dtype):
        raise DTypeError(
            f"{what}: with dtype={as_dtype(dtype).name!r} the result would be {result.dtype}; leave it out"
        )
    mask = None if where is True else _mask(where, what)
    shape = result.shape if mask is None else layout.broadcast_shapes(result.shape, mask.shape, what)
    if out is None:
        target = native.empty(shape, result.dtype)
        if mask is not None and target.size:
            copying.fill(target, 0)
    else:
        target = _target(what, out, shape, result.dtype, casting)
    if mask is None:
        copying.copy_to(result, target)
        return target
    if result.dtype != target.dtype:
        result = copying.astype(result, target.dtype)
    pointwise.ternary(operations.SELECT, target.dtype, mask, result, target, target)
    return target


def _converted(what: str, operands: tuple[Any, ...], dtype: DataType, casting: str) -> list[Any]:
    """The operands in the type to compute in; a test's result is bool, whatever it computes in."""
    if dtype == bool_:
        return list(operands)
    converted = []
    for operand in operands:
        operand = check_operand(operand, what)
        if is_array(operand) and operand.dtype != dtype:
            if not promotion.can_cast(operand.dtype, dtype, casting):
                raise DTypeError(f"{what}: {operand.dtype} does not convert to {dtype} with casting={casting!r}")
            operand = copying.astype(operand, dtype)
        converted.append(operand)
    return converted


def _mask(where: Any, what: str) -> GPUArray:
    if isinstance(where, (bool, list, tuple)):
        from pygpukit.array.factory import asarray

        where = asarray(where)
    mask = check_array(where, f"{what}: where")
    if mask.dtype != bool_:
        raise DTypeError(f"{what}: where is {mask.dtype}; it must be bool")
    return mask


def _target(what: str, out: Any, shape: layout.Shape, dtype: DataType, casting: str) -> GPUArray:
    if casting != "unsafe":
        return check_out(out, shape, dtype, what)
    target = check_array(out, f"{what}: out")
    check_writable(target, f"{what}: out")
    return check_out(target, shape, target.dtype, what)
