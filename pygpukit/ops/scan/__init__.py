"""Prefix sums and products along an axis.

Types of sums are NumPy's: bool and integers accumulate in 64 bits, floats in their own type (16-bit floats in float32).
The association of operands depends on shape and type only, so the same input gives the same bits on every run.
Asynchronous on the current stream; strided operands are read in place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.array import layout, promotion
from pygpukit.core.dtypes import DataType, as_dtype, bfloat16, bool_, float16, int64, uint64
from pygpukit.core.errors import DTypeError, ShapeError
from pygpukit.ops import copying, host
from pygpukit.ops.elementwise.pointwise import CTYPES, packed_layout
from pygpukit.ops.operands import check_array, check_devices, check_out, overlaps, span
from pygpukit.ops.prepared import prepared

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DTypeLike

__all__ = ["cumprod", "cumsum", "cumulative_prod", "cumulative_sum"]

SOURCE = kernels.KernelSpec(__file__, "scan.cu")
_LAYOUT = SOURCE.structure("ScanLayout")
_BLOCK = 256
_VECTOR_BYTES = 16
_SHORT_VECTORS = 4  # scan.cu: vectors(), where a warp makes a row
_SHORT_ROW = 32  # up to here one thread walks a row
_FILLING_LINES = 1 << 16  # so many lines occupy a device without being cut into chunks
_CHUNK = 128
_ROW_KERNELS = (1, 8)  # most warps a row


@dataclass(frozen=True)
class _Op:
    name: str
    functor: str
    ufunc: str
    identity: int


_SUM = _Op("cumsum", "pk::Sum", "cumsum", 0)
_PRODUCT = _Op("cumprod", "pk::Product", "cumprod", 1)


@prepared
def cumsum(
    a: GPUArray, axis: int | None = None, dtype: DTypeLike | None = None, *, out: GPUArray | None = None
) -> GPUArray:
    """Sums of the elements up to each one along axis; of the flattened array, 1-D, without one.

    dtype: converted to it first; when left out bool and integers give int64 or uint64, others keep their type. out: as
    add(). Raises ShapeError, DTypeError (storage types), DeviceMismatchError. Deterministic: blocks pass each other
    totals only, added in a tree of radix 32 that the shape gives.
    """
    return _scan(_SUM, a, axis, dtype, out)


@prepared
def cumprod(
    a: GPUArray, axis: int | None = None, dtype: DTypeLike | None = None, *, out: GPUArray | None = None
) -> GPUArray:
    """Products of the elements up to each one along axis. Arguments, errors and determinism as cumsum()."""
    return _scan(_PRODUCT, a, axis, dtype, out)


@prepared
def cumulative_sum(
    x: GPUArray, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> GPUArray:
    """cumsum() as the array API standard has it: axis may be left out for 1-D arrays only.

    include_initial: the result starts with 0, one longer. Raises ShapeError without axis unless x has one dimension.
    """
    return _cumulative(_SUM, x, axis, dtype, include_initial)


@prepared
def cumulative_prod(
    x: GPUArray, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> GPUArray:
    """cumprod() as the array API standard has it; include_initial starts with 1. As cumulative_sum()."""
    return _cumulative(_PRODUCT, x, axis, dtype, include_initial)


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that the functions above can ask for, by operand type."""
    yield ("pk::clear_slots",)
    for name, ctype in CTYPES.items():
        types = f"{ctype}, {CTYPES[_accumulated(DataType.from_string(name)).name]}"
        expressions = []
        for op in (_SUM, _PRODUCT):
            expressions += [f"pk::scan_rows<{types}, {op.functor}, {warps}>" for warps in _ROW_KERNELS]
            expressions += [f"pk::{form}_lines<{types}, {op.functor}>" for form in ("total", "scan")]
        yield tuple(expressions)


def _cumulative(op: _Op, x: GPUArray, axis: int | None, dtype: DTypeLike | None, include_initial: bool) -> GPUArray:
    what = f"cumulative_{op.name.removeprefix('cum')}"
    x = check_array(x, what)
    x = x.reshape(1) if not x.ndim else x
    if axis is None:
        if x.ndim != 1:
            raise ShapeError(f"{what}: axis must be given for an array of shape {x.shape}; flatten it or name one")
        axis = 0
    if not include_initial:
        return _scan(op, x, axis, dtype, None)
    axis = layout.normalize_axis(axis, x.ndim, what)
    result_dtype = _accumulated(_computing(x.dtype, op)) if dtype is None else as_dtype(dtype)
    out = native.empty((*x.shape[:axis], x.shape[axis] + 1, *x.shape[axis + 1 :]), result_dtype)
    lead = (slice(None),) * axis
    copying.fill(out[lead + (slice(0, 1),)], op.identity)
    _scan(op, x, axis, result_dtype, out[lead + (slice(1, None),)])
    return out


def _scan(op: _Op, a: GPUArray, axis: int | None, dtype: DTypeLike | None, out: GPUArray | None) -> GPUArray:
    a = check_array(a, op.name)
    check_devices(op.name, a)
    result_dtype = _accumulated(_computing(a.dtype, op)) if dtype is None else _computing(as_dtype(dtype), op)
    axis = None if axis is None else layout.normalize_axis(axis, a.ndim, op.name)
    shape = (a.size,) if axis is None else a.shape
    target = out if out is None else check_out(out, shape, result_dtype, op.name)
    # Integers of every width come from 64-bit results exactly: sums and products wrap alike.
    if result_dtype is bool_ or promotion.is_inexact(result_dtype) or promotion.is_inexact(a.dtype):
        a = a if a.dtype == result_dtype else copying.astype(a, result_dtype)
    if axis is None:
        a, axis = a.reshape(-1), 0
    computed = _accumulated(a.dtype)
    if target is None or target.dtype != computed or overlaps(a, target):
        target = native.empty(shape, computed)
    if target.size:
        (_on_host if host.computes() else _on_device)(op, a, axis, target)
    if out is None:
        return target if computed == result_dtype else copying.astype(target, result_dtype)
    if target is not out:
        copying.copy_to(target if computed == result_dtype else copying.astype(target, result_dtype), out)
    return out


