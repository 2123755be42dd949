"""Products with matrices of fp4, NVFP4 and MXFP4: of half precision with fp4 weights, and of fp4 with fp4."""

from __future__ import annotations

from math import isfinite, prod
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.array import layout
from pygpukit.core.dtypes import as_dtype, float8_e4m3, float32, uint8
from pygpukit.core.errors import DTypeError, GPUError, ShapeError
from pygpukit.ops import copying, host, raw
from pygpukit.ops.matmul import fp4_blocks, fp4_codes, fp4_few, gemm, plan
from pygpukit.ops.matmul.fastest import by_context
from pygpukit.ops.matmul.fp4_codes import Fp4Matrix
from pygpukit.ops.operands import check_array, check_devices, check_out, is_array

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DataType, DTypeLike

__all__ = ["matmul_fp4"]
LOW_LEVEL = ["dequantize_fp4", "matmul_fp4_plan", "quantize_mxfp4", "quantize_nvfp4"]

_WHOLE = 64  # numbers: what the kernels read of a row at least
_FEW = 64  # rows, up to which a weight is read as it is where products need not be invariant


def quantize_nvfp4(x: GPUArray, scale: GPUArray | float | None = None) -> Fp4Matrix:
    """x (n, k) as (codes, scales, scale) of NVFP4: E2M1 codes, two a byte, an E4M3 scale for every 16 of a row, and one
    float32 for all.

    Rows are filled up with zeros to whole 16. scale: of all numbers, a positive number or one element of float32; by
    default the largest finite magnitude over 6 * 448, measured on the device. A block's scale is its largest magnitude
    over 6 and over that, rounded to nearest even, at most 448; a code is the number over both, rounded to nearest even,
    at most 6. A block with a number that is NaN or infinite gets the scale NaN. x: float16, bfloat16, float32, any
    strides. Asynchronous, the same bits on every run and device. Raises DTypeError, ShapeError, ValueError.
    """
    what = "quantize_nvfp4"
    number = _checked_scale(what, scale)
    made = _empty(what, x, float8_e4m3, 16)._replace(scale=native.empty((), float32) if number is None else number)
    _fill(x, made, measured=number is None)
    return made


def quantize_mxfp4(x: GPUArray) -> Fp4Matrix:
    """x (n, k) as (codes, scales, None) of MXFP4: E2M1 codes, two a byte, and a power of two (E8M0, in uint8) for every
    32 of a row.

    Rows are filled up with zeros to whole 32. The power is that with which the largest magnitude of the block is from 4
    to below 8, as in OCP's microscaling formats 1.0; codes are rounded to nearest even, at most 6. A block with a
    number that is NaN or infinite gets the scale NaN. x: float16, bfloat16, float32, any strides. Asynchronous, the
    same bits on every run and device. Raises DTypeError, ShapeError.
    """
    made = _empty("quantize_mxfp4", x, uint8, 32)
    _fill(x, made, measured=False)
    return made


def dequantize_fp4(matrix: Any, dtype: DTypeLike = "float32") -> GPUArray:
    """The numbers (n, k) of (codes, scales) or (codes, scales, scale), computed in float32 and rounded to float16,
    bfloat16 or float32. Asynchronous. Raises DTypeError, ShapeError, ValueError."""
    what, wanted = "dequantize_fp4", as_dtype(dtype)
    one = _checked(what, "matrix", matrix)
    if wanted not in fp4_codes.NUMBERS:
        raise DTypeError(f"{what}: numbers of {wanted}; they can be {_names(fp4_codes.NUMBERS)}")
    out = native.empty((one.codes.shape[0], one.columns), wanted)
    if out.size:
        fp4_codes.numbers(_dense(one), out)
    return out


@by_context
def matmul_fp4(
    a: Any,
    w: Any,
    *,
    out_dtype: DTypeLike | None = None,
    out: GPUArray | None = None,
    invariant: bool | None = None,
) -> GPUArray:
    """a @ w.T with a weight w of fp4, as quantize_nvfp4() and quantize_mxfp4() give it: (codes, scales), or with a
    scale of all (codes, scales, scale), of n rows.

    a: (..., k) or (k,) of bfloat16, or float16 with NVFP4: products with the decoded weight, exact, are summed in
    float32 on tensor cores and then scaled. Or a is (codes, scales, scale) of w's format, too: products of two fp4
    operands, on SM 12.0 alone. out_dtype: float16, bfloat16 or float32; by default that of out=, of a, or float32. The
    columns that w has been filled up with are left out.

    A row's bits depend on no other row, unless invariant=False (or fastest_products()): then a weight for more than 64
    rows is decoded, with its scale of all, to a's type for gp.matmul(). matmul_fp4_plan() says what is done.
    Asynchronous. Raises ShapeError, DTypeError, ValueError, DeviceMismatchError, and GPUError for two fp4 operands on
    another device.
    """
    what = "matmul_fp4"
    left, weight, shape = _operands(what, a, w)
    backend, _ = _planned(what, left, weight, invariant)
    dtype = _result_type(what, left, out_dtype, out)
    if out is not None:
        check_out(out, shape, dtype, what)
    arrays = [*_arrays(weight), *(_arrays(left) if isinstance(left, Fp4Matrix) else [left])]
    check_devices(what, *arrays)
    free = out is not None and out.is_contiguous() and all(out.block != one.block for one in arrays)
    target = out if out is not None and free and out.dtype == dtype else native.empty(shape, dtype)
    if target.size:
        rows = target.reshape(-1, shape[-1])
        if not weight.columns:
            copying.fill(target, 0)
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


