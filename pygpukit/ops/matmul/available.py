"""Which documented kernels for 8-bit and 4-bit numbers there are; those of tensor cores are refused by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from pygpukit._core import native
from pygpukit.core.errors import GPUError

LOW_LEVEL = [
    "fp8_available",
    "fp8_fp8_sm120_available",
    "fp8_sm100_available",
    "fp8_sm120_available",
    "fp8_sm90_available",
    "gemv_nvf4_available",
    "gemv_nvf4_bf16",
    "int8_native_gemm_available",
    "matmul_fp8_fp8_blockwise_sm120",
    "matmul_fp8_fp8_sm120",
    "matmul_fp8_sm100",
    "matmul_fp8_sm120",
    "matmul_fp8_sm90",
    "matmul_mxfp4",
    "matmul_nvf4_bf16_sm120",
    "matmul_w4a4",
    "nvf4_bf16_sm120_available",
    "quantize_bf16_to_nvf4",
    "w8a16_gemm_sm120",
]

_PORTABLE = "gp.matmul_fp8 computes the same products, as ops.matmul_fp8_plan says"
_FOUR_BITS = "convert the operands to float8_e4m3 for gp.matmul_fp8, or to bfloat16"


def fp8_available() -> bool:
    """True: gp.matmul_fp8 runs on every device; matmul_fp8_plan() says on which cores."""
    return True


def int8_native_gemm_available() -> bool:
    """True: gp.matmul_int8 runs on every device, with exact int32 sums."""
    return True


def _never() -> bool:
    """False on every device: this version has no such kernel."""
    return False


fp8_sm90_available = fp8_sm100_available = fp8_sm120_available = fp8_fp8_sm120_available = _never
nvf4_bf16_sm120_available = gemv_nvf4_available = _never


def _refused(name: str, what: str, versions: str, instead: str) -> Callable[..., NoReturn]:
    """A function that says why it cannot be called."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        info = native.device_info(native.current_device())
        here = f"{info['compute_major']}.{info['compute_minor']}"
        raise GPUError(
            f"{name}: {what} are instructions of SM {versions}; this device is SM {here}, and this version "
            f"has no kernel of that name; {instead}"
        )

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"Raises GPUError: {what} need SM {versions}; this version has no kernel of that name."
    return refuse


matmul_fp8_sm90 = _refused("matmul_fp8_sm90", "8-bit wgmma products", "9.0", _PORTABLE)
matmul_fp8_sm100 = _refused("matmul_fp8_sm100", "8-bit tcgen05 products", "10.0", _PORTABLE)
matmul_fp8_sm120 = _refused("matmul_fp8_sm120", "8-bit block-scaled products", "12.0", _PORTABLE)
matmul_fp8_fp8_sm120 = _refused("matmul_fp8_fp8_sm120", "8-bit block-scaled products", "12.0", _PORTABLE)
matmul_fp8_fp8_blockwise_sm120 = _refused(
    "matmul_fp8_fp8_blockwise_sm120", "8-bit block-scaled products", "12.0", _PORTABLE
)
w8a16_gemm_sm120 = _refused("w8a16_gemm_sm120", "8-bit block-scaled products", "12.0", _PORTABLE)
matmul_nvf4_bf16_sm120 = _refused("matmul_nvf4_bf16_sm120", "NVF4 products", "10.0 and 12.0", _FOUR_BITS)
gemv_nvf4_bf16 = _refused("gemv_nvf4_bf16", "NVF4 products", "10.0 and 12.0", _FOUR_BITS)
quantize_bf16_to_nvf4 = _refused("quantize_bf16_to_nvf4", "NVF4 conversions", "10.0 and 12.0", _FOUR_BITS)
matmul_mxfp4 = _refused("matmul_mxfp4", "MXFP4 products", "10.0 and 12.0", _FOUR_BITS)
matmul_w4a4 = _refused("matmul_w4a4", "products of two 4-bit operands", "10.0 and 12.0", _FOUR_BITS)
