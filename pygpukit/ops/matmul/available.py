"""Which documented kernels for 8-bit numbers there are; those for SM 10.0 and 12.0 are refused by name."""

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
    "gemm_fp8_available",
    "gemm_fp8_f32_sm100",
    "gemm_fp8_f32_sm100_available",
    "gemm_fp8_f32_sm120",
    "gemm_fp8_f32_sm120_available",
    "gemm_fp8_fp8_blockwise_sm120",
    "gemm_fp8_fp8_sm120",
    "gemm_fp8_fp8_sm120_available",
    "int8_native_gemm_available",
    "matmul_fp8_fp8_blockwise_sm120",
    "matmul_fp8_fp8_sm120",
    "matmul_fp8_sm100",
    "matmul_fp8_sm120",
]

_PORTABLE = "gp.matmul_fp8 computes the same products, as ops.matmul_fp8_plan says"


def fp8_available() -> bool:
    """True: gp.matmul_fp8 runs on every device; matmul_fp8_plan() says on which cores."""
    return True


def int8_native_gemm_available() -> bool:
    """True: gp.matmul_int8 runs on every device, with exact int32 sums."""
    return True


def _never() -> bool:
    """False on every device: this version has no such kernel."""
    return False


fp8_sm100_available = fp8_sm120_available = fp8_fp8_sm120_available = _never
gemm_fp8_f32_sm100_available = gemm_fp8_f32_sm120_available = gemm_fp8_fp8_sm120_available = _never
gemm_fp8_available = fp8_available


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


matmul_fp8_sm100 = _refused("matmul_fp8_sm100", "8-bit tcgen05 products", "10.0", _PORTABLE)
matmul_fp8_sm120 = _refused("matmul_fp8_sm120", "8-bit block-scaled products", "12.0", _PORTABLE)
matmul_fp8_fp8_sm120 = _refused("matmul_fp8_fp8_sm120", "8-bit block-scaled products", "12.0", _PORTABLE)
matmul_fp8_fp8_blockwise_sm120 = _refused(
    "matmul_fp8_fp8_blockwise_sm120", "8-bit block-scaled products", "12.0", _PORTABLE
)
gemm_fp8_f32_sm100, gemm_fp8_f32_sm120 = matmul_fp8_sm100, matmul_fp8_sm120
gemm_fp8_fp8_sm120, gemm_fp8_fp8_blockwise_sm120 = matmul_fp8_fp8_sm120, matmul_fp8_fp8_blockwise_sm120
