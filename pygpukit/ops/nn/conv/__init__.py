"""Convolution in one and two dimensions, as neural networks mean it: cross-correlation, the kernel not flipped."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.array import promotion
from pygpukit.core.errors import DTypeError, InvalidSpecError, ShapeError
from pygpukit.ops import copying, host
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.operands import check_array, check_devices, span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

    Pair: TypeAlias = "int | Sequence[int]"

__all__ = ["conv1d", "conv2d"]

SOURCE = kernels.KernelSpec(__file__, "conv.cu")
_CONVOLUTION = SOURCE.structure("Convolution")
_BLOCK = 256
_CHANNELS = 8  # conv.cu: kChannels
_SEEN = 1 << 19  # elements that a product on the host reads: they stay in the processor's cache


@dataclass(frozen=True)
class _Plan:
    """Extents as (rows, columns); one dimension has one row."""

    groups: int
    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]
    out: tuple[int, int]


def conv1d(
    input: GPUArray,
    weight: GPUArray,
    bias: GPUArray | None = None,
    stride: int = 1,
    padding: int = 0,
    *,
    dilation: int = 1,
    groups: int = 1,
) -> GPUArray:
    """input (B, Cin, L), weight (Cout, Cin / groups, K), bias (Cout,) give (B, Cout, Lout).

    Lout = (L + 2 padding - dilation (K - 1) - 1) // stride + 1; the padding is zeros. All of one float type; float16
    and bfloat16 are summed in float32. input may have any strides. Asynchronous; the order of additions is fixed.
    Raises ShapeError, DTypeError, DeviceMismatchError, InvalidSpecError (stride, padding, dilation or groups).
    """
    one = [_pair("conv1d", name, (value,), 1) for name, value in (("stride", stride), ("dilation", dilation))]
    pads = _pair("conv1d", "padding", (padding,), 0)
    _check("conv1d", input, weight, bias, 3)
    rows = [array[:, :, None] for array in (input, weight)]
    plan = _plan("conv1d", rows[0], rows[1], one[0], pads, one[1], groups)
    return _convolve("conv1d", rows[0], rows[1], bias, plan).reshape(input.shape[0], weight.shape[0], plan.out[1])


def conv2d(
    input: GPUArray,
    weight: GPUArray,
    bias: GPUArray | None = None,
    stride: Pair = 1,
    padding: Pair = 0,
    *,
    dilation: Pair = 1,
    groups: int = 1,
) -> GPUArray:
    """input (B, Cin, H, W), weight (Cout, Cin / groups, KH, KW), bias (Cout,) give (B, Cout, Hout, Wout).

    stride, padding and dilation: one int, or (rows, columns). Extents, types and errors as conv1d().
    """
    steps = [_pair("conv2d", name, value, 1) for name, value in (("stride", stride), ("dilation", dilation))]
    pads = _pair("conv2d", "padding", padding, 0)
    _check("conv2d", input, weight, bias, 4)
    plan = _plan("conv2d", input, weight, steps[0], pads, steps[1], groups)
    return _convolve("conv2d", input, weight, bias, plan)


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that the convolutions can ask for."""
    yield tuple(f"pk::convolve<{CTYPES[dtype.name]}>" for dtype in promotion.FLOATS)


def _pair(what: str, name: str, value: Pair, least: int) -> tuple[int, int]:
    """(rows, columns) of a setting; one dimension gives its columns only."""
    given = [operator.index(x) for x in (value if isinstance(value, Sequence) else (value, value))]
    if len(given) == 1:
        given = [least, *given]
    if len(given) != 2 or min(given) < least:
        shown = given[1] if isinstance(value, tuple) and len(value) == 1 else value
        raise InvalidSpecError(f"{what}: {name} is {shown}, must be {least} or more in each dimension", name)
    return given[0], given[1]


def _check(what: str, input: GPUArray, weight: GPUArray, bias: GPUArray | None, ndim: int) -> None:
    arrays = {"input": input, "weight": weight} | ({} if bias is None else {"bias": bias})
    for name, array in arrays.items():
        check_array(array, f"{what}: {name}")
    if input.dtype not in promotion.FLOATS or any(array.dtype != input.dtype for array in arrays.values()):
        types = ", ".join(f"{name} {array.dtype}" for name, array in arrays.items())
        raise DTypeError(f"{what}: the arrays must have one float type; they have {types}")
    if input.ndim != ndim or weight.ndim != ndim or (bias is not None and bias.shape != weight.shape[:1]):
        raise ShapeError(
            f"{what}: input has shape {input.shape}, weight {weight.shape}"
            f"{'' if bias is None else f', bias {bias.shape}'}; input and weight must have {ndim} dimensions, "
            "bias one element for each of weight's first"
        )
    check_devices(what, *arrays.values())


def _plan(
    what: str,
    input: GPUArray,
    weight: GPUArray,
    stride: tuple[int, int],
    padding: tuple[int, int],
    dilation: tuple[int, int],
    groups: int,
) -> _Plan:
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
    for have, kernel, step, pad, apart in zip(
        input.shape[2:], weight.shape[2:], stride, padding, dilation, strict=True
    ):
        room = have + 2 * pad - apart * (kernel - 1) - 1
        if room < 0 or kernel < 1:
            raise ShapeError(
                f"{what}: a kernel of {kernel} (dilation {apart}) does not fit an extent of {have} with padding {pad}"
            )
        extents.append(room // step + 1)
    return _Plan(groups, stride, padding, dilation, (extents[0], extents[1]))


def _convolve(what: str, input: GPUArray, weight: GPUArray, bias: GPUArray | None, plan: _Plan) -> GPUArray:
    out = native.empty((input.shape[0], weight.shape[0], *plan.out), input.dtype)
    if not out.size:
        return out
    weight = copying.contiguous(weight)
    bias = bias if bias is None else copying.contiguous(bias)
    if host.computes():
        arrays = [input, weight, out, *(() if bias is None else (bias,))]
        native.host_launch(what, lambda: _on_host(input, weight, bias, out, plan), arrays)
        return out
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
        has_bias=bias is not None,
    )
    blocks = -(-positions // _BLOCK) * -(-out_channels // _CHANNELS) * plan.groups
    kernels.launch(
        SOURCE.of(f"pk::convolve<{CTYPES[out.dtype.name]}>"),
        (blocks, 1, 1),
        (_BLOCK, 1, 1),
        storage,
        weight,
        weight if bias is None else bias,
        out,
        packed,
    )
    return out


def _on_host(input: GPUArray, weight: GPUArray, bias: GPUArray | None, out: GPUArray, plan: _Plan) -> None:
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
        host.store(out, flat if bias is None else flat + host.values(bias).astype(wide)[:, None, None])


def _windows(x: Any, kernel: Sequence[int], plan: _Plan) -> Any:
    """A view of padded images: (images, groups, channels of a group, kernel rows, kernel columns, rows, columns)."""
    import numpy as np

    batch, channel, row, column = x.strides
    channels = x.shape[1] // plan.groups
    shape = (x.shape[0], plan.groups, channels, *kernel, *plan.out)
    taps = (row * plan.dilation[0], column * plan.dilation[1])
    steps = (row * plan.stride[0], column * plan.stride[1])
    return np.lib.stride_tricks.as_strided(x, shape, (batch, channel * channels, channel, *taps, *steps))
