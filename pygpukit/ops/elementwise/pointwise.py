"""Running one element-wise operation over any layouts: the built-in kernels on cuda, NumPy on pool memory on sim.

Callers have checked devices, shapes and types: operands have one type, broadcast to the output's shape, and do not
overlap the output unless they are the very same view.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.array import layout, scalars
from pygpukit.core.dtypes import DataType
from pygpukit.kernels.structure import Structure, in_header
from pygpukit.ops import host
from pygpukit.ops.elementwise import operations, quotients, walks
from pygpukit.ops.elementwise.operations import ADD as ADD
from pygpukit.ops.elementwise.operations import COPY as COPY
from pygpukit.ops.elementwise.operations import DIV as DIV
from pygpukit.ops.elementwise.operations import EQ as EQ
from pygpukit.ops.elementwise.operations import LE as LE
from pygpukit.ops.elementwise.operations import LT as LT
from pygpukit.ops.elementwise.operations import MUL as MUL
from pygpukit.ops.elementwise.operations import NE as NE
from pygpukit.ops.elementwise.operations import NEG as NEG
from pygpukit.ops.elementwise.operations import SUB as SUB
from pygpukit.ops.elementwise.operations import Op as Op
from pygpukit.ops.operands import is_array, span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.operands import Operand

SOURCE = kernels.KernelSpec(__file__, "elementwise.cu")
BLOCK = 256
_VECTOR_BYTES = 16
_ARRAYS, _RIGHT, _LEFT = range(3)  # forms of DenseCall: arrays only, a number on the right, on the left
_NUMBERS = SOURCE.structure("Numbers")

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
# Those that only store: copies convert to and from them.
STORAGE_CTYPES = {
    "float8_e4m3": "pk::e4m3_t",
    "float8_e5m2": "pk::e5m2_t",
    "int4": "pk::int4_t",
    "float4_e2m1": "pk::e2m1_t",
}
_CONVERTED = CTYPES | STORAGE_CTYPES
# Moving elements without looking at them, by item size.
_RAW = {
    1: "unsigned char",
    2: "unsigned short",
    4: "unsigned int",
    8: "unsigned long long",
    16: "pk::complex_t<double>",
}


def unary(op: Op, a: GPUArray, out: GPUArray) -> None:
    """out[...] = op(a), a broadcast to out's shape. A COPY converts where the types differ."""
    if not out.size:
        return
    if host.computes():
        _on_host(op, a.dtype, (a,), out)
        return
    moves = op is COPY and a.dtype is out.dtype
    types = ", ".join(_RAW[x.itemsize] if moves else _CONVERTED[x.dtype.name] for x in (a, out))
    if op.by_layout and op is not COPY and dense(a, out):
        _launch_dense(op, _ARRAYS, f"pk::unary_dense<{types}, {op.functor}>", a, out)
    else:
        form = "unary_strided" if op is NEG or moves else "unary"  # the driver copies dense arrays
        _launch(f"pk::{form}<{types}, {op.functor}>", (a, out))


def binary(op: Op, dtype: DataType, a: Operand, b: Operand, out: GPUArray) -> None:
    """out[...] = op(a, b) computed in dtype, the arrays' type; they broadcast to out's shape, one may be a number."""
    if not out.size:
        return
    if host.computes():
        _on_host(op, dtype, (a, b), out)
        return
    if quotients.divides_by(op.name, dtype, a, b, out):
        quotients.divide_by(op.name, dtype, a, b, out)  # type: ignore[arg-type]
        return
    operand = _RAW[dtype.itemsize] if op.by_size else CTYPES[dtype.name]
    types = f"{operand}, {operand if op.by_size else _ctype(out)}"
    if op.by_layout and all(dense(x, out) for x in (a, b) if is_array(x)):
        if is_array(a) and is_array(b):
            _launch_dense(op, _ARRAYS, f"pk::binary_dense<{types}, {op.functor}>", a, b, out)
        elif is_array(a):
            _launch_dense(op, _RIGHT, f"pk::binary_scalar<{types}, {op.functor}>", a, scalars.encode(b, dtype), out)
        else:
            _launch_dense(op, _LEFT, f"pk::binary_scalar<{types}, {op.swapped}>", b, scalars.encode(a, dtype), out)
        return
    arrays, numbers = _with_numbers((a, b), dtype)
    _launch(f"pk::{'binary_strided' if op.by_layout else 'binary'}<{types}, {op.functor}>", (*arrays, out), numbers)


