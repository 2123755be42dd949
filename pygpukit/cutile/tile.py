"""Tile: the values of a kernel, with what is known of each element. Operators are bound to it by `operators`."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from pygpukit.core.errors import DTypeError, GPUError, ShapeError
from pygpukit.cutile.block import finding, plain, refused
from pygpukit.cutile.dtypes import DType, named, of_number
from pygpukit.cutile.rounding import rounded

Array: TypeAlias = "np.ndarray[Any, Any]"
MAX_ELEMENTS = 1 << 24  # of one tile: bounds what a kernel's typing error costs


class Tile:
    """Elements of one type. undetermined: True where nothing says what an element is, None where all are known.

    data is in the type that the interpreter computes in, and each element is one that `dtype` has.
    """

    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None  # NumPy's scalars leave operators to the tile

    def __init__(self, data: Array, dtype: DType, undetermined: Array | None = None) -> None:
        self.data, self.dtype = data, dtype
        self.undetermined = undetermined if undetermined is not None and undetermined.any() else None

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents, powers of two."""
        return self.data.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.data.ndim

    def known(self, what: str) -> Array:
        """The elements, where all must be determined. Raises KernelCheckError."""
        if self.undetermined is not None:
            raise finding("uninitialised", f"{what} depends on elements that a load left undetermined: they lie past "
                          "the end of their array, and the load has no padding_mode")  # fmt: skip
        return self.data

    def scalar(self, what: str) -> Any:
        """The value of a tile without axes, as Python has it. Raises ShapeError, KernelCheckError."""
        if self.data.ndim:
            raise refused(ShapeError(f"{what} is a tile of shape {self.shape}; it must be one value, shape ()"))
        return self.known(what).item()

    def __bool__(self) -> bool:
        return bool(self.scalar("a condition"))

    def __index__(self) -> int:
        if self.dtype.category != "i":
            raise refused(DTypeError(f"an index is {self.dtype}; it must be an integer"))
        return int(self.scalar("an index"))

    def __int__(self) -> int:
        raise refused(GPUError("int() is for constants; convert a tile by .astype(ct.int32)"))

    def __float__(self) -> float:
        raise refused(GPUError("float() is for constants; convert a tile by .astype(ct.float32)"))

    def __iter__(self) -> Any:
        raise refused(GPUError("a tile cannot be iterated over; use ct.extract()"))

    def __format__(self, spec: str) -> str:
        return _formatted(self.data.tolist(), spec)

    def __str__(self) -> str:
        return _formatted(self.data.astype(np.int8).tolist() if self.dtype.kind == "b" else self.data.tolist(), "")

    __repr__ = __str__  # in a tuple that a kernel prints

    @property
    def kind(self) -> str:
        """The type and shape in an error."""
        return f"a tile of {self.dtype}, shape {self.shape}"


def _formatted(value: Any, spec: str) -> str:
    return f"[{', '.join(_formatted(one, spec) for one in value)}]" if isinstance(value, list) else format(value, spec)


def is_number(value: Any) -> bool:
    """True for a bool, int or float of Python, or a scalar of NumPy's."""
    return isinstance(value, (bool, int, float, np.generic)) and np.ndim(value) == 0


def plain_number(value: Any) -> Any:
    """A scalar of NumPy's as Python has it."""
    return value.item() if isinstance(value, np.generic) else value


def of(value: Any, what: str) -> Tile:
    """A value as a tile; a number becomes one of its own type. Raises DTypeError for anything else."""
    if isinstance(value, Tile):
        return value
    if is_number(value):
        number = plain_number(value)
        dtype = of_number(number)
        return Tile(rounded(number, dtype), dtype)
    raise refused(DTypeError(f"{what} is a {type(value).__name__}; it must be a tile or a number"))


def kind_of(value: Any) -> DType | Any:
    """The type of a tile; a number as it is, whose type depends on the other operand."""
    return value.dtype if isinstance(value, Tile) else plain_number(value)


def dtype_argument(value: Any) -> DType:
    """The type that a kernel names. Raises DTypeError."""
    try:
        return named(value)
    except DTypeError as error:
        raise refused(error) from None


def shape_argument(shape: Any, what: str, *, whole: bool = False) -> tuple[int, ...]:
    """The extents that a kernel names, each a power of two; whole: one may be -1. Raises ShapeError."""
    extents = plain(shape if isinstance(shape, (tuple, list)) else (shape,), f"{what}: the shape of a tile")
    for one in extents:
        if isinstance(one, bool) or not isinstance(one, (int, np.integer)):
            raise refused(ShapeError(f"{what}: shape {extents} has an extent that is no whole number: {one!r}"))
        if (one != -1 or not whole) and (one < 1 or one & (one - 1)):
            raise refused(ShapeError(f"{what}: shape {extents}: extents of tiles are powers of two, not {one}"))
    if not whole and int(np.prod(extents, dtype=object)) > MAX_ELEMENTS:
        raise refused(ShapeError(f"{what}: a tile of shape {extents} has more than {MAX_ELEMENTS} elements"))
    return tuple(int(one) for one in extents)
