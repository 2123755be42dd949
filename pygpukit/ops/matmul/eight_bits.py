"""The documented names for products with 8-bit floats that gp.matmul_fp8 and gp.grouped_matmul compute."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygpukit.array import factory
from pygpukit.core import device
from pygpukit.core.backend import is_sim
from pygpukit.core.dtypes import bfloat16, float8_e4m3, float32, int32, int64, uint8
from pygpukit.core.errors import DTypeError, GPUError, ShapeError
from pygpukit.core.sizes import whole
from pygpukit.ops import elementwise, reduce, sorting
from pygpukit.ops.indexing import padding
from pygpukit.ops.matmul.epilogue.quantise import quantize
from pygpukit.ops.matmul.fp8 import gemv_fp8_bf16, gemv_fp8_bf16_batched, matmul_fp8
from pygpukit.ops.matmul.gemm import matmul
from pygpukit.ops.matmul.grouped import grouped_matmul
from pygpukit.ops.matmul.sm90 import cluster, common, tensor_maps
from pygpukit.ops.operands import check_array, check_devices, check_out

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

LOW_LEVEL = [
    "fp8_fp8_get_scale_sizes",
    "fp8_get_sizes",
    "fp8_init_lut",
    "fp8_sm90_available",
    "gemm_fp8_f32_sm90",
    "gemm_fp8_f32_sm90_available",
    "gemm_fp8_fp8_get_scale_sizes",
    "gemm_w8a16_bf16_sm120",
    "gemm_w8a16_init_lut",
    "gemv_bf16",
    "gemv_bf16_bf16_sm120",
    "gemv_fp8_bf16_batched_sm120",
    "gemv_fp8_bf16_sm120",
    "grouped_gemm_fp8_bf16",
    "grouped_gemm_fp8_bf16_sm120",
    "grouped_gemm_init_lut",
    "matmul_fp8_sm90",
    "w8a16_gemm_init_lut",
    "w8a16_gemm_sm120",
]
_BLOCK, _LARGEST = 128, 448.0  # numbers that share a scale; of float8_e4m3


def fp8_sm90_available() -> bool:
    """True if matmul_fp8_sm90() runs: on devices of SM 9.0, and on the simulated one, which has no others."""
    return device.current().capability == common.SM and (is_sim() or not tensor_maps.refusal())


def matmul_fp8_sm90(a: GPUArray, b: GPUArray, *, out: GPUArray | None = None) -> GPUArray:
    """a (m, k) @ b (k, n) of float32 on the 8-bit tensor cores of SM 9.0: float32 (m, n).

    Both are rounded to float8_e4m3 first, over a scale each that takes its largest magnitude to 448. A row's bits
    depend on the largest numbers of both. Raises GPUError on other devices, ShapeError, DTypeError.
    """
    what = "matmul_fp8_sm90"
    for name, array in (("a", a), ("b", b)):
        if check_array(array, f"{what}: {name}").dtype != float32 or array.ndim != 2:
            raise DTypeError(f"{what}: {name} is {array.dtype} of shape {array.shape}; it is a float32 matrix")
    if a.shape[1] != b.shape[0]:
        raise ShapeError(f"{what}: a has shape {a.shape} and b {b.shape}; they must be (m, k) and (k, n)")
    check_devices(what, a, b)
    if not fp8_sm90_available():
        here = f"{device.current().capability // 10}.{device.current().capability % 10}"
        raise GPUError(
            f"{what}: its instructions are those of SM 9.0; this device is SM {here}; gp.matmul_fp8 runs on it"
        )
    (left, scale_a), (right, scale_b) = _rounded(a), _rounded(b)
    backend = None if is_sim() else cluster.BACKEND
    return matmul_fp8(left, right, scale_a, scale_b, out_dtype=float32, out=out, backend=backend)


def w8a16_gemm_sm120(a: GPUArray, b_fp8: GPUArray, b_scale: GPUArray, *, out: GPUArray | None = None) -> GPUArray:
    """matmul_fp8() of bfloat16 rows (m, k) and a weight (k, n) with scales (k/128, n/128): (m, n) of bfloat16, on every
    device. The weight may be uint8: the bits of float8_e4m3."""
    what = "w8a16_gemm_sm120"
    if check_array(a, f"{what}: a").dtype != bfloat16:
        raise DTypeError(f"{what}: a is {a.dtype}; it is bfloat16")
    return matmul_fp8(
        a, _weight(what, b_fp8), scale_b=check_array(b_scale, f"{what}: b_scale"), out_dtype=bfloat16, out=out
    )


def gemv_bf16(a: GPUArray, b: GPUArray, *, out: GPUArray | None = None) -> GPUArray:
    """matmul() of a bfloat16 vector (k,) and a weight (n, k): (n,) of bfloat16. Raises as matmul()."""
    what = "gemv_bf16"
    for name, array, axes in (("a", a, 1), ("b", b, 2)):
        if check_array(array, f"{what}: {name}").dtype != bfloat16 or array.ndim != axes:
            shape = "(k,)" if axes == 1 else "(n, k)"
            raise DTypeError(f"{what}: {name} is {array.dtype} of shape {array.shape}; it is bfloat16 {shape}")
    return matmul(a, b.T, out=out)


def grouped_gemm_fp8_bf16(
    a: GPUArray, b_stacked: GPUArray, b_scale: GPUArray, row_expert_ids: GPUArray, *, out: GPUArray | None = None
) -> GPUArray:
    """Each bfloat16 row of a (m, k) times the weight of its expert: (m, n) of bfloat16.

    b_stacked: (experts, n, k) of float8_e4m3, or its bits as uint8; b_scale: float32 (experts, n/128, k/128), rounded
    up; row_expert_ids: int32 or int64 (m,). A row of an expert that there is not gives 0. Weights become bfloat16 with
    their scales first, in a copy; rows are sorted by expert on the device, and gp.grouped_matmul multiplies. Raises
    ShapeError, DTypeError, DeviceMismatchError.
    """
    what = "grouped_gemm_fp8_bf16"
    rows, ids, scale = (
        check_array(array, f"{what}: {name}")
        for name, array in (("a", a), ("row_expert_ids", row_expert_ids), ("b_scale", b_scale))
    )
    weight = _weight(what, b_stacked)
    if rows.dtype != bfloat16 or scale.dtype != float32 or ids.dtype not in (int32, int64):
        raise DTypeError(
            f"{what}: a is {rows.dtype}, b_scale {scale.dtype}, row_expert_ids {ids.dtype}; they are bfloat16, "
            "float32, and int32 or int64"
        )
    experts, n, k = weight.shape if weight.ndim == 3 else (0, 0, 0)
    blocks = experts, -(-n // _BLOCK), -(-k // _BLOCK)
    if weight.ndim != 3 or rows.ndim != 2 or rows.shape[1] != k or scale.shape != blocks or ids.shape != rows.shape[:1]:
        raise ShapeError(
            f"{what}: a has shape {rows.shape}, b_stacked {weight.shape}, b_scale {scale.shape} and row_expert_ids "
            f"{ids.shape}; they are (m, k), (experts, n, k), (experts, n/128, k/128) and (m,)"
        )
    check_devices(what, rows, weight, scale, ids)
    result = factory.zeros((len(rows), n), bfloat16) if out is None else check_out(out, (len(rows), n), bfloat16, what)
    if result.size:
        known = elementwise.where((ids < 0) | (ids >= experts), experts, ids)
        order = sorting.argsort(known, stable=True)
        counts = reduce.sum(known[:, None] == factory.arange(experts, dtype=ids.dtype), axis=0)
        result[order] = grouped_matmul(rows[order], _widened(weight, scale).swapaxes(-1, -2), counts.astype(int32))
    return result


def fp8_get_sizes(K: int, N: int) -> tuple[int, int, int]:
    """Blocks of 128 of K and of N of a weight, and the bytes of their float32 scales."""
    down, across = (-(-_extent(extent, name) // _BLOCK) for extent, name in ((K, "K"), (N, "N")))
    return down, across, down * across * float32.itemsize


def fp8_fp8_get_scale_sizes(M: int, N: int, K: int) -> tuple[int, int]:
    """Scales for matmul_fp8(): of a (M, K), one for each 128 of a row, and of b (K, N), one for each block of
    128 by 128."""
    depth = -(-_extent(K, "K") // _BLOCK)
    return _extent(M, "M") * depth, depth * -(-_extent(N, "N") // _BLOCK)


def fp8_init_lut() -> None:
    """Does nothing: 8-bit floats are converted without a table, so that nothing has to be prepared."""


grouped_gemm_init_lut = w8a16_gemm_init_lut = gemm_w8a16_init_lut = fp8_init_lut
gemm_fp8_f32_sm90, gemm_fp8_f32_sm90_available = matmul_fp8_sm90, fp8_sm90_available
gemm_fp8_fp8_get_scale_sizes = fp8_fp8_get_scale_sizes
gemm_w8a16_bf16_sm120, gemv_bf16_bf16_sm120 = w8a16_gemm_sm120, gemv_bf16
gemv_fp8_bf16_sm120, gemv_fp8_bf16_batched_sm120 = gemv_fp8_bf16, gemv_fp8_bf16_batched
grouped_gemm_fp8_bf16_sm120 = grouped_gemm_fp8_bf16


def _rounded(x: GPUArray) -> tuple[GPUArray, GPUArray]:
    """A matrix in float8_e4m3, and what it was divided by."""
    largest = reduce.max(elementwise.abs(x)) / _LARGEST if x.size else factory.ones((), float32)
    scale = elementwise.where(largest == 0, 1.0, largest).astype(float32).reshape(1)
    return quantize(x, float8_e4m3, scale), scale


def _widened(weight: GPUArray, scale: GPUArray) -> GPUArray:
    """A stack of weights times the scales of their blocks, in bfloat16."""
    experts, n, k = weight.shape
    down, across = scale.shape[1:]
    full = padding.pad(weight.view(uint8), [(0, 0), (0, down * _BLOCK - n), (0, across * _BLOCK - k)])
    blocks = full.view(float8_e4m3).astype(bfloat16).reshape(experts, down, _BLOCK, across, _BLOCK)
    wide = elementwise.mul(blocks, scale[:, :, None, :, None]).astype(bfloat16)
    return wide.reshape(experts, down * _BLOCK, across * _BLOCK)[:, :n, :k]


def _weight(what: str, operand: GPUArray) -> GPUArray:
    """Of float8_e4m3, whose bits it may be."""
    weight = check_array(operand, f"{what}: the weight")
    if weight.dtype not in (float8_e4m3, uint8):
        raise DTypeError(f"{what}: the weight is {weight.dtype}; it is float8_e4m3, or its bits as uint8")
    return weight.view(float8_e4m3) if weight.dtype == uint8 else weight


def _extent(value: int, name: str) -> int:
    extent = whole(value, name, "a whole number from 0 on")
    if extent < 0:
        raise ShapeError(f"{name}={extent}; give a whole number from 0 on")
    return extent
