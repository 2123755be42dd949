"""Matrix product with NumPy's rules: 1-D vectors, 2-D matrices, stacks of matrices with broadcast batch axes."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from sys import float_info
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.array import layout, promotion
from pygpukit.core.dtypes import STORAGE_ONLY, as_dtype, float32, float64
from pygpukit.core.errors import DTypeError, InvalidSpecError
from pygpukit.core.sizes import factor
from pygpukit.ops import copying
from pygpukit.ops.matmul import precision
from pygpukit.ops.matmul.choose import MatmulPlan, by_name, choose
from pygpukit.ops.matmul.epilogue import quantise
from pygpukit.ops.matmul.epilogue.epilogue import Epilogue
from pygpukit.ops.matmul.layout.batch import stacked, with_matrix_axes
from pygpukit.ops.matmul.problem import Problem, family
from pygpukit.ops.matmul.sm90 import cluster
from pygpukit.ops.operands import check_array, check_devices, check_out, may_share_memory
from pygpukit.ops.prepared import as_replaced, prepared

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DataType, DTypeLike

_UNIT, _ZERO = 1.0, 0.0  # what says that nothing is scaled, without a look at it
_MULTIPLY = dict.fromkeys(("float8_e4m3", "float8_e5m2"), "gp.matmul_fp8() multiplies it, with or without scales")
_MULTIPLY["float4_e2m1"] = "gp.matmul_fp4() multiplies what gp.ops.quantize_nvfp4() and quantize_mxfp4() give"


@prepared
def matmul(
    a: GPUArray,
    b: GPUArray,
    *,
    out: GPUArray | None = None,
    alpha: float = _UNIT,
    beta: float = _ZERO,
    dtype: DTypeLike | None = None,
    tf32: bool | None = None,
    use_tf32: bool | None = None,
    invariant: bool | None = None,
    backend: str | None = None,
    out_dtype: DTypeLike | None = None,
    out_scale: GPUArray | float | None = None,
) -> GPUArray:
    """a @ b; with alpha and beta alpha (a @ b) + beta out.

    Shapes as numpy.matmul: (m, k) @ (k, n) -> (m, n); a 1-D operand is a row on the left and a column on the right and
    its axis is dropped from the result, so 1-D @ 1-D is a 0-d dot product; leading axes broadcast. Types promote as in
    NumPy; float16 and bfloat16 are summed in float32, float32 is real float32, integers wrap. dtype: the result's type,
    and what is computed in, where the operands' promote to it: int8 with dtype="int32" is exact, on tensor cores.
    Strided operands are read in place, or copied where the kernel wants rows of whole 16 bytes. out: written and
    returned instead of a new array. alpha, beta: finite, for floats, in float32 (float64 for it); out is read only
    where beta is not 0, and must be of the result's type then. tf32 (use_tf32 is the same): allows float32 operands to
    be rounded to tf32, on tensor cores. Asynchronous on the current stream; the order of additions is fixed: a row's
    bits depend on k, the types and the backend that matmul_plan() names, not on other rows. invariant=False gives that
    up for speed: cuBLASLt where it is found, the same bits only for the same extents, strides and alignment; within
    gp.fastest_products() it is the default. backend: whatever the plan says "hopper", the kernels for SM 9.0,
    "mma", those of half precision, int8 and tf32 for any card, or "cutlass", half precision and tf32 by CUTLASS on
    SM 9.0, once `pygpukit get cutlass` has fetched it; the first two also run on the simulated device. A row's bits are
    its own.
    out_dtype: what a result of floats is converted to once it is rounded: another float, or float8_e4m3, float8_e5m2 or
    int8 of the result over out_scale, as by gp.ops.quantize(); out is of that type then, and beta 0. Raises ShapeError
    naming both shapes, DTypeError, DeviceMismatchError, ValueError for settings that contradict each other, GPUError
    where the backend asked for does not take the product.
    """
    left, right, shape, promoted = operands(a, b)
    result = _result(promoted, dtype)
    conversion, written = None, result
    if out_dtype is not None or out_scale is not None:
        conversion = quantise.conversion("matmul", result, shape, out_dtype, out_scale, out)
        written = result if conversion is None else conversion.dtype
    said = precision.check("matmul", result, tf32, use_tf32)
    check_invariant("matmul", invariant)
    target = out if out is None else check_out(out, shape, written, "matmul")
    added = None if out_dtype is not None else out
    epilogue = None if alpha is _UNIT and beta is _ZERO else _scaled(result, alpha, beta, added)
    if conversion is not None:
        epilogue = replace(epilogue or Epilogue(), conversion=conversion)
    if target is None or target.dtype != written or may_share_memory(target, a) or may_share_memory(target, b):
        target = native.empty(shape, written)
    if target.size:
        kind = _family(promoted, result, said)
        computed = promoted if kind else result
        left, right = (x if x.dtype == computed else copying.astype(x, computed) for x in (left, right))
        p = Problem.of(kind, left, right, result, invariant=invariant is not False, epilogue=epilogue)
        full = with_matrix_axes(target, a.ndim == 1, b.ndim == 1)
        if epilogue is not None and epilogue.residual is not None:
            epilogue = replace(epilogue, residual=with_matrix_axes(epilogue.residual, a.ndim == 1, b.ndim == 1))
        (by_name("matmul", backend, p) or choose(p)).run(left, right, full, epilogue)
    if out is None or target is out:
        return target
    copying.copy_to(target, out)
    return out


def operands(a: GPUArray, b: GPUArray) -> tuple[GPUArray, GPUArray, layout.Shape, DataType]:
    """Both operands as stacks of matrices with common batch axes, the shape and the type of the result. Raises as
    matmul()."""
    a, b = check_array(a, "matmul"), check_array(b, "matmul")
    check_devices("matmul", a, b)
    for dtype in (a.dtype, b.dtype):
        if dtype in STORAGE_ONLY:
            remedy = _MULTIPLY.get(dtype.name, "convert it to a type that computes first")
            raise DTypeError(f"matmul: {a.dtype} @ {b.dtype}: {dtype} is a storage type without arithmetic; {remedy}")
    return *stacked(a, b), promotion.promote(a.dtype, b.dtype)


def matmul_plan(
    a: GPUArray,
    b: GPUArray,
    *,
    dtype: DTypeLike | None = None,
    tf32: bool | None = None,
    use_tf32: bool | None = None,
    invariant: bool | None = None,
    backend: str | None = None,
    out_dtype: DTypeLike | None = None,
    out_scale: GPUArray | float | None = None,
) -> MatmulPlan:
    """The plan of `gp.matmul(a, b, ...)` with the same settings: which kernel, and why. Launches nothing. Where a
    plugin replaces gp.matmul, `backend` is "plugin" and the reason names it. Raises as matmul() for operands that do
    not fit."""
    left, right, shape, promoted = operands(a, b)
    result = _result(promoted, dtype)
    said = precision.check("matmul", result, tf32, use_tf32)
    kind = _family(promoted, result, said)
    computed = promoted if kind else result
    check_invariant("matmul_plan", invariant)
    p = Problem.of(kind, left, right, result, computed, invariant=invariant is not False)
    plan = by_name("matmul_plan", backend, p) or choose(p)
    reason = plan.reason
    if result == float32:
        reason += f"; {precision.reason(said)}"
    if out_dtype is not None or out_scale is not None:
        conversion = quantise.conversion("matmul_plan", result, shape, out_dtype, out_scale)
        if conversion is not None:
            x, y = (
                operand if operand.dtype == computed else native.empty(operand.shape, computed)
                for operand in (left, right)
            )
            reason += conversion.reason(plan.backend == cluster.BACKEND and cluster.converts(x, y, conversion))
    return as_replaced(replace(plan, reason=reason), matmul)


def check_invariant(what: str, invariant: Any) -> None:
    """Raises TypeError unless it is True, False or None."""
    if invariant is not None and not isinstance(invariant, bool):
        raise TypeError(f"{what}: invariant={invariant!r}; it is True, False or None")


def _result(promoted: DataType, dtype: DTypeLike | None) -> DataType:
    """The type of a product whose operands promote to a type, where one is asked for."""
    if dtype is None:
        return promoted
    asked = as_dtype(dtype)
    if promotion.promote(promoted, asked) != asked:
        raise DTypeError(
            f"matmul: dtype={asked}: the operands promote to {promoted}, which does not fit into it; convert the result"
        )
    return asked


def _family(promoted: DataType, result: DataType, said: bool | None) -> str | None:
    return family(promoted, result, result == float32 and precision.allowed(said))


def _scaled(dtype: DataType, alpha: Any, beta: Any, out: GPUArray | None) -> Epilogue | None:
    """The epilogue of alpha and beta, None for none. out: checked."""
    numbers = _number("matmul: alpha", alpha, dtype), _number("matmul: beta", beta, dtype)
    if alpha == 1 and beta == 0:
        return None
    if beta and out is None:
        raise ValueError(f"matmul: beta={beta} without out=: there is nothing to add; give out= or drop beta")
    if dtype not in promotion.FLOATS:
        raise DTypeError(f"matmul: alpha={alpha}, beta={beta}: these operands give {dtype}; only floats are scaled")
    if beta and out is not None and out.dtype != dtype:
        raise DTypeError(f"matmul: beta={beta}: out is {out.dtype}, the result {dtype}; they must be alike")
    return Epilogue(numbers[0], residual=out if beta else None, beta=numbers[1])


def _number(field: str, value: Any, dtype: DataType) -> float:
    """alpha or beta of a product of a type, which the type that it is computed in has."""
    number = value.item() if type(value).__module__ == "numpy" and getattr(value, "shape", None) == () else value
    if not isinstance(number, Real):
        raise DTypeError(f"{field} is a {type(value).__name__}; it must be a real number")
    if dtype != float64:
        return factor(number, field)
    if not abs(value) <= float_info.max:
        raise InvalidSpecError(f"{field}={value!r}; give a finite number that float64 has", field)
    return float(number)
