"""Operators and methods of Tile and DType, bound when this is imported: x + y, x[:, None], x.astype(), ct.int32(x)."""

from __future__ import annotations

from typing import Any

from pygpukit.core.errors import DTypeError
from pygpukit.cutile import arithmetic, products, shapes
from pygpukit.cutile.block import refused
from pygpukit.cutile.dtypes import DType
from pygpukit.cutile.enums import check_rounding
from pygpukit.cutile.tile import Tile, is_number

_BINARY = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "truediv": "truediv",
    "floordiv": "floordiv",
    "mod": "mod",
    "pow": "pow",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "bitwise_lshift",
    "rshift": "bitwise_rshift",
}
_COMPARISONS = {
    "gt": "greater",
    "ge": "greater_equal",
    "lt": "less",
    "le": "less_equal",
    "eq": "equal",
    "ne": "not_equal",
}


def _is_operand(value: Any) -> bool:
    return isinstance(value, Tile) or is_number(value)


def _forward(name: str) -> Any:
    return lambda self, other: arithmetic.binary(name, self, other) if _is_operand(other) else NotImplemented


def _backward(name: str) -> Any:
    return lambda self, other: arithmetic.binary(name, other, self) if _is_operand(other) else NotImplemented


def divided(x: Any, y: Any, /) -> tuple[Any, Any]:
    """divmod() of integers. Raises DTypeError for floats, which cuTile does not have."""
    if any(isinstance(one, Tile) and one.dtype.category == "f" for one in (x, y)):
        raise refused(DTypeError("divmod is for integers; write x // y and x % y of floats"))
    return arithmetic.binary("floordiv", x, y), arithmetic.binary("mod", x, y)


def astype(x: Any, dtype: Any, /, *, rounding_mode: Any = None) -> Tile:
    """x.astype(), with a rounding that is to nearest even."""
    check_rounding(rounding_mode, "astype")
    return arithmetic.astype(x, dtype)


for _method, _name in _BINARY.items():
    setattr(Tile, f"__{_method}__", _forward(_name))
    setattr(Tile, f"__r{_method}__", _backward(_name))
for _method, _name in _COMPARISONS.items():
    setattr(Tile, f"__{_method}__", _forward(_name))
_METHODS: dict[str, Any] = {
    "__neg__": lambda self: arithmetic.unary("negative", self),
    "__pos__": lambda self: self,
    "__invert__": lambda self: arithmetic.unary("bitwise_not", self),
    "__abs__": lambda self: arithmetic.unary("abs", self),
    "__matmul__": lambda self, other: products.matmul(self, other),
    "__divmod__": lambda self, other: divided(self, other),
    "__rdivmod__": lambda self, other: divided(other, self),
    "__getitem__": shapes.indexed,
    "item": lambda self: shapes.reshape(self, ()),
    "astype": lambda self, dtype, *, rounding_mode=None: astype(self, dtype, rounding_mode=rounding_mode),
    "reshape": lambda self, shape: shapes.reshape(self, shape),
    "permute": lambda self, axes: shapes.permute(self, axes),
    "transpose": lambda self, axis0=None, axis1=None: shapes.transpose(self, axis0, axis1),
    "extract": lambda self, index, shape: shapes.extract(self, index, shape),
    "insert": lambda self, index, value: shapes.insert(self, index, value),
}
for _method, _function in _METHODS.items():
    setattr(Tile, _method, _function)
setattr(DType, "__call__", lambda self, value=0, /: arithmetic.astype(value, self))  # noqa: B010  mypy sees no method here
