"""Transposed convolution in one dimension: what a strided convolution's gradient is, used to lengthen a signal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.array import promotion
from pygpukit.core.errors import DTypeError, InvalidSpecError, ShapeError
from pygpukit.ops import copying, host
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.operands import check_array, check_devices

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["conv_transpose1d"]

SOURCE = kernels.KernelSpec(__file__, "transposed.cu")
_CONVOLUTION = SOURCE.structure("TransposedConvolution")
_BLOCK = 256
_CHANNELS = 8  # transposed.cu: kChannels


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
) -> GPUArray:
    """input (B, Cin, L), weight (Cin, Cout / groups, K), bias (Cout,) give (B, Cout, Lout).

    Lout = (L - 1) stride - 2 padding + dilation (K - 1) + output_padding + 1. All of one float type; float16 and
    bfloat16 are summed in float32. Asynchronous; the order of additions is fixed. Raises ShapeError, DTypeError,
    DeviceMismatchError, InvalidSpecError (stride, padding, output_padding, dilation or groups).
    """
    settings = {"stride": stride, "padding": padding, "output_padding": output_padding, "dilation": dilation}
    length = _check(input, weight, bias, settings, groups)
    filters = weight.shape[1] * groups
    out = native.empty((input.shape[0], filters, length), input.dtype)
    if not out.size:
        return out
    input, weight = copying.contiguous(input), copying.contiguous(weight)
    bias = bias if bias is None else copying.contiguous(bias)
    if host.computes():
        arrays = [input, weight, out, *(() if bias is None else (bias,))]
        native.host_launch("conv_transpose1d", lambda: _on_host(input, weight, bias, out, settings, groups), arrays)
        return out
    positions = out.shape[0] * length
    packed = _CONVOLUTION.pack(
        groups=groups,
        in_channels=input.shape[1] // groups,
        out_channels=weight.shape[1],
        positions=positions,
        length=input.shape[2],
        result=length,
        kernel=weight.shape[2],
        stride=stride,
        padding=padding,
        dilation=dilation,
        has_bias=bias is not None,
    )
    kernels.launch(
        SOURCE.of(f"pk::convolve_transposed<{CTYPES[out.dtype.name]}>"),
        (-(-positions // _BLOCK) * -(-weight.shape[1] // _CHANNELS) * groups, 1, 1),
        (_BLOCK, 1, 1),
        *(input, weight, weight if bias is None else bias, out, packed),
    )
    return out


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that the transposed convolution can ask for."""
    yield tuple(f"pk::convolve_transposed<{CTYPES[dtype.name]}>" for dtype in promotion.FLOATS)


def _check(input: GPUArray, weight: GPUArray, bias: GPUArray | None, settings: dict[str, int], groups: int) -> int:
    """The length of the result."""
    what = "conv_transpose1d"
    arrays = {"input": input, "weight": weight} | ({} if bias is None else {"bias": bias})
    for name, array in arrays.items():
        check_array(array, f"{what}: {name}")
    if input.dtype not in promotion.FLOATS or any(array.dtype != input.dtype for array in arrays.values()):
        types = ", ".join(f"{name} {array.dtype}" for name, array in arrays.items())
        raise DTypeError(f"{what}: the arrays must have one float type; they have {types}")
    if input.ndim != 3 or weight.ndim != 3 or weight.shape[0] != input.shape[1] or not weight.shape[2]:
        raise ShapeError(
            f"{what}: input has shape {input.shape} and weight {weight.shape}; they must be (B, Cin, L) and "
            "(Cin, Cout / groups, K)"
        )
    for name, value in settings.items():
        least = 1 if name in ("stride", "dilation") else 0
        if value < least:
            raise InvalidSpecError(f"{what}: {name} is {value}, must be {least} or more", name)
    if groups < 1 or input.shape[1] % groups:
        raise InvalidSpecError(f"{what}: groups is {groups}, must divide the {input.shape[1]} input channels", "groups")
    if bias is not None and bias.shape != (weight.shape[1] * groups,):
        raise ShapeError(f"{what}: bias has shape {bias.shape}, must be {(weight.shape[1] * groups,)}")
    check_devices(what, *arrays.values())
    span = settings["dilation"] * (weight.shape[2] - 1) + settings["output_padding"] + 1
    length = (input.shape[2] - 1) * settings["stride"] - 2 * settings["padding"] + span
    if length < 0 or not input.shape[2]:
        raise ShapeError(f"{what}: nothing is left of a length of {input.shape[2]} with padding {settings['padding']}")
    return length


def _on_host(
    input: GPUArray, weight: GPUArray, bias: GPUArray | None, out: GPUArray, settings: dict[str, int], groups: int
) -> None:
    """One matrix product, whose rows are added at each kernel position's places."""
    import numpy as np

    wide = np.float64 if input.dtype == "float64" else np.float32
    stride, dilation, padding = settings["stride"], settings["dilation"], settings["padding"]
    batch, channels, length = input.shape
    filters, taps = weight.shape[1:]
    x = host.values(input).astype(wide, copy=False).reshape(batch, groups, channels // groups, length)
    w = host.values(weight).astype(wide, copy=False).reshape(groups, channels // groups, filters * taps)
    with np.errstate(all="ignore"):
        parts = np.matmul(np.ascontiguousarray(w.transpose(0, 2, 1)), x).reshape(batch, -1, taps, length)
        reach = (length - 1) * stride + 1
        total = np.zeros((batch, groups * filters, max(reach + dilation * (taps - 1), padding + out.shape[2])), wide)
        for tap in range(taps):
            total[:, :, tap * dilation : tap * dilation + reach : stride] += parts[:, :, tap]
        total = total[:, :, padding : padding + out.shape[2]]
        host.store(out, total if bias is None else total + host.values(bias).astype(wide)[:, None])
