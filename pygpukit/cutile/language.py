"""The stand-in for `cuda.tile`: its names for the interpreter, as a module; cuTile need not be installed."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Annotated, Any, TypeVar

import numpy as np

from pygpukit.core.errors import GPUError
from pygpukit.cutile import access, arithmetic, atomics, dtypes, enums, operators, products, reductions, shapes
from pygpukit.cutile.block import current, finding, plain, refused
from pygpukit.cutile.dtypes import bool_, int32
from pygpukit.cutile.tile import Tile, of
from pygpukit.cutile.views import KernelArray, RawMemory, TiledView

T = TypeVar("T")


class ConstantAnnotation:
    """Marks a parameter that is known when a kernel is compiled."""

    def __repr__(self) -> str:
        return "ConstantAnnotation()"


class ScalarAnnotation:
    """Marks a parameter whose integers have 64 bits."""

    def __init__(self, *, dtype: Any) -> None:
        self.dtype = dtype


class ArrayAnnotation:
    """Says of an array what the compiler may build in; the interpreter takes it as it is."""

    def __init__(self, *, index_dtype: Any = int32, static_shape_dims: Any = (), static_stride_dims: Any = ()) -> None:
        self.index_dtype, self.static_shape_dims = index_dtype, static_shape_dims
        self.static_stride_dims = static_stride_dims


class Range:
    """range() in a kernel: whole numbers that are known when it runs."""

    def __init__(self, *limits: Any) -> None:
        self.numbers = range(*(of(one, "range()").__index__() for one in limits))

    def __iter__(self) -> Iterator[Tile]:
        return (Tile(np.asarray(one, np.int32), int32) for one in self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)


def _axis(axis: Any, what: str) -> int:
    number = plain(axis, f"{what}: the axis")
    if number not in (0, 1, 2):
        raise refused(GPUError(f"{what}({number!r}): the axis is 0, 1 or 2"))
    return int(number)


def _bid(axis: Any) -> Tile:
    return Tile(np.asarray(current("bid()").index[_axis(axis, "bid")], np.int32), int32)


def _num_blocks(axis: Any) -> Tile:
    return Tile(np.asarray(current("num_blocks()").extents[_axis(axis, "num_blocks")], np.int32), int32)


def _binary(name: str) -> Callable[..., Any]:
    def function(
        x: Any, y: Any, /, *, rounding_mode: Any = None, flush_to_zero: bool = False, propagate_nan: bool = False
    ) -> Any:
        enums.check_rounding(rounding_mode, name)
        return arithmetic.binary(name, x, y, flush_to_zero=flush_to_zero, propagate_nan=propagate_nan)

    return function


def _unary(name: str) -> Callable[..., Any]:
    def function(x: Any, /, *, rounding_mode: Any = None, flush_to_zero: bool = False) -> Any:
        enums.check_rounding(rounding_mode, name)
        return arithmetic.unary(name, x, flush_to_zero=flush_to_zero)

    return function


def _reduction(name: str) -> Callable[..., Tile]:
    def function(
        x: Any,
        /,
        axis: Any = None,
        *,
        keepdims: Any = False,
        rounding_mode: Any = None,
        flush_to_zero: bool = False,
        propagate_nan: bool = False,
    ) -> Tile:
        enums.check_rounding(rounding_mode, name)
        options = {"flush_to_zero": flush_to_zero, "propagate_nan": propagate_nan}
        return reductions.reduction(name, x, axis, keepdims, **options)

    return function


def _place(name: str) -> Callable[..., Tile]:
    return lambda x, /, axis=None, *, keepdims=False, propagate_nan=False: reductions.place_of(
        name, x, axis, keepdims, propagate_nan=propagate_nan
    )


def _cumulative(name: str) -> Callable[..., Tile]:
    def function(
        x: Any, /, axis: Any = 0, *, reverse: Any = False, rounding_mode: Any = None, flush_to_zero: bool = False
    ) -> Tile:
        enums.check_rounding(rounding_mode, name)
        return reductions.cumulative(name, x, axis, reverse, flush_to_zero=flush_to_zero)

    return function


def _atomic(name: str) -> Callable[..., Tile]:
    def function(
        array: Any,
        indices: Any,
        update: Any,
        /,
        *,
        check_bounds: Any = True,
        memory_order: Any = enums.MemoryOrder.ACQ_REL,
        memory_scope: Any = enums.MemoryScope.DEVICE,
    ) -> Tile:
        return atomics.update(name, array, indices, update, check_bounds, memory_order, memory_scope)

    return function


def _print(*values: Any, sep: str = " ", end: str = "\n") -> None:
    sys.stdout.write(sep.join(map(str, values)) + end)


def _printf(format: str, *values: Any) -> None:
    sys.stdout.write(format % tuple(of(one, "printf").scalar("printf: a value") for one in values))


def _assert(condition: Any, /, message: Any = None) -> None:
    if not of(condition, "assert_").known("ct.assert_()").all():
        raise finding("assert", str(message) if message else "ct.assert_() does not hold")


def _static_assert(condition: Any, message: Any = None, /) -> None:
    if not plain(condition, "static_assert: the condition"):
        raise refused(GPUError(f"static_assert: {message if message is not None else 'the condition does not hold'}"))


def _static_iter(iterable: Any) -> list[Any]:
    return list(iterable.numbers if isinstance(iterable, Range) else iterable)


def _assume_divisible_by(x: Any, divisor: Any) -> Any:
    number = of(x, "assume_divisible_by").__index__()
    if number % plain(divisor, "assume_divisible_by: the divisor"):
        raise finding("assert", f"ct.assume_divisible_by: {number} is no multiple of {divisor}")
    return x


def _cdiv(x: Any, y: Any, /) -> Any:
    return arithmetic.binary("cdiv", x, y)


def _bool(value: Any = False, /) -> Any:
    """bool() in a kernel: of a tile without axes a scalar of cuTile's type."""
    return bool(value) if not isinstance(value, Tile) else arithmetic.astype(shapes.reshape(value, ()), bool_)