def ternary(op: Op, dtype: DataType, c: GPUArray, a: Operand, b: Operand, out: GPUArray) -> None:
    """out[...] = op(c, a, b); a and b are arrays of dtype or numbers, all broadcast to out's shape."""
    if not out.size:
        return
    if host.computes():
        _on_host(op, dtype, (c, a, b), out)
        return
    first, operand = _ctype(c), _RAW[dtype.itemsize] if op.by_size else CTYPES[dtype.name]
    arrays, numbers = _with_numbers((a, b), dtype, out)
    _launch(f"pk::ternary<{first}, {operand}, {operand}, {op.functor}>", (c, *arrays, out), numbers)


def dense(array: GPUArray, out: GPUArray) -> bool:
    """True when both are C-contiguous and of one shape: the kernels then walk them as one dimension."""
    return array.shape == out.shape and array.is_contiguous() and out.is_contiguous()


def scalar_array(value: Any, dtype: DataType) -> GPUArray:
    """A 0-d array that holds a Python number."""
    array = native.empty((), dtype)
    native.fill(array, scalars.encode(value, dtype))
    return array


# ---- what there is to compile ----


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that the functions above can ask for, for one operand type each."""
    for raw in dict.fromkeys(_RAW.values()):
        expressions = [f"pk::unary_strided<{raw}, {raw}, pk::Copy>"]
        expressions.append(f"pk::ternary<bool, {raw}, {raw}, {operations.SELECT.functor}>")
        if raw.startswith("unsigned"):
            expressions += [f"pk::binary<{raw}, {raw}, {op.functor}>" for op in operations.BINARY if op.by_size]
        yield tuple(expressions)
    for ctype in STORAGE_CTYPES.values():
        yield tuple(_conversions(ctype))
    for name, ctype in CTYPES.items():
        dtype = DataType.from_string(name)
        expressions = list(_conversions(ctype))
        if name in NEG.types:
            expressions += [f"pk::{form}<{ctype}, {ctype}, pk::Negate>" for form in ("unary_dense", "unary_strided")]
        for op in operations.ARITHMETIC:
            if name in op.computed():
                types = f"{ctype}, {CTYPES[op.result_dtype(dtype).name]}"
                functors = dict.fromkeys((op.functor, op.swapped))
                expressions += [f"pk::{form}<{types}, {op.functor}>" for form in ("binary_dense", "binary_strided")]
                expressions += [f"pk::binary_scalar<{types}, {functor}>" for functor in functors]
        yield tuple(expressions)
        yield from _of_all_layouts(ctype, dtype)


def _conversions(ctype: str) -> Iterator[str]:
    """The kernels that convert from a type."""
    return (f"pk::unary<{ctype}, {other}, pk::Copy>" for other in _CONVERTED.values() if other != ctype)


def _of_all_layouts(ctype: str, dtype: DataType) -> Iterator[tuple[str, ...]]:
    """The kernels that walk every layout, for one operand type: in units small enough to compile side by side."""

    def types(op: Op) -> str:
        return f"{ctype}, {CTYPES[op.result_dtype(dtype).name]}"

    expressions = [f"pk::unary<{types(op)}, {op.functor}>" for op in operations.UNARY if dtype.name in op.computed()]
    for op in operations.BINARY:
        if dtype.name in op.computed() and not op.by_size:
            expressions.append(f"pk::binary<{types(op)}, {op.functor}>")
    if dtype.name in operations.CLAMP.computed():
        expressions.append(f"pk::ternary<{ctype}, {ctype}, {ctype}, {operations.CLAMP.functor}>")
    for start in range(0, len(expressions), 20):
        yield tuple(expressions[start : start + 20])


# ---- launching ----


def _ctype(array: GPUArray) -> str:
    return CTYPES[array.dtype.name]


def _with_numbers(
    operands: Sequence[Operand], dtype: DataType, stand_in: GPUArray | None = None
) -> tuple[list[GPUArray], bytes]:
    """Arrays for all operands, and elementwise.cu's Numbers of those that are Python numbers.

    A number's place among the arrays is taken by another one of its type, or the stand-in, which is not read.
    """
    arrays = [operand for operand in operands if is_array(operand)]
    if len(arrays) == len(operands):
        return arrays, _NUMBERS.pack(numbers_mask=0, unused=0, value=b"")
    numbers, values, pointers = 0, b"", []
    for position, operand in enumerate(operands):
        if is_array(operand):
            values += bytes(16)
            pointers.append(operand)
        else:
            numbers |= 1 << position
            values += scalars.encode(operand, dtype).ljust(16, b"\0")
            pointers.append(arrays[0] if stand_in is None else stand_in)
    return pointers, _NUMBERS.pack(numbers_mask=numbers, unused=0, value=values)


def _launch(expression: str, arrays: Sequence[GPUArray], numbers: bytes | None = None) -> None:
    """A kernel that walks every layout; the last array is the output."""
    for own, packed, blocks in walks.of(arrays):
        rest = (packed,) if numbers is None else (packed, numbers)
        kernels.launch(SOURCE.of(expression), (blocks, 1, 1), (BLOCK, 1, 1), *own, *rest)


def walk(arrays: Sequence[GPUArray]) -> tuple[Sequence[GPUArray], bytes, int]:
    """A kernel of all layouts walks arrays that broadcast to the last one: pointers, numeric.cuh's Layout, blocks.

    Where all arrays are dense the layout says so by a negative number of axes, and a thread takes 16 bytes.
    """
    out = arrays[-1]
    size = out.size
    if all(dense(array, out) for array in arrays):
        per_thread = _VECTOR_BYTES // _widest(arrays)
        count = len(arrays)
        packed = _layout(count).pack(size=size, ndim=-1, shape=(), start=(), stride=((),) * count)
        return arrays, packed, -(-size // (BLOCK * per_thread))
    spans, packed = layout_of(arrays)
    return spans, packed, -(-size // BLOCK)


def _widest(arrays: Sequence[GPUArray]) -> int:
    return max(array.itemsize for array in arrays)


def layout_of(arrays: Sequence[GPUArray]) -> tuple[Sequence[GPUArray], bytes]:
    """The storage that each array touches, and numeric.cuh's Layout of a walk over the last one's shape."""
    spans, shape, starts, steps = _walked(arrays)
    return spans, packed_layout(arrays[-1].size, shape, starts, steps)


def _walked(
    arrays: Sequence[GPUArray],
) -> tuple[Sequence[GPUArray], Sequence[int], Sequence[int], Sequence[Sequence[int]]]:
    """A walk over the last one's shape: the storage that each array touches, the extents, as few as possible, and in
    elements where each array begins and its strides."""
    shape = arrays[-1].shape
    strides = [layout.broadcast_strides(array.shape, array.strides, shape) for array in arrays]
    shape, strides = layout.collapse(shape, strides)
    spans, starts = zip(*(span(array) for array in arrays), strict=True)
    steps = [[step // array.itemsize for step in own] for array, own in zip(arrays, strides, strict=True)]
    return spans, shape, starts, steps


def packed_layout(size: int, shape: Sequence[int], starts: Sequence[int], strides: Sequence[Sequence[int]]) -> bytes:
    """numeric.cuh's Layout: of `size` elements in that shape, and where they are in each operand."""
    return _layout(len(starts)).pack(size=size, ndim=len(shape), shape=shape, start=starts, stride=strides)


