"""Running one unary or binary operation over any layouts: the built-in kernels on cuda, NumPy on pool memory on sim.

Callers have checked devices, shapes and types: operands have one type, broadcast to the output's shape, and do not
overlap the output unless they are the very same view.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.core import layout, promotion, scalars
from pygpukit.core.dtypes import DataType, bool_
from pygpukit.core.errors import DTypeError
from pygpukit.ops import host
from pygpukit.ops.operands import is_array, span

if TYPE_CHECKING:
    from pygpukit.core.array import GPUArray
    from pygpukit.ops.operands import Operand

SOURCE = "kernels/elementwise.cu"
MAX_DIMS = 16  # numeric.cuh: kMaxDims
_BLOCK = 256
_VECTOR_BYTES = 16


@dataclass(frozen=True, eq=False)
class Op:
    """An operation: its name in errors and records, its functor in elementwise.cu, its NumPy function."""

    name: str
    functor: str
    ufunc: str
    compares: bool = False  # the result is bool
    commutes: bool = False

    def result_dtype(self, dtype: DataType) -> DataType:
        """Type of the result of operands of type dtype."""
        return bool_ if self.compares else dtype

    @property
    def swapped(self) -> str:
        """The functor for operands the other way round."""
        return self.functor if self.commutes else f"pk::Swapped<{self.functor}>"


COPY = Op("copy", "pk::Copy", "asarray")
NEG = Op("neg", "pk::Negate", "negative")
ADD = Op("add", "pk::Add", "add", commutes=True)
SUB = Op("sub", "pk::Subtract", "subtract")
MUL = Op("mul", "pk::Multiply", "multiply", commutes=True)
DIV = Op("div", "pk::Divide", "true_divide")
EQ = Op("eq", "pk::Equal", "equal", compares=True, commutes=True)
NE = Op("ne", "pk::NotEqual", "not_equal", compares=True, commutes=True)
LT = Op("lt", "pk::Less", "less", compares=True)  # a > b is b < a
LE = Op("le", "pk::LessEqual", "less_equal", compares=True)

# DataType name -> C++ type of the kernels.
CTYPES = {
    "bool": "bool",
    "int8": "signed char",
    "int16": "short",
    "int32": "int",
    "int64": "long long",
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "unsigned long long",
    "float16": "pk::half_t",
    "bfloat16": "pk::bfloat16_t",
    "float32": "float",
    "float64": "double",
    "complex64": "pk::complex_t<float>",
    "complex128": "pk::complex_t<double>",
}
# Moving elements without looking at them, by item size.
_RAW = {
    1: "unsigned char",
    2: "unsigned short",
    4: "unsigned int",
    8: "unsigned long long",
    16: "pk::complex_t<double>",
}


def unary(op: Op, a: GPUArray, out: GPUArray) -> None:
    """out[...] = op(a), a broadcast to out's shape. Types differ only in a COPY between dense arrays: it converts."""
    if not out.size:
        return
    if host.computes():
        _on_host(op, a.dtype, (a,), out)
        return
    moved = op is COPY and a.dtype is out.dtype
    types = f"{_RAW[a.itemsize]}, {_RAW[a.itemsize]}" if moved else f"{_ctype(a)}, {_ctype(out)}"
    if dense(a, out):
        _launch_dense(f"pk::unary_dense<{types}, {op.functor}>", a, out)
    else:
        _launch_strided(f"pk::unary_strided<{types}, {op.functor}>", a, out)


def binary(op: Op, dtype: DataType, a: Operand, b: Operand, out: GPUArray) -> None:
    """out[...] = op(a, b) computed in dtype, the arrays' type; they broadcast to out's shape, one may be a number."""
    if not out.size:
        return
    if host.computes():
        _on_host(op, dtype, (a, b), out)
        return
    types = f"{CTYPES[dtype.name]}, {_ctype(out)}"
    if is_array(a) and not is_array(b) and dense(a, out):
        _launch_dense(f"pk::binary_scalar<{types}, {op.functor}>", a, scalars.encode(b, dtype), out)
        return
    if is_array(b) and not is_array(a) and dense(b, out):
        _launch_dense(f"pk::binary_scalar<{types}, {op.swapped}>", b, scalars.encode(a, dtype), out)
        return
    x = a if is_array(a) else scalar_array(a, dtype)
    y = b if is_array(b) else scalar_array(b, dtype)
    if dense(x, out) and dense(y, out):
        _launch_dense(f"pk::binary_dense<{types}, {op.functor}>", x, y, out)
    else:
        _launch_strided(f"pk::binary_strided<{types}, {op.functor}>", x, y, out)


def dense(array: GPUArray, out: GPUArray) -> bool:
    """True when both are C-contiguous and of one shape: the kernels then walk them as one dimension."""
    return array.shape == out.shape and array.is_contiguous() and out.is_contiguous()


