"""The documented names for products of int4 and int8: exact int32 sums by matmul_int8(), on every device."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from pygpukit.core.dtypes import DataType, int8, int32, uint8
from pygpukit.core.errors import DTypeError, InvalidSpecError, ShapeError
from pygpukit.ops.copying import copy_to
from pygpukit.ops.elementwise import clip
from pygpukit.ops.elementwise.math import round as rounded
from pygpukit.ops.matmul.available import int8_native_gemm_available
from pygpukit.ops.matmul.integer_weights import int4_numbers
from pygpukit.ops.matmul.integers import matmul_int8
from pygpukit.ops.operands import check_array, check_devices, check_writable

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

LOW_LEVEL = [
    "gemm_int4_int32_available",
    "gemm_int4_int32_sm120",
    "gemm_int4_int8_sm120",
    "gemm_int8_int32_available",
    "gemm_int8_int32_sm120",
    "int4_gemm_available",
    "int4_gemm_int32_sm120",
    "int4_gemm_int8_sm120",
    "int8_native_gemm_sm120",
]
_LIMITS = {int8: (-128, 127), int32: (-(2**31), 2**31 - 1)}


def int4_gemm_available() -> bool:
    """True: products of int4 run on every device, in int8, which has all of its numbers."""
    return True


def gemm_int8_int32_sm120(A: GPUArray, B: GPUArray, D: GPUArray) -> None:
    """D = A @ B.T of int8, exact in int32: A (M, K), B (N, K), D (M, N). Raises ShapeError, DTypeError."""
    _write("gemm_int8_int32_sm120", A, B, D, int8, int32, 1.0)


def gemm_int4_int32_sm120(
    A: GPUArray, B: GPUArray, D: GPUArray, scale_A: float = 1.0, scale_B: float = 1.0, descale_D: float = 1.0
) -> None:
    """D = A @ B.T of int4, two numbers in a byte of uint8, the first in its low bits.

    A (M, K/2), B (N, K/2), D int32 (M, N). The sum of products is exact; where scale_A * scale_B * descale_D is not 1
    it is multiplied by that in float64, rounded to nearest even and held to the least and largest number of D's type.
    Raises ShapeError, DTypeError, and InvalidSpecError for a scale that is not finite.
    """
    _write(
        "gemm_int4_int32_sm120", A, B, D, uint8, int32, _factor("gemm_int4_int32_sm120", scale_A, scale_B, descale_D)
    )


def gemm_int4_int8_sm120(
    A: GPUArray, B: GPUArray, D: GPUArray, scale_A: float = 1.0, scale_B: float = 1.0, descale_D: float = 1.0
) -> None:
    """gemm_int4_int32_sm120() with D of int8, to whose least and largest number sums are held."""
    what = "gemm_int4_int8_sm120"
    _write(what, A, B, D, uint8, int8, _factor(what, scale_A, scale_B, descale_D))


gemm_int4_int32_available = int4_gemm_available
gemm_int8_int32_available = int8_native_gemm_available
int8_native_gemm_sm120 = gemm_int8_int32_sm120
int4_gemm_int32_sm120, int4_gemm_int8_sm120 = gemm_int4_int32_sm120, gemm_int4_int8_sm120


def _factor(what: str, *scales: float) -> float:
    factor = 1.0
    for name, scale in zip(("scale_A", "scale_B", "descale_D"), scales, strict=True):
        if not isfinite(scale):
            raise InvalidSpecError(f"{what}: {name} is {scale}; it must be finite", name)
        factor *= float(scale)
    return factor


def _write(
    what: str, a: GPUArray, b: GPUArray, out: GPUArray, operand: DataType, result: DataType, factor: float
) -> None:
    for name, array, dtype in (("A", a, operand), ("B", b, operand), ("D", out, result)):
        if check_array(array, f"{what}: {name}").dtype != dtype or array.ndim != 2:
            raise DTypeError(f"{what}: {name} is {array.dtype} of shape {array.shape}; it is a {dtype} matrix")
    if a.shape[1] != b.shape[1] or out.shape != (a.shape[0], b.shape[0]):
        raise ShapeError(
            f"{what}: A has shape {a.shape}, B {b.shape} and D {out.shape}; rows of A and B are equally long, D has "
            "a row for each of A and a column for each of B"
        )
    check_writable(out, f"{what}: D")
    check_devices(what, a, b, out)
    sums = matmul_int8(a, b.T) if operand == int8 else matmul_int8(int4_numbers(a), int4_numbers(b).T)
    if factor != 1.0:
        sums = rounded(sums.astype("float64") * factor)
    if factor != 1.0 or result != int32:
        sums = clip(sums, *_LIMITS[result]).astype(result)
    copy_to(sums, out)