def matmul_fp4_plan(a: Any, w: Any, *, invariant: bool | None = None) -> plan.MatmulPlan:
    """The plan of `gp.matmul_fp4(a, w, invariant=invariant)`: which kernel, and why. Launches nothing. Raises as it."""
    what = "matmul_fp4_plan"
    left, weight, _ = _operands(what, a, w)
    return plan.MatmulPlan(*_planned(what, left, weight, invariant))


def _planned(what: str, a: GPUArray | Fp4Matrix, w: Fp4Matrix, invariant: bool | None) -> tuple[str, str]:
    """(backend, reason). Raises GPUError where no kernel of the device takes the product."""
    if isinstance(a, Fp4Matrix):
        if why := fp4_blocks.refusal():
            raise GPUError(
                f"{what}: {why}; decode the left operand: gp.matmul_fp4(gp.ops.dequantize_fp4(a, 'bfloat16'), w)"
            )
        if host.computes():
            return "numpy", "the simulated device computes with NumPy"
        return "blocks", f"{w.name} times {a.name} on the tensor cores of SM 12.0; not run on a GPU yet"
    rows = prod(a.shape[:-1])
    if host.computes():
        return "numpy", "the simulated device computes with NumPy"
    if rows > fp4_few.MOST_ROWS or (invariant is False and rows > _FEW):
        return "decoded", f"{w.name} decoded to {a.dtype} for gp.matmul(); other bits than up to {_FEW} rows"
    return "few", f"{w.name} decoded to {a.dtype} in registers, summed in float32 on tensor cores"


def _operands(what: str, a: Any, w: Any) -> tuple[GPUArray | Fp4Matrix, Fp4Matrix, layout.Shape]:
    """The operands, checked, and the result's shape."""
    weight = _checked(what, "w", w)
    n, columns = weight.codes.shape[0], weight.columns
    if isinstance(a, tuple):
        left = _checked(what, "a", a)
        if left.name != weight.name or left.block != weight.block or left.columns != columns:
            raise ShapeError(
                f"{what}: a is {left.name} of blocks of {left.block}, k {left.columns}, and w {weight.name} of blocks "
                f"of {weight.block}, k {columns}; two fp4 operands have one format and one k"
            )
        if (left.scales.dtype, left.block) not in fp4_blocks.FORMATS:
            raise ShapeError(f"{what}: NVFP4 of blocks of 32; tensor cores take blocks of 16")
        return left, weight, (left.codes.shape[0], n)
    rows = check_array(a, f"{what}: a")
    if not fp4_few.takes(rows.dtype, weight.scales.dtype):
        taken = "bfloat16" if weight.scales.dtype == uint8 else "bfloat16 or float16"
        raise DTypeError(f"{what}: a is {rows.dtype}; with weights of {weight.name} it is {taken}: use .astype()")
    if not rows.ndim or not columns - weight.block < rows.shape[-1] <= columns:
        raise ShapeError(
            f"{what}: a has shape {rows.shape} and w {n} rows of {columns} numbers; "
            f"a's last axis is as long, or shorter by less than a block of {weight.block}"
        )
    return rows, weight, (*rows.shape[:-1], n)


def _checked(what: str, operand: str, given: Any) -> Fp4Matrix:
    """given as a matrix whose parts fit together."""
    if not isinstance(given, tuple) or len(given) not in (2, 3):
        raise DTypeError(
            f"{what}: {operand} is a {type(given).__name__}; it is (codes, scales) or (codes, scales, scale), as "
            "gp.ops.quantize_nvfp4() and gp.ops.quantize_mxfp4() give them"
        )
    one = Fp4Matrix(*given)
    codes, scales = check_array(one.codes, f"{what}: codes"), check_array(one.scales, f"{what}: scales")
    if codes.dtype != uint8 or scales.dtype not in (float8_e4m3, uint8):
        raise DTypeError(
            f"{what}: codes of {operand} are {codes.dtype} and scales {scales.dtype}; codes are uint8, scales "
            "float8_e4m3 (NVFP4) or uint8 (MXFP4): .view() gives other bits a type"
        )
    _checked_scale(f"{what}: {operand}", one.scale)
    fits = codes.ndim == 2 == scales.ndim and codes.shape[0] == scales.shape[0]
    if not fits or not any(
        scales.dtype == kind and 2 * codes.shape[1] == scales.shape[1] * block for kind, block in fp4_codes.FORMATS
    ):
        raise ShapeError(
            f"{what}: codes of {operand} have shape {codes.shape} and scales {scales.shape} of {scales.dtype}; they "
            "are (n, k/2) and, of float8_e4m3, (n, k/16) or (n, k/32), of uint8 (n, k/32)"
        )
    return one


