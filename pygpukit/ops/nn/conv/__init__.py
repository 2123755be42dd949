"""Convolution in one and two dimensions, as neural networks mean it: cross-correlation, the kernel not flipped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from pygpukit.core.dtypes import float32
from pygpukit.core.errors import InvalidSpecError, ShapeError
from pygpukit.ops import plans
from pygpukit.ops.matmul import precision
from pygpukit.ops.nn.conv import choose
from pygpukit.ops.nn.conv.choose import ConvPlan
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
from pygpukit.ops.prepared import as_replaced, exchangeable, prepared

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.nn.conv.settings import Pair

    _Arguments: TypeAlias = "tuple[Pair, Pair, Pair, int, str | None, bool]"  # conv2d()'s, stride to channels_last

__all__ = ["conv1d", "conv2d", "conv_plan"]


@exchangeable
def conv1d(
    input: GPUArray,
    weight: GPUArray,
    bias: GPUArray | None = None,
    stride: int = 1,
    padding: int = 0,
    *,
    dilation: int = 1,
    groups: int = 1,
    act: str | None = None,
    channels_last: bool = False,
    tf32: bool | None = None,
    backend: str | None = None,
) -> GPUArray:
    """input (B, Cin, L), weight (Cout, Cin / groups, K), bias (Cout,) give (B, Cout, Lout).

    Lout = (L + 2 padding - dilation (K - 1) - 1) // stride + 1; the padding is zeros. All of one float type; float16
    and bfloat16 are summed in float32. input may have any strides. act: "relu", "gelu", "gelu_tanh", "silu", "sigmoid"
    or "tanh" of the results, in the kernel, before they are rounded. channels_last: input and result are (B, L, C), the
    weight as ever; the same bits. tf32: allows float32 to be rounded to tf32, on tensor cores. Asynchronous; the order
    of additions is fixed: an element's bits depend on what it sees, the channels, the types and the backend that
    conv_plan() names, not on the batch or the extents. backend="mma": by the kernels that need no other parts than
    NVRTC, whatever the plan says; they also run on the simulated device.
    Raises ShapeError, DTypeError, DeviceMismatchError, InvalidSpecError (stride, padding, dilation, groups or act),
    TypeError (channels_last), ValueError (backend), GPUError where the backend asked for does not take it.
    """
    settings = stride, padding, dilation, groups, act, channels_last
    return _convolve("conv1d", 1, input, weight, bias, settings, tf32, backend, plans.version())


@exchangeable
def conv2d(
    input: GPUArray,
    weight: GPUArray,
    bias: GPUArray | None = None,
    stride: Pair = 1,
    padding: Pair = 0,
    *,
    dilation: Pair = 1,
    groups: int = 1,
    act: str | None = None,
    channels_last: bool = False,
    tf32: bool | None = None,
    backend: str | None = None,
) -> GPUArray:
    """input (B, Cin, H, W), weight (Cout, Cin / groups, KH, KW), bias (Cout,) give (B, Cout, Hout, Wout).

    stride, padding and dilation: one int, or (rows, columns). channels_last: input and result are (B, H, W, C).
    groups = Cin is a depthwise convolution. Extents, types, backend and errors as conv1d().
    """
    settings = stride, padding, dilation, groups, act, channels_last
    return _convolve("conv2d", 2, input, weight, bias, settings, tf32, backend, plans.version())


def conv_plan(
    input: GPUArray,
    weight: GPUArray,
    stride: Pair = 1,
    padding: Pair = 0,
    *,
    dilation: Pair = 1,
    groups: int = 1,
    act: str | None = None,
    channels_last: bool = False,
    tf32: bool | None = None,
    backend: str | None = None,
) -> ConvPlan:
    """The plan of conv1d(), or of conv2d() where weight has rows, with these arguments: which kernel, and why.

    Launches nothing. Raises as they do.
    """
    check_arrays("conv_plan", input, weight, None)
    what, dimensions = ("conv2d", 2) if weight.ndim == 4 else ("conv1d", 1)
    said = precision.check(what, input.dtype, tf32, None)
    arguments = stride, padding, dilation, groups, act, channels_last
    input, weight, settings = _resolved(what, dimensions, input, weight, arguments)
    p = Problem.of(input, weight, settings, channels_last, precision.allowed(said))
    plan = choose.choose(p) if backend is None else choose.by_name("conv_plan", backend, p)
    if input.dtype == float32:
        plan = replace(plan, reason=f"{plan.reason}; {precision.reason(said)}")
    return as_replaced(plan, conv2d if dimensions == 2 else conv1d)


def _as_passed(what: str, array: GPUArray) -> tuple[int, ...]:
    """The shape without the rows that conv1d()'s arrays got."""
    return (*array.shape[:2], *array.shape[3:]) if what == "conv1d" else array.shape


