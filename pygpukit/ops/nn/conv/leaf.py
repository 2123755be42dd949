"""Convolution and transposed convolution on the simulated device, by NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.ops import copying, host
from pygpukit.ops.nn.conv.problem import Call, Problem

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.nn.conv.settings import Settings

_SEEN = 1 << 19  # elements that a product on the host reads: they stay in the processor's cache


def run(p: Problem, call: Call) -> None:
    """Fill the result."""
    weight = copying.contiguous(call.weight)
    arrays = [call.input, weight, call.out, *(() if call.bias is None else (call.bias,))]
    fill = spread if p.settings.transposed else convolve
    native.host_launch(call.name, lambda: fill(call.input, weight, call.bias, call.out, p.settings), arrays)


def convolve(input: GPUArray, weight: GPUArray, bias: GPUArray | None, out: GPUArray, settings: Settings) -> None:
    """Matrix products of the weights with what they see, written out; a part of the positions at a time."""
    import numpy as np

    from pygpukit.ops.elementwise.host_functions import activated

    wide = np.float64 if input.dtype == "float64" else np.float32
    pads = [(0, 0), (0, 0), *((pad, pad) for pad in settings.padding)]
    x = host.values(input).astype(wide, copy=False)
    x = np.pad(x, pads) if any(settings.padding) else x
    w = host.values(weight).astype(wide, copy=False)
    w = w.reshape(settings.groups, w.shape[0] // settings.groups, -1)
    seen = _windows(x, weight.shape[2:], settings)
    total = np.empty((x.shape[0], settings.groups, w.shape[1], *settings.out), wide)
    axis = 5 if settings.out[0] > 1 else 6  # of the windows: rows of the result, or its only row's columns
    line = w.shape[2] * settings.groups * (settings.out[1] if axis == 5 else 1)
    step = max(1, _SEEN // max(1, line))
    with np.errstate(all="ignore"):
        for image in range(x.shape[0]):
            for start in range(0, settings.out[axis - 5], step):
                some, every = slice(start, start + step), slice(None)
                part = (..., some, every) if axis == 5 else (..., some)
                columns = np.ascontiguousarray(seen[image][part])
                places = columns.shape[-2:]
                result = np.matmul(w, columns.reshape(settings.groups, w.shape[2], places[0] * places[1]))
                total[image][part] = result.reshape(*result.shape[:2], *places)
        flat = total.reshape(out.shape)
        shifted = flat if bias is None else flat + host.values(bias).astype(wide)[:, None, None]
        host.store(out, activated(shifted, settings.act))


def _windows(x: Any, kernel: Sequence[int], settings: Settings) -> Any:
    """A view of padded images: (images, groups, channels of a group, kernel rows, kernel columns, rows, columns)."""
    import numpy as np

    batch, channel, row, column = x.strides
    channels = x.shape[1] // settings.groups
    shape = (x.shape[0], settings.groups, channels, *kernel, *settings.out)
    taps = (row * settings.dilation[0], column * settings.dilation[1])
    steps = (row * settings.stride[0], column * settings.stride[1])
    return np.lib.stride_tricks.as_strided(x, shape, (batch, channel * channels, channel, *taps, *steps))


def spread(input: GPUArray, weight: GPUArray, bias: GPUArray | None, out: GPUArray, settings: Settings) -> None:
    """The transposed convolution: one matrix product, whose results are added at each kernel position's places."""
    import numpy as np

    from pygpukit.ops.elementwise.host_functions import activated

    wide = np.float64 if input.dtype == "float64" else np.float32
    batch, channels, *image = input.shape
    filters, taps = weight.shape[1] * settings.groups, weight.shape[2:]
    x = np.ascontiguousarray(host.values(input)).astype(wide, copy=False)
    x = x.reshape(batch, settings.groups, channels // settings.groups, image[0] * image[1])
    w = (
        host.values(weight)
        .astype(wide, copy=False)
        .reshape(settings.groups, channels // settings.groups, filters // settings.groups * taps[0] * taps[1])
    )
    with np.errstate(all="ignore"):
        parts = np.matmul(np.ascontiguousarray(w.transpose(0, 2, 1)), x).reshape(batch, filters, *taps, *image)
        axes = list(zip(image, settings.stride, settings.dilation, taps, settings.padding, settings.out, strict=True))
        reach = [(have - 1) * step + 1 for have, step, *_ in axes]
        room = [
            max(far + apart * (count - 1), pad + length)
            for far, (_, _, apart, count, pad, length) in zip(reach, axes, strict=True)
        ]
        total = np.zeros((batch, filters, *room), wide)
        for tap in np.ndindex(*taps):
            rows, columns = (
                slice(at * apart, at * apart + far, step)
                for at, far, (_, step, apart, *_) in zip(tap, reach, axes, strict=True)
            )
            total[:, :, rows, columns] += parts[:, :, tap[0], tap[1]]
        (top, left), (rows_out, columns_out) = settings.padding, settings.out
        total = total[:, :, top : top + rows_out, left : left + columns_out]
        shifted = total if bias is None else total + host.values(bias).astype(wide)[:, None, None]
        host.store(out, activated(shifted, settings.act))
