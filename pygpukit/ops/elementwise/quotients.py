"""Quotients of integers in one launch: true ones without a conversion before, of dense ones floored ones by a product.

The results are those of the general kernels: integers are converted to float64, then divided; floored quotients and
rests are exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pygpukit import kernels
from pygpukit.array import scalars
from pygpukit.core.dtypes import DataType, float64
from pygpukit.ops import host
from pygpukit.ops.elementwise import walks
from pygpukit.ops.operands import is_array

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.operands import Operand

SOURCE = kernels.KernelSpec(__file__, "quotients.cu")
_TRUE, _DIVISOR = SOURCE.structure("TrueQuotient"), SOURCE.structure("Divisor")
_BLOCK = 256
_TOGETHER = 2  # results of a thread: 16 bytes
_WORD = 1 << 64
# Integers that divide to float64, and those of 64 bits.
_CTYPES = {"int32": "int", "uint32": "unsigned int", "int64": "long long", "uint64": "unsigned long long"}
_WIDE = ("int64", "uint64")
_FLOORED = {"floor_divide": "pk::FlooredQuotient", "remainder": "pk::FlooredRest"}  # by the name of the operation


def divides(a: Operand, b: Operand, out: GPUArray) -> bool:
    """True where divide() takes them: integers of one type, one perhaps a number, and out is float64."""
    types = {x.dtype.name for x in (a, b) if is_array(x)}
    return not host.computes() and out.dtype == float64 and bool(out.size) and len(types) == 1 and types <= set(_CTYPES)


def divide(a: Operand, b: Operand, out: GPUArray) -> None:
    """out = a / b, of which divides() says that it can; they broadcast to out's shape."""
    x, y, which, number = (a, b, 0, 0.0) if is_array(a) and is_array(b) else _with_number(a, b)
    packed = _TRUE.pack(which_number=which, number=number)
    spec = SOURCE.of(f"pk::divide_integers<{_CTYPES[x.dtype.name]}>")
    for arrays, walk, blocks in walks.of((x, y, out)):
        kernels.launch(spec, (blocks, 1, 1), (walks.BLOCK, 1, 1), *arrays, walk, packed)


def divides_by(name: str, dtype: DataType, a: Operand, b: Operand, out: GPUArray) -> bool:
    """True where divide_by() takes them: a dense array of 64-bit integers, by a number that is not 0."""
    if name not in _FLOORED or dtype.name not in _WIDE or not is_array(a) or is_array(b) or not isinstance(b, int):
        return False
    return b != 0 and a.dtype is out.dtype and a.shape == out.shape and a.is_contiguous() and out.is_contiguous()


def divide_by(name: str, dtype: DataType, a: GPUArray, b: int, out: GPUArray) -> None:
    """out = a // b or a % b, of which divides_by() says that it can. Raises OverflowError as the operations do."""
    number = int.from_bytes(scalars.encode(b, dtype), "little")
    magnitude, factor, first, last = _factor(abs(int(b)))
    packed = _DIVISOR.pack(
        size=out.size, number=number, magnitude=magnitude, factor=factor, first_shift=first, last_shift=last
    )
    _launch(f"pk::divide_by<{_CTYPES[dtype.name]}, {_FLOORED[name]}>", out, a, out, packed)


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that the functions above can ask for."""
    yield tuple(f"pk::divide_integers<{ctype}>" for ctype in _CTYPES.values())
    yield tuple(f"pk::divide_by<{_CTYPES[name]}, {functor}>" for name in _WIDE for functor in _FLOORED.values())


def _with_number(a: Any, b: Any) -> tuple[GPUArray, GPUArray, int, float]:
    array, number, which = (a, b, 2) if is_array(a) else (b, a, 1)
    return array, array, which, float(number)


def _factor(magnitude: int) -> tuple[int, int, int, int]:
    """The divisor, its factor and the shifts of the product: exact for every dividend of 64 bits."""
    bits = (magnitude - 1).bit_length()
    factor = _WORD * ((1 << bits) - magnitude) // magnitude + 1
    return magnitude, factor, min(bits, 1), max(bits - 1, 0)


def _launch(expression: str, out: GPUArray, *args: Any) -> None:
    blocks = -(-out.size // (_BLOCK * _TOGETHER))
    kernels.launch(SOURCE.of(expression), (blocks, 1, 1), (_BLOCK, 1, 1), *args)
