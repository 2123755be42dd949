"""Convolution in one and two dimensions, as neural networks mean it: cross-correlation, the kernel not flipped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.array import promotion
from pygpukit.core.errors import InvalidSpecError, ShapeError
from pygpukit.ops import copying, host
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.nn.conv.plan import (
    ACTIVATIONS,
    Plan,
    activated,
    channels_first,
    check_act,
    check_arrays,
    check_bias,
    made,
    pair,
    with_rows,
)
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.nn.conv.plan import Pair

__all__ = ["conv1d", "conv2d"]

SOURCE = kernels.KernelSpec(__file__, "conv.cu")
_CONVOLUTION = SOURCE.structure("Convolution")
_BLOCK = 256
_CHANNELS = 8  # conv.cu: kChannels
_TILE = 64, 128  # conv.cu: kTileChannels, kTilePositions
_LEAST = 16  # channels of a group that are worth a tile
_SEEN = 1 << 19  # elements that a product on the host reads: they stay in the processor's cache


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
) -> GPUArray:
    """input (B, Cin, L), weight (Cout, Cin / groups, K), bias (Cout,) give (B, Cout, Lout).

    Lout = (L + 2 padding - dilation (K - 1) - 1) // stride + 1; the padding is zeros. All of one float type; float16
    and bfloat16 are summed in float32. input may have any strides. act: "relu", "silu", "gelu", "sigmoid" or "tanh" of
    the results, in the kernel, before they are rounded. channels_last: input and result are (B, L, C), the weight as
    ever; the same bits. Asynchronous; the order of additions is fixed.
    Raises ShapeError, DTypeError, DeviceMismatchError, InvalidSpecError (stride, padding, dilation, groups or act).
    """
    return _convolve("conv1d", 1, input, weight, bias, stride, padding, dilation, groups, act, channels_last)


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
) -> GPUArray:
    """input (B, Cin, H, W), weight (Cout, Cin / groups, KH, KW), bias (Cout,) give (B, Cout, Hout, Wout).

    stride, padding and dilation: one int, or (rows, columns). channels_last: input and result are (B, H, W, C).
    groups = Cin is a depthwise convolution. Extents, types and errors as conv1d().
    """
    return _convolve("conv2d", 2, input, weight, bias, stride, padding, dilation, groups, act, channels_last)


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that the convolutions can ask for."""
    for name in ("convolve", "convolve_tiles"):
        yield tuple(f"pk::{name}<{CTYPES[dtype.name]}>" for dtype in promotion.FLOATS)


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
            f"{what}: weight of shape {weight.shape} takes {weight.shape[1]} input channels a group, "
            f"input of shape {input.shape} has {channels // groups} in each of {groups} groups"
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


def _convolve(
    what: str,
    dimensions: int,
    input: GPUArray,
    weight: GPUArray,
    bias: GPUArray | None,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    groups: int,
    act: str | None,
    last: bool,
) -> GPUArray:
    named = (("stride", stride), ("padding", padding), ("dilation", dilation))
    settings = [pair(what, name, value, dimensions) for name, value in named]
    check_act(what, act)
    check_arrays(what, input, weight, bias)
    if input.ndim != dimensions + 2 or weight.ndim != dimensions + 2:
        raise ShapeError(
            f"{what}: input has shape {input.shape}, weight {weight.shape}; both must have {dimensions + 2} dimensions"
        )
    bias = check_bias(what, bias, weight.shape[0])
    input, weight = with_rows(channels_first(input) if last else input), with_rows(weight)
    extents = _extents(what, input, weight, settings, groups)
    steps, pads, apart = settings
    plan = Plan(groups, steps, pads, apart, extents, act)
    given, out = made(input.shape[0], weight.shape[0], plan, input.dtype, dimensions, last)
    if not out.size:
        return given
    weight = copying.contiguous(weight)
    if host.computes():
        arrays = [input, weight, out, *(() if bias is None else (bias,))]
        native.host_launch(what, lambda: _on_host(input, weight, bias, out, plan), arrays)
    else:
        _on_device(input, weight, bias, out, plan, given)
    return given


