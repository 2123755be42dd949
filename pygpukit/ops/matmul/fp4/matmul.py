"""Products with matrices of fp4, NVFP4 and MXFP4: of half precision with fp4 weights, and of fp4 with fp4."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.array import layout
from pygpukit.core.dtypes import as_dtype, bfloat16, float32, uint8
from pygpukit.core.errors import DTypeError, GPUError, ShapeError
from pygpukit.ops import copying, host
from pygpukit.ops.matmul import gemm
from pygpukit.ops.matmul.choose import MatmulPlan
from pygpukit.ops.matmul.cutlass import block_scaled as cutlass
from pygpukit.ops.matmul.fastest import by_context
from pygpukit.ops.matmul.fp4 import block_scaled, encoding
from pygpukit.ops.matmul.fp4 import gemv as fp4_gemv
from pygpukit.ops.matmul.fp4.encoding import Fp4Matrix
from pygpukit.ops.matmul.fp4.matrices import checked, dequantize_fp4, filled, names
from pygpukit.ops.operands import check_array, check_devices, check_out
from pygpukit.ops.prepared import as_replaced, exchangeable, prepared

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DataType, DTypeLike

__all__ = ["matmul_fp4"]
LOW_LEVEL = ["matmul_fp4_plan"]

_SKINNY_ROWS = 384  # rows, from which on decoding pays on an H100, where products need not be invariant


@exchangeable
@by_context
def matmul_fp4(
    a: Any,
    w: Any,
    *,
    out_dtype: DTypeLike | None = None,
    out: GPUArray | None = None,
    invariant: bool | None = None,
    backend: str | None = None,
) -> GPUArray:
    """a @ w.T with a weight w of fp4, as quantize_nvfp4() and quantize_mxfp4() give it: (codes, scales), or with a
    scale of all (codes, scales, scale), of n rows.

    a: (..., k) or (k,) of bfloat16, or float16 with NVFP4: products with the decoded weight, exact, are summed in
    float32 on tensor cores and then scaled. Or a is (codes, scales, scale) of w's format, too: products of two fp4
    operands, on tensor cores for them on SM 12.0, elsewhere of the numbers that a stands for, which bfloat16 has.
    out_dtype: float16, bfloat16 or float32; by default that of out=, of a, or float32. The columns that w has been
    filled up with are left out.

    A row's bits depend on no other row, unless invariant=False (or fastest_products()): then a weight for more than 384
    rows is decoded, with its scale of all, to a's type for gp.matmul(). matmul_fp4_plan() says what is done.
    backend: None, or "cutlass": of two fp4 operands, by CUTLASS's kernel on SM 12.0. Asynchronous. Raises ShapeError,
    DTypeError, ValueError, DeviceMismatchError, and GPUError where the backend asked for does not take the product.
    """
    return _product(_parts(a), _parts(w), out_dtype, out, invariant, backend)


@prepared
def _product(
    a: Any,
    w: Any,
    out_dtype: DTypeLike | None,
    out: GPUArray | None,
    invariant: bool | None,
    named: str | None = None,
) -> GPUArray:
    what = "matmul_fp4"
    gemm.check_invariant(what, invariant)
    left, weight, shape = _operands(what, a, w)
    backend, _ = _planned(what, left, weight, invariant, named)
    dtype = _result_type(what, left, out_dtype, out)
    if out is not None:
        check_out(out, shape, dtype, what)
    arrays = [*weight.arrays(), *(left.arrays() if isinstance(left, Fp4Matrix) else [left])]
    check_devices(what, *arrays)
    free = out is not None and out.is_contiguous() and all(out.block != matrix.block for matrix in arrays)
    target = out if out is not None and free and out.dtype == dtype else native.empty(shape, dtype)
    if target.size:
        rows = target.reshape(-1, shape[-1])
        if not weight.columns:
            copying.fill(target, 0)
        elif isinstance(left, Fp4Matrix) and backend == "numbers":
            _of_numbers(left, weight, invariant, rows)
        elif isinstance(left, Fp4Matrix) and backend == cutlass.BACKEND:
            cutlass.product(filled(left), filled(weight), rows)
        elif isinstance(left, Fp4Matrix):
            _both(left, weight, rows)
        elif backend == "decoded":
            numbers = dequantize_fp4(weight, left.dtype)[:, : left.shape[-1]]
            copying.copy_to(gemm.matmul(left, numbers.T, invariant=False), rows)
        else:
            _half(left, weight, rows)
    if out is None or target is out:
        return target
    copying.copy_to(target, out)
    return out


@by_context
def matmul_fp4_plan(a: Any, w: Any, *, invariant: bool | None = None, backend: str | None = None) -> MatmulPlan:
    """The plan of `gp.matmul_fp4(a, w, invariant=invariant, backend=backend)`: which kernel, and why. Launches nothing.
    Raises as it."""
    what = "matmul_fp4_plan"
    gemm.check_invariant(what, invariant)
    left, weight, _ = _operands(what, a, w)
    return as_replaced(MatmulPlan(*_planned(what, left, weight, invariant, backend)), matmul_fp4)


def _parts(operand: Any) -> Any:
    """A matrix of fp4 as a plain tuple, whose calls are prepared; others as they are."""
    return tuple(operand) if isinstance(operand, tuple) else operand


def _planned(
    what: str, a: GPUArray | Fp4Matrix, w: Fp4Matrix, invariant: bool | None, named: str | None
) -> tuple[str, str]:
    """(backend, reason)."""
    if named not in (None, cutlass.BACKEND):
        raise ValueError(f"{what}: backend={named!r}; it is {cutlass.BACKEND!r}, or None for the plan's choice")
    if named is not None:
        lacks = "CUTLASS's kernels take two fp4 operands" if not isinstance(a, Fp4Matrix) else cutlass.missing()
        if lacks:
            raise GPUError(f"{what}: backend={named!r}: {lacks}; leave backend out for the plan's choice")
        return named, f"{w.name} times {w.name} by CUTLASS for the tensor cores of SM 12.0, as backend={named!r} asks"
    if isinstance(a, Fp4Matrix):
        if why := block_scaled.refusal():
            return "numbers", f"{a.name} of the left operand decoded to bfloat16, exactly: {why}"
        if host.computes():
            return "numpy", "the simulated device computes with NumPy"
        return "blocks", f"{w.name} times {a.name} on the tensor cores of SM 12.0; not run on a GPU yet"
    rows = prod(a.shape[:-1])
    if host.computes():
        return "numpy", "the simulated device computes with NumPy"
    if rows > fp4_gemv.MAX_ROWS or (invariant is False and rows > _SKINNY_ROWS):
        return "decoded", f"{w.name} decoded to {a.dtype} for matmul(); other bits than up to {_SKINNY_ROWS} rows"
    return "few", f"{w.name} decoded to {a.dtype} in registers, summed in float32 on tensor cores"


def _operands(what: str, a: Any, w: Any) -> tuple[GPUArray | Fp4Matrix, Fp4Matrix, layout.Shape]:
    """The operands, checked, and the result's shape."""
    weight = checked(what, "w", w)
    n, columns = weight.codes.shape[0], weight.columns
    if isinstance(a, tuple):
        left = checked(what, "a", a)
        if left.name != weight.name or left.block != weight.block or left.columns != columns:
            raise ShapeError(
                f"{what}: a is {left.name} of blocks of {left.block}, k {left.columns}, and w {weight.name} of blocks "
                f"of {weight.block}, k {columns}; two fp4 operands have one format and one k"
            )
        if (left.scales.dtype, left.block) not in block_scaled.FORMATS:
            raise ShapeError(f"{what}: NVFP4 of blocks of 32; tensor cores take blocks of 16")
        return left, weight, (left.codes.shape[0], n)
    rows = check_array(a, f"{what}: a")
    if not fp4_gemv.takes(rows.dtype, weight.scales.dtype):
        taken = "bfloat16" if weight.scales.dtype == uint8 else "bfloat16 or float16"
        raise DTypeError(f"{what}: a is {rows.dtype}; with weights of {weight.name} it is {taken}: use .astype()")
    if not rows.ndim or not columns - weight.block < rows.shape[-1] <= columns:
        raise ShapeError(
            f"{what}: a has shape {rows.shape} and w {n} rows of {columns} numbers; "
            f"a's last axis is as long, or shorter by less than a block of {weight.block}"
        )
    return rows, weight, (*rows.shape[:-1], n)


