"""Attention with fp8 scores, under its documented names: what says whether there is one, and refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from pygpukit._core import native
from pygpukit.core.errors import BackendUnavailableError

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

LOW_LEVEL = ["fa3_fp8_available", "get_sm_version", "sdpa_causal_fp8", "test_fp8_mma_direct"]


def get_sm_version() -> int:
    """The compute capability of the current device times ten: 90 for SM 9.0, which the simulated device stands for."""
    from pygpukit.core.device import get_device_capabilities

    return get_device_capabilities(native.current_device()).sm_version


def fa3_fp8_available() -> bool:
    """True where sdpa_causal_fp8() runs here: it does on no device yet."""
    return False


def sdpa_causal_fp8(Q: GPUArray, K: GPUArray, V: GPUArray, out: GPUArray, scale: float = 0.0) -> NoReturn:
    """sdpa_causal() into out with scores from fp8. Raises BackendUnavailableError: there is no such kernel yet."""
    raise _refusal("sdpa_causal_fp8", "use sdpa_causal(Q, K, V, scale, out=out), which computes in float32")


def test_fp8_mma_direct() -> NoReturn:
    """Raises BackendUnavailableError: there is no fp8 attention kernel whose parts could be tried."""
    raise _refusal("test_fp8_mma_direct", "ask fa3_fp8_available()")


def _refusal(what: str, remedy: str) -> BackendUnavailableError:
    reason = "this version has no attention kernel for fp8 tensor cores"
    return BackendUnavailableError(f"{what}: {reason}, on any device; {remedy}", "fp8", reason)