def catalogue() -> Iterator[tuple[str, tuple[str, ...]]]:
    """(source, name expressions) of every kernel that the functions above can ask for, for one operand type each."""
    for expressions in _instantiations():
        yield SOURCE, expressions


def _instantiations() -> Iterator[tuple[str, ...]]:
    for raw in dict.fromkeys(_RAW.values()):
        yield tuple(f"pk::unary_{form}<{raw}, {raw}, pk::Copy>" for form in ("dense", "strided"))
    for name, ctype in CTYPES.items():
        found = [f"pk::unary_dense<{ctype}, {other}, pk::Copy>" for other in CTYPES.values() if other != ctype]
        if name != "bool":
            found += [f"pk::unary_{form}<{ctype}, {ctype}, pk::Negate>" for form in ("dense", "strided")]
        for op in _defined(DataType.from_string(name)):
            types = f"{ctype}, {'bool' if op.compares else ctype}"
            found += [f"pk::binary_{form}<{types}, {op.functor}>" for form in ("dense", "strided")]
            found += [f"pk::binary_scalar<{types}, {functor}>" for functor in dict.fromkeys((op.functor, op.swapped))]
        yield tuple(found)


def compute_dtype(op: Op, dtype: DataType) -> DataType:
    """The type that op computes in when its operands promote to dtype. Raises DTypeError where op does not exist."""
    if dtype.name not in CTYPES:
        raise DTypeError(
            f"{op.name}: {dtype} is a storage type without arithmetic; convert to a type that computes first"
        )
    if dtype is bool_ and op in (SUB, NEG):
        raise DTypeError(f"{op.name}: not defined for bool; convert with .astype('int8') first")
    if op in (LT, LE) and dtype in promotion.COMPLEX:
        raise DTypeError(f"{op.name}: complex numbers have no order; compare their parts")
    return promotion.true_divide(dtype) if op is DIV else dtype


def _defined(dtype: DataType) -> list[Op]:
    """The binary operations that are computed in dtype."""
    division = [DIV] if promotion.is_inexact(dtype) else []
    subtraction = [] if dtype == bool_ else [SUB]
    order = [] if dtype in promotion.COMPLEX else [LT, LE]
    return [ADD, *subtraction, MUL, *division, EQ, NE, *order]


def scalar_array(value: Any, dtype: DataType) -> GPUArray:
    """A 0-d array that holds a Python number."""
    array = native.empty((), dtype)
    native.fill(array, scalars.encode(value, dtype))
    return array


def _ctype(array: GPUArray) -> str:
    return CTYPES[array.dtype.name]


def _launch_dense(expression: str, *args: Any) -> None:
    from pygpukit.jit import builtin

    first, out = args[0], args[-1]
    per_thread = _VECTOR_BYTES // max(first.itemsize, out.itemsize)
    size = out.size
    blocks = -(-size // (_BLOCK * per_thread))
    builtin.launch(SOURCE, expression, (blocks, 1, 1), (_BLOCK, 1, 1), *args, size.to_bytes(8, "little"))


def _launch_strided(expression: str, *arrays: GPUArray) -> None:
    from pygpukit.jit import builtin

    shape, size = arrays[-1].shape, arrays[-1].size
    strides = [layout.broadcast_strides(array.shape, array.strides, shape) for array in arrays]
    shape, strides = layout.collapse(shape, strides)
    spans, starts = zip(*(span(array) for array in arrays), strict=True)
    # numeric.cuh: Layout
    fields = [size, len(shape), *pad(shape), *starts]
    for array, steps in zip(arrays, strides, strict=True):
        fields += pad([step // array.itemsize for step in steps])
    blocks = -(-size // _BLOCK)
    builtin.launch(SOURCE, expression, (blocks, 1, 1), (_BLOCK, 1, 1), *spans, struct.pack(f"<{len(fields)}q", *fields))


def pad(values: Sequence[int]) -> list[int]:
    """values for a fixed array of kMaxDims in a kernel's layout."""
    return [*values, *[0] * (MAX_DIMS - len(values))]


def _on_host(op: Op, dtype: DataType, operands: Sequence[Operand], out: GPUArray) -> None:
    import numpy as np

    arrays = [operand for operand in operands if is_array(operand)]

    def compute() -> None:
        if op is COPY and dtype == out.dtype:
            np.copyto(host.memory(out), host.memory(arrays[0]))
            return
        # A number takes part as an element of the arrays' type, rounded as an element would be.
        inputs = [host.values(x) if is_array(x) else host.rounded(x, dtype) for x in operands]
        with np.errstate(all="ignore"):
            host.store(out, getattr(np, op.ufunc)(*inputs))

    native.host_launch(op.name, compute, [*arrays, out])