def _half(a: GPUArray, w: Fp4Matrix, out: GPUArray) -> None:
    """out (m, n) = a @ w^T by gemv.cu."""
    rows = a.reshape(-1, a.shape[-1])
    if host.computes():
        from pygpukit.ops.matmul.fp4 import host as fp4_host

        native.host_launch("matmul_fp4", lambda: fp4_host.product(rows, w, out), [rows, *w.arrays(), out])
        return
    wide = native.empty(out.shape, float32) if out.dtype not in (a.dtype, float32) else out
    fp4_gemv.product(rows, filled(w), wide)
    if wide is not out:
        copying.copy_to(wide, out)


def _of_numbers(a: Fp4Matrix, w: Fp4Matrix, invariant: bool | None, out: GPUArray) -> None:
    """out (m, n) = a @ w^T where no tensor cores take two fp4 operands.

    bfloat16 has every product of a code and its block's scale; a's scale of all follows in float32.
    """
    numbers = dequantize_fp4((a.codes, a.scales), bfloat16)
    sums = _product(numbers, tuple(w), float32, None, invariant)
    copying.copy_to(sums if a.scale is None else sums * a.scale, out)


def _both(a: Fp4Matrix, w: Fp4Matrix, out: GPUArray) -> None:
    """out (m, n) = a @ w^T of two fp4 operands."""
    if host.computes():
        from pygpukit.ops.matmul.fp4 import host as fp4_host

        native.host_launch("matmul_fp4", lambda: fp4_host.product_of_two(a, w, out), [*a.arrays(), *w.arrays(), out])
    else:
        block_scaled.product(filled(a), filled(w), out)


def _result_type(what: str, a: GPUArray | Fp4Matrix, out_dtype: DTypeLike | None, out: GPUArray | None) -> DataType:
    asked = None if out_dtype is None else as_dtype(out_dtype)
    out_type = None if out is None else check_array(out, f"{what}: out").dtype
    if asked is not None and out_type is not None and asked != out_type:
        raise DTypeError(f"{what}: out_dtype={asked} and out= of {out_type} contradict each other; give one of them")
    dtype = asked or out_type or (float32 if isinstance(a, Fp4Matrix) else a.dtype)
    if dtype not in encoding.NUMBERS:
        raise DTypeError(f"{what}: a result of {dtype}; it can be {names(encoding.NUMBERS)}")
    return dtype
