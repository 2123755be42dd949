"""Matrices of fp4, NVFP4 and MXFP4: made of numbers, decoded, checked, and as kernels read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.core.dtypes import as_dtype, float8_e4m3, float32, uint8
from pygpukit.core.errors import DTypeError, ShapeError
from pygpukit.core.sizes import factor
from pygpukit.ops import copying, raw
from pygpukit.ops.matmul.fp4 import encoding
from pygpukit.ops.matmul.fp4.encoding import Fp4Matrix
from pygpukit.ops.operands import check_array, check_devices, is_array

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DataType, DTypeLike

LOW_LEVEL = ["dequantize_fp4", "quantize_mxfp4", "quantize_nvfp4"]

_MIN_COLUMNS = 64  # numbers: what the kernels read of a row at least


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
    matrix = _empty(what, x, float8_e4m3, 16)._replace(scale=native.empty((), float32) if number is None else number)
    _fill(x, matrix, measured=number is None)
    return matrix


def quantize_mxfp4(x: GPUArray) -> Fp4Matrix:
    """x (n, k) as (codes, scales, None) of MXFP4: E2M1 codes, two a byte, and a power of two (E8M0, in uint8) for every
    32 of a row.

    Rows are filled up with zeros to whole 32. The power is that with which the largest magnitude of the block is from 4
    to below 8, as in OCP's microscaling formats 1.0; codes are rounded to nearest even, at most 6. A block with a
    number that is NaN or infinite gets the scale NaN. x: float16, bfloat16, float32, any strides. Asynchronous, the
    same bits on every run and device. Raises DTypeError, ShapeError.
    """
    matrix = _empty("quantize_mxfp4", x, uint8, 32)
    _fill(x, matrix, measured=False)
    return matrix


def dequantize_fp4(matrix: Any, dtype: DTypeLike = "float32") -> GPUArray:
    """The numbers (n, k) of (codes, scales) or (codes, scales, scale), computed in float32 and rounded to float16,
    bfloat16 or float32. Asynchronous. Raises DTypeError, ShapeError, ValueError."""
    what, target = "dequantize_fp4", as_dtype(dtype)
    fp4 = checked(what, "matrix", matrix)
    if target not in encoding.NUMBERS:
        raise DTypeError(f"{what}: numbers of {target}; they can be {names(encoding.NUMBERS)}")
    out = native.empty((fp4.codes.shape[0], fp4.columns), target)
    if out.size:
        encoding.numbers(_dense(fp4), out)
    return out


def checked(what: str, operand: str, value: Any) -> Fp4Matrix:
    """given as a matrix whose parts fit together."""
    if not isinstance(value, tuple) or len(value) not in (2, 3):
        raise DTypeError(
            f"{what}: {operand} is a {type(value).__name__}; it is (codes, scales) or (codes, scales, scale), as "
            "gp.ops.quantize_nvfp4() and gp.ops.quantize_mxfp4() give them"
        )
    fp4 = Fp4Matrix(*value)
    codes, scales = check_array(fp4.codes, f"{what}: codes"), check_array(fp4.scales, f"{what}: scales")
    if codes.dtype != uint8 or scales.dtype not in (float8_e4m3, uint8):
        raise DTypeError(
            f"{what}: codes of {operand} are {codes.dtype} and scales {scales.dtype}; codes are uint8, scales "
            "float8_e4m3 (NVFP4) or uint8 (MXFP4): .view() gives other bits a type"
        )
    fp4 = fp4._replace(scale=_checked_scale(f"{what}: {operand}", fp4.scale))
    fits = codes.ndim == 2 == scales.ndim and codes.shape[0] == scales.shape[0]
    if not fits or not any(
        scales.dtype == kind and 2 * codes.shape[1] == scales.shape[1] * block for kind, block in encoding.FORMATS
    ):
        raise ShapeError(
            f"{what}: codes of {operand} have shape {codes.shape} and scales {scales.shape} of {scales.dtype}; they "
            "are (n, k/2) and, of float8_e4m3, (n, k/16) or (n, k/32), of uint8 (n, k/32)"
        )
    return fp4


def filled(matrix: Fp4Matrix) -> Fp4Matrix:
    """As the kernels read it: dense rows of whole 64 numbers, from a multiple of 16 bytes on."""
    extra = -matrix.columns % _MIN_COLUMNS
    if not extra and all(part.is_contiguous() and raw.address(part) % 16 == 0 for part in matrix[:2]):
        return matrix
    parts = []
    for part, more in ((matrix.codes, extra // 2), (matrix.scales, extra // matrix.block)):
        padded = native.empty((part.shape[0], part.shape[1] + more), part.dtype)
        native.fill(padded, bytes(1))
        copying.copy_to(part, padded[:, : part.shape[1]])
        parts.append(padded)
    return Fp4Matrix(parts[0], parts[1], matrix.scale)


def names(dtypes: tuple[DataType, ...]) -> str:
    return ", ".join(map(str, dtypes))


def _checked_scale(what: str, scale: Any) -> GPUArray | float | None:
    """The scale of all numbers, which is not looked at on the device."""
    if scale is None:
        return None
    if is_array(scale):
        if scale.dtype != float32 or scale.size != 1:
            raise DTypeError(f"{what}: scale is {scale.dtype} of shape {scale.shape}; it is one element of float32")
        return scale
    return factor(scale, f"{what}: scale", positive=True)


def _empty(what: str, x: Any, scales: DataType, block: int) -> Fp4Matrix:
    """The quantised x, not filled in yet."""
    array = check_array(x, what)
    if array.dtype not in encoding.NUMBERS:
        raise DTypeError(f"{what}: x is {array.dtype}; it is {names(encoding.NUMBERS)}")
    if array.ndim != 2:
        raise ShapeError(f"{what}: x has shape {array.shape}; it is (n, k), a weight with a row for each result")
    n, blocks = array.shape[0], -(-array.shape[1] // block)
    return Fp4Matrix(native.empty((n, blocks * block // 2), uint8), native.empty((n, blocks), scales))


def _fill(x: GPUArray, matrix: Fp4Matrix, measured: bool) -> None:
    check_devices("quantize_fp4", x, *matrix.arrays())
    if x.size:
        encoding.quantise(x, matrix, measured)
    elif is_array(matrix.scale):
        copying.fill(matrix.scale, 1.0)


def _dense(matrix: Fp4Matrix) -> Fp4Matrix:
    return matrix._replace(codes=copying.contiguous(matrix.codes), scales=copying.contiguous(matrix.scales))