@cache
def _layout(operands: int) -> Structure:
    return in_header("numeric.cuh", "Layout", Operands=operands)


def _launch_dense(op: Op, form: int, expression: str, *args: Any) -> None:
    first, out = args[0], args[-1]
    per_thread = _VECTOR_BYTES // max(first.itemsize, out.itemsize)
    size = out.size
    blocks = -(-size // (BLOCK * per_thread))
    kernel = kernels.launch(SOURCE.of(expression), (blocks, 1, 1), (BLOCK, 1, 1), *args, size.to_bytes(8, "little"))
    _learn(op, form, first, kernel, out, per_thread)


def _learn(op: Op, form: int, first: GPUArray, kernel: native.Kernel, out: GPUArray, per_thread: int) -> None:
    # A copy's kernel depends on more than its operand's type; a pretended device has no kernels.
    if op.plain is not None and op is not COPY and isinstance(kernel, native.Kernel):
        op.plain.learn(form, first.dtype_code, kernel, out.dtype_code, per_thread)


# ---- on the host ----


def host_function(op: Op, dtype: DataType) -> Callable[..., Any]:
    """The function that computes op on NumPy arrays of dtype, as host.values() gives them."""
    import numpy as np

    from pygpukit.ops.elementwise import host_functions

    ours = getattr(host_functions, f"{op.ufunc}_{dtype.name}", None) or getattr(host_functions, op.ufunc, None)
    return ours or getattr(np, op.ufunc)


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
            host.store(out, host_function(op, dtype)(*inputs))

    native.host_launch(op.name, compute, [*arrays, out])