def _extents(
    what: str, input: GPUArray, weight: GPUArray, settings: Sequence[tuple[int, int]], groups: int
) -> tuple[int, int]:
    """Rows and columns of the result; both arrays have rows."""
    channels, filters = input.shape[1], weight.shape[0]
    if groups < 1 or channels % groups or filters % groups:
        raise InvalidSpecError(
            f"{what}: groups is {groups}, must divide the {channels} input and the {filters} output channels", "groups"
        )
    if weight.shape[1] != channels // groups:
        raise ShapeError(
            f"{what}: weight of shape {_as_passed(what, weight)} takes {weight.shape[1]} input channels a group, "
            f"input of shape {_as_passed(what, input)} has {channels // groups} in each of {groups} groups"
        )
    extents = []
    for have, kernel, step, pad, apart in zip(input.shape[2:], weight.shape[2:], *settings, strict=True):
        room = have + 2 * pad - apart * (kernel - 1) - 1
        if room < 0 or kernel < 1:
            raise ShapeError(
                f"{what}: a kernel of {kernel} (dilation {apart}) does not fit an extent of {have} with padding {pad}"
            )
        extents.append(room // step + 1)
    return extents[0], extents[1]


def _resolved(
    what: str, dimensions: int, input: GPUArray, weight: GPUArray, arguments: _Arguments
) -> tuple[GPUArray, GPUArray, Settings]:
    """input as (B, C, rows, columns), weight with rows, and the settings that were given, checked."""
    stride, padding, dilation, groups, act, last = arguments
    named = (("stride", stride), ("padding", padding), ("dilation", dilation))
    steps, pads, apart = (pair(what, name, value, dimensions) for name, value in named)
    groups = check_others(what, groups, act, last)
    if input.ndim != dimensions + 2 or weight.ndim != dimensions + 2:
        raise ShapeError(
            f"{what}: input has shape {input.shape}, weight {weight.shape}; both must have {dimensions + 2} dimensions"
        )
    input, weight = with_rows(channels_first(input) if last else input), with_rows(weight)
    extents = _extents(what, input, weight, (steps, pads, apart), groups)
    return input, weight, Settings(groups, steps, pads, apart, extents, act)


@prepared
def _convolve(
    what: str,
    dimensions: int,
    input: GPUArray,
    weight: GPUArray,
    bias: GPUArray | None,
    arguments: _Arguments,
    tf32: bool | None,
    backend: str | None,
    tables: int,  # plans.version()
) -> GPUArray:
    check_arrays(what, input, weight, bias)
    said = precision.check(what, input.dtype, tf32, None)
    input, weight, settings = _resolved(what, dimensions, input, weight, arguments)
    bias = check_bias(what, bias, weight.shape[0])
    result, out = new_result(input.shape[0], weight.shape[0], settings, input.dtype, dimensions, arguments[-1])
    if not out.size:
        return result
    p = Problem.of(input, weight, settings, arguments[-1], precision.allowed(said))
    plan = choose.choose(p) if backend is None else choose.by_name(what, backend, p)
    plan.run(Call(what, input, weight, bias, out, result))
    return result