def _on_device(
    input: GPUArray, weight: GPUArray, bias: GPUArray | None, out: GPUArray, plan: Plan, dense: GPUArray
) -> None:
    """dense: the storage of out."""
    storage, start = span(input)
    out_channels = weight.shape[0] // plan.groups
    positions = out.shape[0] * plan.out[0] * plan.out[1]
    packed = _CONVOLUTION.pack(
        groups=plan.groups,
        in_channels=weight.shape[1],
        out_channels=out_channels,
        positions=positions,
        image=input.shape[2:],
        result=plan.out,
        kernel=weight.shape[2:],
        stride=plan.stride,
        padding=plan.padding,
        dilation=plan.dilation,
        start=start,
        step=[step // input.itemsize for step in input.strides],
        out_step=[step // out.itemsize for step in out.strides],
        has_bias=bias is not None,
        act=ACTIVATIONS[plan.act],
    )
    tiled = out_channels >= _LEAST
    channels, places = _TILE if tiled else (_CHANNELS, _BLOCK)
    blocks = -(-positions // places) * -(-out_channels // channels) * plan.groups
    kernels.launch(
        SOURCE.of(f"pk::{'convolve_tiles' if tiled else 'convolve'}<{CTYPES[out.dtype.name]}>"),
        (blocks, 1, 1),
        (_BLOCK, 1, 1),
        *(storage, weight, weight if bias is None else bias, dense, packed),
    )


def _on_host(input: GPUArray, weight: GPUArray, bias: GPUArray | None, out: GPUArray, plan: Plan) -> None:
    """Matrix products of the weights with what they see, written out; a part of the positions at a time."""
    import numpy as np

    wide = np.float64 if input.dtype == "float64" else np.float32
    pads = [(0, 0), (0, 0), *((pad, pad) for pad in plan.padding)]
    x = host.values(input).astype(wide, copy=False)
    x = np.pad(x, pads) if any(plan.padding) else x
    w = host.values(weight).astype(wide, copy=False)
    w = w.reshape(plan.groups, w.shape[0] // plan.groups, -1)
    seen = _windows(x, weight.shape[2:], plan)
    total = np.empty((x.shape[0], plan.groups, w.shape[1], *plan.out), wide)
    axis = 5 if plan.out[0] > 1 else 6  # of the windows: rows of the result, or its only row's columns
    line = w.shape[2] * plan.groups * (plan.out[1] if axis == 5 else 1)
    step = max(1, _SEEN // max(1, line))
    with np.errstate(all="ignore"):
        for image in range(x.shape[0]):
            for start in range(0, plan.out[axis - 5], step):
                some, every = slice(start, start + step), slice(None)
                part = (..., some, every) if axis == 5 else (..., some)
                columns = np.ascontiguousarray(seen[image][part])
                places = columns.shape[-2:]
                result = np.matmul(w, columns.reshape(plan.groups, w.shape[2], places[0] * places[1]))
                total[image][part] = result.reshape(*result.shape[:2], *places)
        flat = total.reshape(out.shape)
        shifted = flat if bias is None else flat + host.values(bias).astype(wide)[:, None, None]
        host.store(out, activated(shifted, plan.act))


def _windows(x: Any, kernel: Sequence[int], plan: Plan) -> Any:
    """A view of padded images: (images, groups, channels of a group, kernel rows, kernel columns, rows, columns)."""
    import numpy as np

    batch, channel, row, column = x.strides
    channels = x.shape[1] // plan.groups
    shape = (x.shape[0], plan.groups, channels, *kernel, *plan.out)
    taps = (row * plan.dilation[0], column * plan.dilation[1])
    steps = (row * plan.stride[0], column * plan.stride[1])
    return np.lib.stride_tricks.as_strided(x, shape, (batch, channel * channels, channel, *taps, *steps))