def _computing(dtype: DataType, op: _Op) -> DataType:
    if dtype.name not in CTYPES:
        raise DTypeError(
            f"{op.name}: {dtype} is a storage type without arithmetic; convert to a type that computes first"
        )
    return dtype


def _accumulated(dtype: DataType) -> DataType:
    """The type that sums of dtype are kept in."""
    if promotion.is_inexact(dtype):
        return dtype
    return uint64 if dtype in promotion.UNSIGNED else int64


def _on_host(op: _Op, a: GPUArray, axis: int, out: GPUArray) -> None:
    import numpy as np

    def compute() -> None:
        # NumPy adds one after the other: in double, the result is as good as that of the kernels' trees.
        wide = out.dtype.to_numpy_dtype()
        if promotion.is_inexact(out.dtype):
            wide = np.dtype(np.complex128 if out.dtype in promotion.COMPLEX else np.float64)
        with np.errstate(all="ignore"):
            host.store(out, getattr(np, op.ufunc)(host.values(a), axis=axis, dtype=wide))

    native.host_launch(op.name, compute, [a, out])


def _on_device(op: _Op, a: GPUArray, axis: int, out: GPUArray) -> None:
    length = out.shape[axis]
    vector = _VECTOR_BYTES // max(a.itemsize, out.itemsize)
    inner = prod(out.shape[axis + 1 :])
    if inner > 1 or length <= _SHORT_ROW:
        _scan_lines(op, a, axis, out)
        return
    per_warp, warps = _SHORT_VECTORS * 32 * vector, 1
    if length > per_warp:
        per_warp = _vectors(out.itemsize) * 32 * vector
        warps = next((warps for warps in (2, 4) if length <= warps * per_warp), _ROW_KERNELS[-1])
    per_tile = warps * per_warp
    tiles = -(-length // per_tile)
    rows = out.size // length
    if tiles > 1:
        slots = max(out.itemsize, 4) // 4 * sum(tiles >> 5 * level for level in range(13))
        state = native.empty(rows * slots, "uint64")
        _launch("pk::clear_slots", -(-state.size // _BLOCK), state, state.size.to_bytes(8, "little"))
    else:
        state = native.empty(1, "uint64")  # not read
    blocks, threads = (-(-rows // 8), _BLOCK) if warps == 1 else (rows * tiles, 32 * warps)
    spans, fields = _layout(a, out, axis, tiles, per_tile)
    kernel = f"pk::scan_rows<{_types(a, out)}, {op.functor}, {_ROW_KERNELS[warps > 1]}>"
    _launch(kernel, blocks, *spans, state, fields, threads=threads, overlapping=tiles > 1)


def _vectors(itemsize: int) -> int:
    """scan.cu: vectors(), of a tile's threads, by the size of the results."""
    return {2: 10, 4: 16, 8: 8}.get(itemsize, 4)


def _scan_lines(op: _Op, a: GPUArray, axis: int, out: GPUArray) -> None:
    length = out.shape[axis]
    lines = out.size // length
    chunk = _CHUNK if lines < _FILLING_LINES and length > 2 * _CHUNK else length
    chunks = -(-length // chunk)
    blocks = -(-lines * chunks // _BLOCK)
    spans, fields = _layout(a, out, axis, chunks, chunk)
    kernel = f"_lines<{_types(a, out)}, {op.functor}>"
    wide = "float32" if out.dtype in (float16, bfloat16) else out.dtype
    if chunks > 1:
        totals = native.empty((chunks, lines), wide)
        _launch(f"pk::total{kernel}", blocks, spans[0], totals, fields)
        _on_device(op, totals, 0, totals)
    else:
        totals = native.empty(1, wide)  # not read
    _launch(f"pk::scan{kernel}", blocks, *spans, totals, fields)


def _launch(
    kernel: str, blocks: int, *args: GPUArray | bytes, threads: int = _BLOCK, overlapping: bool = False
) -> None:
    kernels.launch(SOURCE.of(kernel, overlapping=overlapping), (blocks, 1, 1), (threads, 1, 1), *args)


def _types(a: GPUArray, out: GPUArray) -> str:
    return f"{CTYPES[a.dtype.name]}, {CTYPES[out.dtype.name]}"


def _layout(
    a: GPUArray, out: GPUArray, axis: int, pieces: int, per_piece: int
) -> tuple[tuple[GPUArray, GPUArray], bytes]:
    """The storage of input and output, and scan.cu's ScanLayout."""
    shape = out.shape[:axis] + out.shape[axis + 1 :]
    others = [x.strides[:axis] + x.strides[axis + 1 :] for x in (a, out)]
    extents, strides = layout.collapse(shape, others)
    (source, source_start), (target, target_start) = span(a), span(out)
    own = [[step // array.itemsize for step in steps] for array, steps in zip((a, out), strides, strict=True)]
    packed = _LAYOUT.pack(
        lines=packed_layout(prod(shape), extents, (source_start, target_start), own),
        length=out.shape[axis],
        step=(a.strides[axis] // a.itemsize, out.strides[axis] // out.itemsize),
        pieces=pieces,
        per_piece=per_piece,
    )
    return (source, target), packed
