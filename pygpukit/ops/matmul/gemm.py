"""Matrix product with NumPy's rules: 1-D vectors, 2-D matrices, stacks of matrices with broadcast batch axes."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from numbers import Real
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.array import layout, promotion
from pygpukit.core.dtypes import float32
from pygpukit.core.errors import DTypeError
from pygpukit.ops import copying, host
from pygpukit.ops.matmul import fused, plain, plan, precision, tile
from pygpukit.ops.matmul.stacks import stacked, with_matrix_axes
from pygpukit.ops.operands import check_array, check_devices, check_out, overlaps

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DataType

_ONE, _ZERO = 1.0, 0.0  # what says that nothing is scaled, without a look at it


def matmul(
    a: GPUArray,
    b: GPUArray,
    *,
    out: GPUArray | None = None,
    alpha: float = _ONE,
    beta: float = _ZERO,
    tf32: bool | None = None,
    use_tf32: bool | None = None,
) -> GPUArray:
    """a @ b; with alpha and beta alpha (a @ b) + beta out.

    Shapes as numpy.matmul: (m, k) @ (k, n) -> (m, n); a 1-D operand is a row on the left and a column on the right and
    its axis is dropped from the result, so 1-D @ 1-D is a 0-d dot product; leading axes broadcast. Types promote as in
    NumPy; float16 and bfloat16 are summed in float32, float32 is real float32, integers wrap. Strided operands are read
    in place. out: written and returned instead of a new array. alpha, beta: numbers, for floats, in float32 (float64
    for it); out is read only where beta is not 0, and must be of the result's type then. tf32 (use_tf32 is the same):
    allows float32 operands to be rounded to tf32, where a kernel for it is the plan's; there is none yet. Asynchronous
    on the current stream; the order of additions is fixed: a row's bits depend on k, the types and the backend that
    matmul_plan() names, not on other rows. Raises ShapeError naming both shapes, DTypeError, DeviceMismatchError,
    ValueError for settings that contradict each other.
    """
    left, right, shape, dtype = operands(a, b)
    precision.check("matmul", dtype, tf32, use_tf32)
    target = out if out is None else check_out(out, shape, dtype, "matmul")
    after = None if alpha is _ONE and beta is _ZERO else _scaled(dtype, alpha, beta, out)
    if target is None or target.dtype != dtype or _touches(target, a) or _touches(target, b):
        target = native.empty(shape, dtype)
    if target.size:
        left, right = (x if x.dtype == dtype else copying.astype(x, dtype) for x in (left, right))
        full = with_matrix_axes(target, a.ndim == 1, b.ndim == 1)
        if after is not None:
            if after.residual is not None:
                after = replace(after, residual=with_matrix_axes(after.residual, a.ndim == 1, b.ndim == 1))
            fused.product(backend_of(left, right), left, right, full, after)
        elif not host.computes() and backend_of(left, right) == "tile":
            tile.product(left, right, full)
        else:
            plain.product(left, right, full)
    if out is None or target is out:
        return target
    copying.copy_to(target, out)
    return out


def operands(a: GPUArray, b: GPUArray) -> tuple[GPUArray, GPUArray, layout.Shape, DataType]:
    """Both operands as stacks of matrices with common batch axes, the shape and the type of the result. Raises as
    matmul()."""
    a, b = check_array(a, "matmul"), check_array(b, "matmul")
    check_devices("matmul", a, b)
    return *stacked(a, b), promotion.promote(a.dtype, b.dtype)


def matmul_plan(a: GPUArray, b: GPUArray, *, tf32: bool | None = None, use_tf32: bool | None = None) -> plan.MatmulPlan:
    """The plan of `gp.matmul(a, b, tf32=tf32)`: which kernel, and why. Launches nothing. Raises as matmul() for
    operands that do not fit."""
    left, right, _, dtype = operands(a, b)
    m, k, n = *left.shape[-2:], right.shape[-1]
    said = precision.check("matmul", dtype, tf32, use_tf32)
    backend, reason = plan.backend(dtype, prod(left.shape[:-2]), m, n, k)
    if dtype == float32:
        reason = f"{reason}; {precision.reason(said)}"
    return plan.MatmulPlan(backend, reason, tile.chosen(left, right) if backend == "tile" else None)


def _scaled(dtype: DataType, alpha: Any, beta: Any, out: GPUArray | None) -> fused.After | None:
    """What alpha and beta ask for, None for nothing. out: checked."""
    for name, value in (("alpha", alpha), ("beta", beta)):
        if not isinstance(value, Real):
            raise DTypeError(f"matmul: {name} is a {type(value).__name__}; it must be a real number")
    if alpha == 1 and beta == 0:
        return None
    if beta and out is None:
        raise ValueError(f"matmul: beta={beta} without out=: there is nothing to add; give out= or drop beta")
    if dtype not in promotion.FLOATS:
        raise DTypeError(f"matmul: alpha={alpha}, beta={beta}: these operands give {dtype}; only floats are scaled")
    if beta and out is not None and out.dtype != dtype:
        raise DTypeError(f"matmul: beta={beta}: out is {out.dtype}, the result {dtype}; they must be alike")
    return fused.After(float(alpha), residual=out if beta else None, beta=float(beta))


def backend_of(a: GPUArray, b: GPUArray) -> str:
    """That of the plan of a @ b, stacks of matrices of one type."""
    if host.computes():
        return "numpy"
    *batch, m, k = a.shape
    return plan.backend(a.dtype, prod(batch), m, b.shape[-1], k)[0]


def _touches(target: GPUArray, operand: GPUArray) -> bool:
    same = target.block == operand.block and target.offset == operand.offset
    return same or overlaps(target, operand)