def _checked_scale(what: str, scale: Any) -> GPUArray | float | None:
    """The scale of all numbers, which is not looked at on the device."""
    if scale is None:
        return None
    if is_array(scale):
        if scale.dtype != float32 or scale.size != 1:
            raise DTypeError(f"{what}: scale is {scale.dtype} of shape {scale.shape}; it is one element of float32")
        return scale
    number = float(scale)
    if not isfinite(number) or number <= 0:
        raise ValueError(f"{what}: scale={number}; it is finite and above 0")
    return number


def _empty(what: str, x: Any, scales: DataType, block: int) -> Fp4Matrix:
    """What x becomes, not filled in yet."""
    array = check_array(x, what)
    if array.dtype not in fp4_codes.NUMBERS:
        raise DTypeError(f"{what}: x is {array.dtype}; it is {_names(fp4_codes.NUMBERS)}")
    if array.ndim != 2:
        raise ShapeError(f"{what}: x has shape {array.shape}; it is (n, k), a weight with a row for each result")
    n, blocks = array.shape[0], -(-array.shape[1] // block)
    return Fp4Matrix(native.empty((n, blocks * block // 2), uint8), native.empty((n, blocks), scales))


def _fill(x: GPUArray, made: Fp4Matrix, measured: bool) -> None:
    check_devices("quantize_fp4", x, *_arrays(made))
    if x.size:
        fp4_codes.quantise(x, made, measured)
    elif is_array(made.scale):
        copying.fill(made.scale, 1.0)


def _half(a: GPUArray, w: Fp4Matrix, out: GPUArray) -> None:
    """out (m, n) = a @ w^T by fp4_few.cu."""
    rows = a.reshape(-1, a.shape[-1])
    if host.computes():
        native.host_launch("matmul_fp4", lambda: _half_on_host(rows, w, out), [rows, *_arrays(w), out])
        return
    wide = native.empty(out.shape, float32) if out.dtype not in (a.dtype, float32) else out
    fp4_few.product(rows, filled(w), wide)
    if wide is not out:
        copying.copy_to(wide, out)


def _half_on_host(a: GPUArray, w: Fp4Matrix, out: GPUArray) -> None:
    import numpy as np

    x = host.values(a).astype(np.float32)
    with np.errstate(all="ignore"):
        sums = x @ fp4_codes.on_host(w, scaled=False)[:, : x.shape[1]].T
        host.store(out, sums * fp4_codes.scale_on_host(w))


def _both(a: Fp4Matrix, w: Fp4Matrix, out: GPUArray) -> None:
    """out (m, n) = a @ w^T of two fp4 operands."""
    if host.computes():
        native.host_launch("matmul_fp4", lambda: _both_on_host(a, w, out), [*_arrays(a), *_arrays(w), out])
    else:
        fp4_blocks.product(filled(a), filled(w), out)


def _both_on_host(a: Fp4Matrix, w: Fp4Matrix, out: GPUArray) -> None:
    import numpy as np

    with np.errstate(all="ignore"):
        sums = fp4_codes.on_host(a, scaled=False) @ fp4_codes.on_host(w, scaled=False).T
        host.store(out, sums * (fp4_codes.scale_on_host(a) * fp4_codes.scale_on_host(w)))


def filled(one: Fp4Matrix) -> Fp4Matrix:
    """As the kernels read it: dense rows of whole 64 numbers, from a multiple of 16 bytes on."""
    extra = -one.columns % _WHOLE
    if not extra and all(part.is_contiguous() and raw.address(part) % 16 == 0 for part in one[:2]):
        return one
    parts = []
    for part, more in ((one.codes, extra // 2), (one.scales, extra // one.block)):
        whole = native.empty((part.shape[0], part.shape[1] + more), part.dtype)
        native.fill(whole, bytes(1))
        copying.copy_to(part, whole[:, : part.shape[1]])
        parts.append(whole)
    return Fp4Matrix(parts[0], parts[1], one.scale)


def _dense(one: Fp4Matrix) -> Fp4Matrix:
    return one._replace(codes=copying.contiguous(one.codes), scales=copying.contiguous(one.scales))


def _arrays(one: Fp4Matrix) -> list[GPUArray]:
    return [part for part in one if is_array(part)]


def _result_type(what: str, a: GPUArray | Fp4Matrix, out_dtype: DTypeLike | None, out: GPUArray | None) -> DataType:
    asked = None if out_dtype is None else as_dtype(out_dtype)
    given = None if out is None else check_array(out, f"{what}: out").dtype
    if asked is not None and given is not None and asked != given:
        raise DTypeError(f"{what}: out_dtype={asked} and out= of {given} contradict each other; give one of them")
    dtype = asked or given or (float32 if isinstance(a, Fp4Matrix) else a.dtype)
    if dtype not in fp4_codes.NUMBERS:
        raise DTypeError(f"{what}: a result of {dtype}; it can be {_names(fp4_codes.NUMBERS)}")
    return dtype


def _names(dtypes: tuple[DataType, ...]) -> str:
    return ", ".join(map(str, dtypes))
