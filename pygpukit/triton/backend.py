"""The backend "triton": operations by the kernels in Triton, which gp.plugins.replace("triton") puts in place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.array.layout import normalize_axis
from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.extras import install_command
from pygpukit.ops.copying import contiguous, copy_to
from pygpukit.ops.shape import moveaxis
from pygpukit.plugins.operation import Backend, Operation
from pygpukit.triton import kernels
from pygpukit.triton.available import triton_available

if TYPE_CHECKING:
    from collections.abc import Callable

    from pygpukit.array.array import GPUArray

# Sums in another order than the built-in kernels', and Triton's interpreter cuts bfloat16 off where devices round.
_BOUND = 0.008


def rmsnorm(input: GPUArray, gamma: GPUArray | None, eps: float = 1e-5, *, out: GPUArray | None = None) -> GPUArray:
    """gp.rmsnorm() by kernels.rmsnorm(), with a weight."""
    weight = _weight("rmsnorm", gamma)
    return _written(input, out, lambda x, result: kernels.rmsnorm(x, weight, result, eps))


def layernorm(
    input: GPUArray,
    gamma: GPUArray | None,
    beta: GPUArray | None,
    eps: float = 1e-5,
    *,
    out: GPUArray | None = None,
) -> GPUArray:
    """gp.layernorm() by kernels.layernorm(), with a weight."""
    weight, bias = _weight("layernorm", gamma), None if beta is None else contiguous(beta)
    return _written(input, out, lambda x, result: kernels.layernorm(x, weight, result, bias, eps))


def softmax(input: GPUArray, axis: int = -1, *, out: GPUArray | None = None) -> GPUArray:
    """gp.softmax() by kernels.softmax(); another axis than the last is moved there and back."""
    if normalize_axis(axis, input.ndim, "softmax") == input.ndim - 1:
        return _written(input, out, kernels.softmax)
    result = moveaxis(_written(moveaxis(input, axis, -1), None, kernels.softmax), -1, axis)
    if out is None:
        return result
    copy_to(result, out)
    return out


def available() -> str:
    """The reason why the kernels cannot be had; "" where they can."""
    return "" if triton_available() else f"Triton is not installed: {install_command('triton')}"


BACKEND = Backend(
    (
        Operation("rmsnorm", rmsnorm, _BOUND),
        Operation("layernorm", layernorm, _BOUND),
        Operation("softmax", softmax, _BOUND),
    ),
    available,
)


def _weight(what: str, gamma: GPUArray | None) -> GPUArray:
    if gamma is None:
        raise InvalidSpecError(f"{what} by Triton needs a weight; give ones", "gamma")
    return contiguous(gamma)


def _written(x: GPUArray, out: GPUArray | None, kernel: Callable[[GPUArray, GPUArray], None]) -> GPUArray:
    """The kernel's result for x: out, where it is given."""
    result = out if out is not None and out.is_contiguous() and out.dtype == x.dtype else native.empty(x.shape, x.dtype)
    kernel(contiguous(x), result)
    if out is None or result is out:
        return result
    copy_to(result, out)
    return out
