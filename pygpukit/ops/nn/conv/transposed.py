"""Transposed convolution in one and two dimensions: what a strided convolution's gradient is, used to lengthen signals
and to enlarge images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from pygpukit.core.errors import InvalidSpecError, ShapeError
from pygpukit.ops import plans
from pygpukit.ops.matmul import precision
from pygpukit.ops.nn.conv import choose
from pygpukit.ops.nn.conv.problem import Call, Problem
from pygpukit.ops.nn.conv.settings import (
    Settings,
    channels_first,
    check_arrays,
    check_bias,
    check_others,
    new_result,
    pair,
    with_rows,
)
from pygpukit.ops.prepared import prepared

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.nn.conv.settings import Pair

    _Arguments: TypeAlias = "tuple[Pair, Pair, Pair, Pair, int, str | None, bool]"  # stride to channels_last

__all__ = ["conv_transpose1d", "conv_transpose2d"]

_SPACING = ("stride", "padding", "output_padding", "dilation")
_SHAPES = {1: "(B, Cin, L) and (Cin, Cout / groups, K)", 2: "(B, Cin, H, W) and (Cin, Cout / groups, KH, KW)"}


def conv_transpose1d(
    input: GPUArray,
    weight: GPUArray,
    bias: GPUArray | None = None,
    stride: int = 1,
    padding: int = 0,
    *,
    output_padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
    act: str | None = None,
    channels_last: bool = False,
    tf32: bool | None = None,
) -> GPUArray:
    """input (B, Cin, L), weight (Cin, Cout / groups, K), bias (Cout,) give (B, Cout, Lout).

    Lout = (L - 1) stride - 2 padding + dilation (K - 1) + output_padding + 1. All of one float type; float16 and
    bfloat16 are summed in float32. act, channels_last and tf32 as conv1d() has them, and its
    kernels, unless there is a dilation. Asynchronous; the order of additions is fixed.
    Raises ShapeError, DTypeError, DeviceMismatchError, InvalidSpecError (stride, padding, output_padding,
    dilation, groups or act), TypeError (channels_last).
    """
    arguments = stride, padding, output_padding, dilation, groups, act, channels_last
    return _convolve("conv_transpose1d", 1, input, weight, bias, arguments, tf32, plans.version())


def conv_transpose2d(
    input: GPUArray,
    weight: GPUArray,
    bias: GPUArray | None = None,
    stride: Pair = 1,
    padding: Pair = 0,
    *,
    output_padding: Pair = 0,
    dilation: Pair = 1,
    groups: int = 1,
    act: str | None = None,
    channels_last: bool = False,
    tf32: bool | None = None,
) -> GPUArray:
    """input (B, Cin, H, W), weight (Cin, Cout / groups, KH, KW), bias (Cout,) give (B, Cout, Hout, Wout).

    Settings: one int, or (rows, columns). Extents, types and errors as conv_transpose1d().
    """
    arguments = stride, padding, output_padding, dilation, groups, act, channels_last
    return _convolve("conv_transpose2d", 2, input, weight, bias, arguments, tf32, plans.version())


def _extents(
    what: str, input: GPUArray, weight: GPUArray, settings: Sequence[tuple[int, int]], groups: int
) -> tuple[int, int]:
    """Rows and columns of the result; both arrays have rows. settings: stride, padding, output padding, dilation."""
    if groups < 1 or input.shape[1] % groups:
        raise InvalidSpecError(f"{what}: groups is {groups}, must divide the {input.shape[1]} input channels", "groups")
    extents = []
    for have, kernel, step, pad, more, apart in zip(input.shape[2:], weight.shape[2:], *settings, strict=True):
        length = (have - 1) * step - 2 * pad + apart * (kernel - 1) + more + 1
        if length < 0 or not have:
            raise ShapeError(f"{what}: nothing is left of a length of {have} with padding {pad}")
        extents.append(length)
    return extents[0], extents[1]


@prepared
def _convolve(
    what: str,
    dimensions: int,
    input: GPUArray,
    weight: GPUArray,
    bias: GPUArray | None,
    arguments: _Arguments,
    tf32: bool | None,
    tables: int,  # plans.version()
) -> GPUArray:
    groups, act, last = arguments[4:]
    groups = check_others(what, groups, act, last)
    check_arrays(what, input, weight, bias)
    original = input
    input = channels_first(input) if last and input.ndim > 2 else input
    fits = input.ndim == weight.ndim == dimensions + 2 and weight.shape[0] == input.shape[1]
    if not fits or not all(weight.shape[2:]):
        shapes = _SHAPES[dimensions] + (", with Cin of the input last" if last else "")
        raise ShapeError(f"{what}: input has shape {original.shape} and weight {weight.shape}; they must be {shapes}")
    stride, padding, more, dilation = (
        pair(what, name, value, dimensions) for name, value in zip(_SPACING, arguments[:4], strict=True)
    )
    said = precision.check(what, input.dtype, tf32, None)
    input, weight = with_rows(input), with_rows(weight)
    extents = _extents(what, input, weight, (stride, padding, more, dilation), groups)
    filters = weight.shape[1] * groups
    bias = check_bias(what, bias, filters)
    settings = Settings(groups, stride, padding, dilation, extents, act, transposed=True)
    result, out = new_result(input.shape[0], filters, settings, input.dtype, dimensions, last)
    if not out.size:
        return result
    p = Problem.of(input, weight, settings, last, precision.allowed(said))
    choose.choose(p).run(Call(what, input, weight, bias, out, result))
    return result
