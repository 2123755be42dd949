"""The documented names for NVFP4 with blocks of 32: thin forms of matmul_fp4() and of what makes its weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.core.backend import is_sim
from pygpukit.core.dtypes import bfloat16, float8_e4m3, uint8
from pygpukit.core.errors import DTypeError, InvalidSpecError, ShapeError
from pygpukit.core.sizes import factor, whole
from pygpukit.ops import copying
from pygpukit.ops.matmul.fp4 import block_scaled, encoding
from pygpukit.ops.matmul.fp4.encoding import Fp4Matrix
from pygpukit.ops.matmul.fp4.matmul import matmul_fp4
from pygpukit.ops.matmul.fp4.matrices import quantize_nvfp4
from pygpukit.ops.operands import check_array, check_devices, is_array

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

LOW_LEVEL = [
    "gemm_nvf4_bf16_sm120",
    "gemm_nvf4_bf16_sm120_available",
    "gemm_nvf4_nvf4_sm120_available",
    "gemv_nvf4_available",
    "gemv_nvf4_bf16",
    "gemv_nvf4_bf16_sm120",
    "gemv_nvf4_bf16_sm120_available",
    "gemv_nvf4_get_sizes",
    "matmul_nvf4_bf16_sm120",
    "nvf4_bf16_sm120_available",
    "nvf4_get_sizes",
    "nvf4_nvf4_sm120_available",
    "quantize_bf16_to_nvf4",
]
_BLOCK = 32
_EXTENT = "a whole number, 0 or more"


def gemv_nvf4_available() -> bool:
    """True: gemv_nvf4_bf16() runs on every device."""
    return True


def nvf4_bf16_sm120_available() -> bool:
    """True if the device is one of SM 12.0, whose tensor cores multiply fp4 with fp4."""
    return not is_sim() and not block_scaled.refusal()


def nvf4_get_sizes(K: int, N: int) -> tuple[int, int]:
    """Bytes of the codes and of the scales of a weight (K, N), as quantize_bf16_to_nvf4() writes them. Raises
    InvalidSpecError for what is no whole number, or below 0."""
    k, n = (whole(value, f"nvf4_get_sizes: {name}", _EXTENT) for name, value in (("K", K), ("N", N)))
    if min(k, n) < 0:
        raise InvalidSpecError(f"nvf4_get_sizes: K={k}, N={n}; give {_EXTENT} for both")
    blocks = -(-k // _BLOCK)
    return blocks * _BLOCK // 2 * n, blocks * n


def quantize_bf16_to_nvf4(input: GPUArray, out_data: GPUArray, out_scale: GPUArray) -> None:
    """Writes a bfloat16 weight (K, N), K a multiple of 32, as codes (K/2, N) and E4M3 scales (K/32, N) of blocks, with
    no scale of all. Both are uint8, the scales also float8_e4m3. Raises ShapeError, DTypeError."""
    what = "quantize_bf16_to_nvf4"
    x = check_array(input, f"{what}: input")
    if x.dtype != bfloat16 or x.ndim != 2 or x.shape[0] % _BLOCK:
        raise ShapeError(f"{what}: input is {x.dtype} of shape {x.shape}; it is bfloat16 (K, N), K a multiple of 32")
    codes, scales = _parts(what, out_data, out_scale)
    k, n = x.shape
    if codes.shape != (k // 2, n) or scales.shape != (k // _BLOCK, n):
        raise ShapeError(
            f"{what}: out_data has shape {codes.shape} and out_scale {scales.shape}; they are {(k // 2, n)} and "
            f"{(k // _BLOCK, n)}"
        )
    check_devices(what, x, codes, scales)
    if x.size:
        matrix = Fp4Matrix(native.empty((n, k // 2), uint8), native.empty((n, k // _BLOCK), float8_e4m3))
        encoding.quantise(x.T, matrix, measured=False)
        copying.copy_to(matrix.codes.T, codes)
        copying.copy_to(matrix.scales.T, scales)


def gemv_nvf4_bf16(
    a: GPUArray, b_data: GPUArray, b_scale: GPUArray, *, out: GPUArray | None = None, alpha: float = 1.0
) -> GPUArray:
    """alpha times a bfloat16 vector (K,) times a weight of quantize_bf16_to_nvf4(): (N,) of bfloat16. alpha is
    above 0.

    The weight is copied with its axes exchanged first: matmul_fp4() of a weight of quantize_nvfp4() reads it as it
    lies. Raises as matmul_fp4().
    """
    what = "gemv_nvf4_bf16"
    if check_array(a, f"{what}: a").dtype != bfloat16 or a.ndim != 1:
        raise ShapeError(f"{what}: a is {a.dtype} of shape {a.shape}; it is bfloat16 (K,)")
    codes, scales = _parts(what, b_data, b_scale)
    of_all = alpha if is_array(alpha) else factor(alpha, f"{what}: alpha", positive=True)
    return matmul_fp4(a, (codes.T, scales.T, of_all), out_dtype=bfloat16, out=out, invariant=True)


def matmul_nvf4_bf16_sm120(a: GPUArray, b: GPUArray, *, out: GPUArray | None = None) -> GPUArray:
    """a (M, K) @ b (K, N) of bfloat16, both made NVFP4 first: bfloat16. Raises as matmul_fp4()."""
    what = "matmul_nvf4_bf16_sm120"
    for name, array in (("a", a), ("b", b)):
        if check_array(array, f"{what}: {name}").dtype != bfloat16:
            raise DTypeError(f"{what}: {name} is {array.dtype}; it is bfloat16")
    return matmul_fp4(quantize_nvfp4(a), quantize_nvfp4(b.T), out_dtype=bfloat16, out=out)


nvf4_nvf4_sm120_available = gemm_nvf4_nvf4_sm120_available = nvf4_bf16_sm120_available
gemm_nvf4_bf16_sm120, gemm_nvf4_bf16_sm120_available = matmul_nvf4_bf16_sm120, nvf4_bf16_sm120_available
gemv_nvf4_bf16_sm120, gemv_nvf4_bf16_sm120_available = gemv_nvf4_bf16, gemv_nvf4_available
gemv_nvf4_get_sizes = nvf4_get_sizes


def _parts(what: str, data: GPUArray, scale: GPUArray) -> tuple[GPUArray, GPUArray]:
    """Codes and scales of the types that they stand for."""
    codes, scales = check_array(data, f"{what}: data"), check_array(scale, f"{what}: scale")
    if codes.dtype != uint8 or scales.dtype not in (uint8, float8_e4m3):
        raise DTypeError(
            f"{what}: data is {codes.dtype} and scale {scales.dtype}; they are uint8, scale also float8_e4m3"
        )
    return codes, scales if scales.dtype == float8_e4m3 else scales.view("float8_e4m3")
