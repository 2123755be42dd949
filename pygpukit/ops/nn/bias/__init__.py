"""Bias: added in place to the rows of an array, and the linear layer with bias and GELU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.array import promotion
from pygpukit.core.errors import DTypeError, ShapeError
from pygpukit.ops import copying, elementwise, host
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.matmul.gemm import matmul
from pygpukit.ops.operands import check_array, check_devices

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["bias_add_inplace", "linear_bias_gelu"]

SOURCE = kernels.KernelSpec(__file__, "bias.cu")
_BLOCK = 256


def bias_add_inplace(output: GPUArray, bias: GPUArray) -> None:
    """output[..., :] += bias: output (..., F), bias (F,), in output's type.

    Raises ShapeError, DTypeError (bias of a type that output cannot take), DeviceMismatchError. Asynchronous; one
    addition an element, rounded once.
    """
    what = "bias_add_inplace"
    check_array(output, f"{what}: output")
    if check_array(bias, f"{what}: bias").ndim != 1 or not output.ndim or output.shape[-1:] != bias.shape:
        raise ShapeError(f"{what}: output has shape {output.shape} and bias {bias.shape}; bias must be (last extent,)")
    elementwise.add(output, bias, out=output)


def linear_bias_gelu(input: GPUArray, weight: GPUArray, bias: GPUArray) -> GPUArray:
    """gelu(input @ weight.T + bias): input (..., in), weight (out, in), bias (out,) give (..., out).

    All float16, bfloat16, float32 or float64, alike. GELU by tanh. The product is rounded to the type, bias and GELU
    are computed in float32 (float64 for it) and rounded once. Two launches, asynchronous; the same bits on every run.
    Raises ShapeError, DTypeError, DeviceMismatchError.
    """
    what = "linear_bias_gelu"
    arrays = [check_array(x, f"{what}: {n}") for n, x in (("input", input), ("weight", weight), ("bias", bias))]
    dtype = input.dtype
    if dtype not in promotion.FLOATS or any(x.dtype != dtype for x in arrays):
        raise DTypeError(
            f"{what}: input is {dtype}, weight {weight.dtype}, bias {bias.dtype}; they must be one float type"
        )
    if weight.ndim != 2 or not input.ndim or input.shape[-1] != weight.shape[1] or bias.shape != weight.shape[:1]:
        raise ShapeError(
            f"{what}: input has shape {input.shape}, weight {weight.shape} and bias {bias.shape}; "
            "they must be (..., in), (out, in) and (out,)"
        )
    check_devices(what, *arrays)
    result = matmul(input, weight.T)
    if not result.size:
        return result
    bias = copying.contiguous(bias)
    if host.computes():
        native.host_launch("bias_gelu", lambda: _on_host(result, bias), [result, bias])
        return result
    sizes = [size.to_bytes(8, "little") for size in (result.size, bias.size)]
    grid = (-(-result.size // _BLOCK), 1, 1)
    kernels.launch(SOURCE.of(f"pk::bias_gelu<{CTYPES[dtype.name]}>"), grid, (_BLOCK, 1, 1), result, bias, *sizes)
    return result


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that linear_bias_gelu() can ask for."""
    yield tuple(f"pk::bias_gelu<{CTYPES[dtype.name]}>" for dtype in promotion.FLOATS)


def _on_host(result: GPUArray, bias: GPUArray) -> None:
    import numpy as np

    values = host.values(result)
    values = values.astype(np.float64 if values.dtype == np.float64 else np.float32)
    with np.errstate(all="ignore"):
        x = values + host.values(bias).astype(values.dtype)
        inner = values.dtype.type(0.7978845608028654) * (x + values.dtype.type(0.044715) * x * x * x)
        host.store(result, values.dtype.type(0.5) * x * (1 + np.tanh(inner)))
