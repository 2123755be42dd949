"""Linear layers: a product with a weight, and what comes after it, by one kernel where it can."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Literal, get_args

from pygpukit._core import native
from pygpukit.array import promotion
from pygpukit.core.errors import DTypeError, ShapeError
from pygpukit.ops import copying
from pygpukit.ops.matmul.choose import choose
from pygpukit.ops.matmul.epilogue import quantise
from pygpukit.ops.matmul.epilogue.epilogue import Epilogue
from pygpukit.ops.matmul.gemm import matmul
from pygpukit.ops.matmul.problem import Problem, family
from pygpukit.ops.operands import check_array, check_devices
from pygpukit.ops.prepared import prepared

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DTypeLike

__all__ = ["batched_matmul", "linear", "linear_bias_gelu"]

Activation = Literal["relu", "gelu", "gelu_tanh", "silu", "swiglu"]  # of those that activation.cuh has
ACTIVATIONS = (None, *get_args(Activation))


@prepared
def linear(
    x: GPUArray,
    w: GPUArray,
    bias: GPUArray | None = None,
    act: Activation | None = None,
    residual: GPUArray | None = None,
    *,
    out_dtype: DTypeLike | None = None,
    out_scale: GPUArray | float | None = None,
) -> GPUArray:
    """act(x @ w.T + bias) + residual: x (..., in), w (out, in), bias (out,), residual (..., out) give (..., out).

    All float16, bfloat16, float32 or float64, alike. act: "relu", "gelu" (by erf), "gelu_tanh", "silu"; "swiglu" is
    silu of the first half of the columns times the second half, and gives (..., out / 2). Everything is computed in
    float32 (float64 for it): in one launch and rounded once where matmul_plan() says "plain"; on tensor cores from the
    rounded product, in the launch that makes it where it says "hopper", rows are whole 16 bytes and residual is dense,
    else in another one, with the same bits. out_dtype, out_scale: what the rounded result is converted to, as in
    matmul(): in that launch where rows of this type are whole 16 bytes, too, and act is not "swiglu". Asynchronous; a
    row's bits depend on no other row. Raises ShapeError, DTypeError, ValueError for an unknown act,
    DeviceMismatchError.
    """
    asked = None
    if out_dtype is not None or out_scale is not None:
        asked = quantise.conversion("linear", check_array(x, "linear: x").dtype, (), out_dtype, out_scale)
    return _linear("linear", x, w, bias, act, residual, asked)


@prepared
def linear_bias_gelu(input: GPUArray, weight: GPUArray, bias: GPUArray) -> GPUArray:
    """linear(input, weight, bias, act="gelu_tanh")."""
    return _linear("linear_bias_gelu", input, weight, check_array(bias, "linear_bias_gelu: bias"), "gelu_tanh", None)


@prepared
def batched_matmul(a: GPUArray, b: GPUArray, *, out: GPUArray | None = None) -> GPUArray:
    """Products of two stacks of as many matrices: (B, m, k) @ (B, k, n), or with two batch axes.

    matmul() without broadcasting: views with any strides between matrices are read in place, and all is one launch.
    Raises ShapeError for other shapes, and as matmul().
    """
    what = "batched_matmul"
    a, b = check_array(a, f"{what}: a"), check_array(b, f"{what}: b")
    if a.ndim not in (3, 4) or b.shape[:-2] != a.shape[:-2] or a.ndim != b.ndim:
        raise ShapeError(
            f"{what}: shapes {a.shape} and {b.shape}: their one or two batch axes must be the same; matmul() broadcasts"
        )
    return matmul(a, b, out=out)


def _linear(
    what: str,
    x: GPUArray,
    w: GPUArray,
    bias: GPUArray | None,
    act: str | None,
    residual: GPUArray | None,
    conversion: quantise.Conversion | None = None,
) -> GPUArray:
    operands = {"x": x, "w": w, "bias": bias, "residual": residual}
    arrays = {name: check_array(array, f"{what}: {name}") for name, array in operands.items() if array is not None}
    dtype = x.dtype
    if dtype not in promotion.FLOATS or any(array.dtype != dtype for array in arrays.values()):
        kinds = ", ".join(f"{name} is {array.dtype}" for name, array in arrays.items())
        raise DTypeError(f"{what}: {kinds}; they must be one float type")
    if not (act is None or isinstance(act, str)) or act not in ACTIVATIONS:
        raise ValueError(f"{what}: act={act!r}; it is one of {', '.join(map(repr, ACTIVATIONS))}")
    if w.ndim != 2 or not x.ndim or x.shape[-1] != w.shape[1] or (bias is not None and bias.shape != w.shape[:1]):
        shapes = ", ".join(f"{name} has shape {array.shape}" for name, array in arrays.items())
        raise ShapeError(f"{what}: {shapes}; x, w and bias must be (..., in), (out, in) and (out,)")
    if act == "swiglu" and w.shape[0] % 2:
        raise ShapeError(f"{what}: act='swiglu' halves the {w.shape[0]} rows of w, which must be even in number")
    columns = w.shape[0] // 2 if act == "swiglu" else w.shape[0]
    shape, rows = (*x.shape[:-1], columns), prod(x.shape[:-1])
    if residual is not None and residual.shape != shape:
        raise ShapeError(f"{what}: residual has shape {residual.shape}, the result {shape}")
    check_devices(what, *arrays.values())
    result = native.empty((rows, columns), dtype if conversion is None else conversion.dtype)
    if result.size:
        epilogue = Epilogue(
            bias=None if bias is None else copying.contiguous(bias),
            act=act,
            residual=None if residual is None else residual.reshape(rows, columns),
            conversion=conversion,
        )
        left, right = x.reshape(rows, x.shape[-1]), w.T
        choose(Problem.of(family(dtype, dtype, False), left, right, dtype, epilogue=epilogue)).run(
            left, right, result, epilogue
        )
    return result.reshape(shape)
