"""Matrix product with NumPy's rules: 1-D vectors, 2-D matrices, stacks of matrices with broadcast batch axes."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.array import layout, promotion
from pygpukit.core.dtypes import bfloat16, float16
from pygpukit.core.errors import ShapeError
from pygpukit.ops import copying, host
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.matmul import plan, tile
from pygpukit.ops.operands import check_array, check_devices, check_out, overlaps, span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DataType

SOURCE = kernels.KernelSpec(__file__, "gemm.cu")
_LAYOUT = SOURCE.structure("GemmLayout")
_TILE = 64  # gemm.cu: kTile
_THREADS = 16
_MAX_GRID_Y = 65535


def matmul(a: GPUArray, b: GPUArray, *, out: GPUArray | None = None) -> GPUArray:
    """a @ b.

    Shapes as numpy.matmul: (m, k) @ (k, n) -> (m, n); a 1-D operand is a row on the left and a column on the right and
    its axis is dropped from the result, so 1-D @ 1-D is a 0-d dot product; leading axes broadcast. Types promote as in
    NumPy; float16 and bfloat16 are summed in float32, float32 is real float32, integers wrap. Strided operands are read
    in place. out: written and returned instead of a new array. Asynchronous on the current stream; the order of
    additions is fixed: a row's bits depend on k, the types and the backend that matmul_plan() names, not on other rows.
    Raises ShapeError naming both shapes, DTypeError, DeviceMismatchError.
    """
    left, right, shape, dtype = operands(a, b)
    target = out if out is None else check_out(out, shape, dtype, "matmul")
    if target is None or target.dtype != dtype or _touches(target, a) or _touches(target, b):
        target = native.empty(shape, dtype)
    if target.size:
        left, right = (x if x.dtype == dtype else copying.astype(x, dtype) for x in (left, right))
        full = _with_matrix_axes(target, a.ndim == 1, b.ndim == 1)
        if host.computes():
            _on_host(left, right, full)
        elif _backend(left, full) == "tile":
            tile.product(left, right, full)
        else:
            _on_device(left, right, full)
    if out is None or target is out:
        return target
    copying.copy_to(target, out)
    return out


def operands(a: GPUArray, b: GPUArray) -> tuple[GPUArray, GPUArray, layout.Shape, DataType]:
    """Both operands as stacks of matrices with common batch axes, the shape and the type of the result. Raises as
    matmul()."""
    a, b = check_array(a, "matmul"), check_array(b, "matmul")
    check_devices("matmul", a, b)
    return *_shapes(a, b), promotion.promote(a.dtype, b.dtype)


def matmul_plan(a: GPUArray, b: GPUArray) -> plan.MatmulPlan:
    """The plan of `a @ b`: which kernel, and why. Launches nothing. Raises as matmul() for operands that do not fit."""
    left, right, _, dtype = operands(a, b)
    m, k, n = *left.shape[-2:], right.shape[-1]
    backend, reason = plan.backend(dtype, prod(left.shape[:-2]), m, n, k)
    return plan.MatmulPlan(backend, reason, tile.chosen(left, right) if backend == "tile" else None)


def _backend(a: GPUArray, out: GPUArray) -> str:
    m, n = out.shape[-2:]
    return plan.backend(out.dtype, prod(out.shape[:-2]), m, n, a.shape[-1])[0]


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that matmul() can ask for."""
    yield tuple(f"pk::gemm<{ctype}>" for ctype in CTYPES.values())


def _touches(target: GPUArray, operand: GPUArray) -> bool:
    same = target.block == operand.block and target.offset == operand.offset
    return same or overlaps(target, operand)


def _shapes(a: GPUArray, b: GPUArray) -> tuple[GPUArray, GPUArray, layout.Shape]:
    """Both operands with at least two axes and common batch axes, and the shape of the result."""
    if a.ndim == 0 or b.ndim == 0:
        raise ShapeError(
            f"matmul: shapes {a.shape} and {b.shape}: a 0-d operand has no matrix dimension; use * instead"
        )
    inner_a, inner_b = a.shape[-1], b.shape[-2] if b.ndim > 1 else b.shape[0]
    if inner_a != inner_b:
        raise ShapeError(
            f"matmul: shapes {a.shape} and {b.shape} do not fit: the inner dimensions are {inner_a} and {inner_b} and "
            "must be equal; transpose or reshape one operand"
        )
    batch = layout.broadcast_shapes(a.shape[:-2], b.shape[:-2], "matmul (batch dimensions)")
    rows = a.shape[-2:-1]
    columns = b.shape[-1:] if b.ndim > 1 else ()
    return (_as_stack(a, batch, row=True), _as_stack(b, batch, row=False), batch + rows + columns)


def _as_stack(array: GPUArray, batch: layout.Shape, row: bool) -> GPUArray:
    """The operand as a view of shape batch + (rows, columns); a vector becomes a row or a column."""
    if array.ndim == 2 and not batch:
        return array
    shape, strides = array.shape, array.strides
    if array.ndim == 1:
        shape, strides = ((1, *shape), (0, *strides)) if row else ((*shape, 1), (*strides, 0))
    strides = layout.broadcast_strides(shape, strides, batch + shape[-2:])
    return native.view(array, batch + shape[-2:], strides, array.offset)


def _with_matrix_axes(out: GPUArray, no_rows: bool, no_columns: bool) -> GPUArray:
    """The output as a view with the row and column axes that a 1-D operand dropped."""
    if not no_rows and not no_columns:
        return out
    shape, strides = list(out.shape), list(out.strides)
    if no_columns:
        shape.append(1)
        strides.append(0)
    if no_rows:
        shape.insert(len(shape) - 1, 1)
        strides.insert(len(strides) - 1, 0)
    return native.view(out, shape, strides, out.offset)


def _on_host(a: GPUArray, b: GPUArray, out: GPUArray) -> None:
    import numpy as np

    def compute() -> None:
        left, right = host.values(a), host.values(b)
        if a.dtype in (float16, bfloat16):
            left, right = left.astype(np.float32), right.astype(np.float32)
        with np.errstate(all="ignore"):
            host.store(out, np.matmul(left, right))

    native.host_launch("matmul", compute, [a, b, out])


def _on_device(a: GPUArray, b: GPUArray, out: GPUArray) -> None:
    *batch, m, n = out.shape
    k = a.shape[-1]
    operands = (a, b, out)
    steps = [[step // x.itemsize for step in x.strides] for x in operands]
    extents, batch_steps = layout.collapse(tuple(batch), [tuple(own[:-2]) for own in steps])
    batches = out.size // (m * n)
    if k == 0:  # an empty sum; nothing of the operands may be read
        copying.fill(out, 0)
        return
    spans, starts = zip(*(span(x) for x in operands), strict=True)
    packed = _LAYOUT.pack(
        m=m,
        n=n,
        k=k,
        batches=batches,
        ndim=len(extents),
        shape=extents,
        start=starts,
        row=[own[-2] for own in steps],
        column=[own[-1] for own in steps],
        stride=batch_steps,
    )
    tiles = -(-m // _TILE) * -(-n // _TILE)
    kernels.launch(
        SOURCE.of(f"pk::gemm<{CTYPES[out.dtype.name]}>"),
        (tiles, min(batches, _MAX_GRID_Y), 1),
        (_THREADS, _THREADS, 1),
        *spans,
        packed,
    )