def _extreme(name: str, python: Callable[..., Any]) -> Callable[..., Any]:
    def function(*values: Any) -> Any:
        if len(values) == 2 and any(isinstance(one, Tile) for one in values):
            return arithmetic.binary(name, *values)
        return python(*values)

    return function


_BINARIES = [*arithmetic.ARITHMETIC, "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_lshift", "bitwise_rshift",
             "greater", "greater_equal", "less", "less_equal", "equal", "not_equal"]  # fmt: skip
_UNARIES = ["exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "floor", "ceil",
            "abs", "negative", "bitwise_not"]  # fmt: skip

NAMES: dict[str, Any] = {
    **dtypes.DTYPES,
    **{one.__name__: one for one in (enums.PaddingMode, enums.RoundingMode, enums.MemoryOrder, enums.MemoryScope)},
    **{one.__name__: one for one in (ConstantAnnotation, ArrayAnnotation, Tile, TiledView)},
    "DType": dtypes.DType,
    "Array": KernelArray,
    "RawArrayMemory": RawMemory,
    "Slice": access.Slice,
    "Constant": Annotated[T, ConstantAnnotation()],
    "ScalarInt64": Annotated[T, ScalarAnnotation(dtype=dtypes.int64)],
    "IndexedWithInt64": Annotated[T, ArrayAnnotation(index_dtype=dtypes.int64)],
    **{name: _binary(name) for name in _BINARIES},
    **{name: _unary(name) for name in _UNARIES},
    **{name: _reduction(name) for name in ("sum", "prod", "max", "min")},
    **{name: _place(name) for name in ("argmax", "argmin")},
    **{name: _cumulative(name) for name in ("cumsum", "cumprod")},
    **{f"atomic_{name}": _atomic(name) for name in ("xchg", "add", "max", "min", "and", "or", "xor")},
    "atomic_cas": atomics.compare_and_swap,
    "reduce": reductions.reduce,
    "scan": reductions.scan,
    "mma": products.mma,
    "matmul": products.matmul,
    "where": arithmetic.where,
    "isnan": arithmetic.isnan,
    "astype": operators.astype,
    "divmod": operators.divided,
    **{
        one.__name__: one
        for one in (
            shapes.arange, shapes.full, shapes.astile, shapes.broadcast_to, shapes.reshape, shapes.permute,
            shapes.transpose, shapes.expand_dims, shapes.cat, shapes.extract, shapes.insert, shapes.bitcast,
            shapes.pack_to_bytes, shapes.unpack_from_bytes, access.load, access.store, access.gather, access.scatter,
            access.load_advanced_indexing, access.store_advanced_indexing, access.num_tiles,
        )
    },
    "zeros": lambda shape, dtype: shapes.full(shape, 0, dtype),
    "ones": lambda shape, dtype: shapes.full(shape, 1, dtype),
    "bid": _bid,
    "num_blocks": _num_blocks,
    "cdiv": _cdiv,
    "print": _print,
    "printf": _printf,
    "assert_": _assert,
    "assume_divisible_by": _assume_divisible_by,
    "static_eval": lambda value, /: value,
    "static_assert": _static_assert,
    "static_iter": _static_iter,
    "static_exception": lambda error, /: refused(GPUError(f"{type(error).__name__}: {error}")),
    "ensure_constant": lambda value, /: plain(value, "ensure_constant: the argument"),
    "grid_dependency_control_wait": lambda: None,
    "grid_dependency_control_launch_dependents": lambda: None,
    "function": lambda func=None, /, *, host=False, tile=True: func if func is not None else lambda one: one,
}  # fmt: skip

# Python's own functions as they are in kernels.
BUILTINS: dict[str, Any] = {
    **vars(builtins),
    "range": Range,
    "abs": NAMES["abs"],
    "min": _extreme("minimum", builtins.min),
    "max": _extreme("maximum", builtins.max),
    "print": _print,
    "bool": _bool,
    "divmod": operators.divided,
}


class Language(ModuleType):
    """A module of cuTile's names. Others raise AttributeError that says so."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"ct.{name}: the interpreter of cuTile kernels has no such name (docs/cutile.md lists them)"
        )


def module(kernel: Callable[..., Any], launch: Callable[..., None]) -> Language:
    """The stand-in with its decorator and its launch."""
    out = Language("pygpukit.cutile.ct", __doc__)
    vars(out).update(NAMES, kernel=kernel, launch=launch)
    return out
