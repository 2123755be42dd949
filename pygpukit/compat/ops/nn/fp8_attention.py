"""Attention with fp8 scores, under its documented names: by its formula, on every device."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from pygpukit._core import native
from pygpukit.core.dtypes import float8_e4m3, float32
from pygpukit.core.errors import BackendUnavailableError
from pygpukit.ops.elementwise import abs as magnitude
from pygpukit.ops.elementwise import where
from pygpukit.ops.nn.attention import check, sdpa_causal
from pygpukit.ops.operands import check_out
from pygpukit.ops.reduce import max as largest_of

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

LOW_LEVEL = ["fa3_fp8_available", "get_sm_version", "sdpa_causal_fp8", "test_fp8_mma_direct"]
_LARGEST = 448.0  # of float8_e4m3


def get_sm_version() -> int:
    """The compute capability of the current device times ten: 90 for SM 9.0, which the simulated device stands for."""
    from pygpukit.core.device import get_device_capabilities

    return get_device_capabilities(native.current_device()).sm_version


def fa3_fp8_available() -> bool:
    """True: sdpa_causal_fp8() computes by its formula on every device. On none does it use fp8 tensor cores."""
    return True


def sdpa_causal_fp8(Q: GPUArray, K: GPUArray, V: GPUArray, out: GPUArray, scale: float = 0.0) -> None:
    """Causal attention into out, whose scores are of queries and keys rounded to fp8.

    Each head of Q and K is divided by its largest magnitude over 448, rounded to float8_e4m3 and multiplied again;
    scores, softmax and the sum over V are float32, so that this tells what fp8 scores change and is no faster than
    sdpa_causal(), whose shapes, scale and errors it has. out: of Q's shape and type. Asynchronous.
    """
    check("sdpa_causal_fp8", Q, K, V)
    check_out(out, Q.shape, Q.dtype, "sdpa_causal_fp8")
    out[...] = sdpa_causal(_rounded(Q), _rounded(K), V.astype(float32), scale).astype(out.dtype)


def _rounded(heads: GPUArray) -> GPUArray:
    """Heads, rounded to float8_e4m3 with a scale each, as float32."""
    values = heads.astype(float32)
    if not values.size:
        return values
    step = largest_of(magnitude(values), (-2, -1), keepdims=True) / _LARGEST
    step = where(step > 0, step, 1.0)
    return (values / step).astype(float8_e4m3).astype(float32) * step


def test_fp8_mma_direct() -> NoReturn:
    """Raises BackendUnavailableError: there is no fp8 attention kernel whose parts could be tried."""
    reason = "this version has no attention kernel for fp8 tensor cores"
    text = f"test_fp8_mma_direct: {reason}, on any device; sdpa_causal_fp8() computes by its formula"
    raise BackendUnavailableError(text, "fp8", reason)
