"""Convolutions in one dimension, and weights that are stored as a length and a direction."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import pygpukit.ops as ops
from pygpukit._core import native
from pygpukit.array import factory
from pygpukit.core.backend import is_sim
from pygpukit.core.dtypes import DataType, float16, float32
from pygpukit.core.errors import ShapeError
from pygpukit.ops import copying, host
from pygpukit.ops.matmul import precision
from pygpukit.ops.nn.conv.fewer_products import MAX_TAPS, FewerProducts
from pygpukit.ops.nn.conv.tile import missing, packed

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray


_MAX_WEIGHTS = 1 << 17  # of a tap: what is made of them is kept, and is twice as large


def tensor_cores() -> bool:
    """True if there are tensor cores to use, and float32 may be rounded for them."""
    return not is_sim() and precision.allowed(True) and not missing()


class Conv1d:
    """ops.conv1d() with its weights: x (B, in, L) gives (B, out, L').

    core: the type, float16 or float32 (as tf32), that it is computed in where there are tensor cores; None for float32
    proper. There the result's channels are dense, and what comes in should be so, and of the type `takes`.
    """

    def __init__(
        self,
        weight: GPUArray,
        bias: GPUArray | None = None,
        stride: int = 1,
        padding: int = 0,
        dilation: int = 1,
        core: DataType | None = None,
    ) -> None:
        self.core = core if core is not None and tensor_cores() else None
        self.weight, self.bias = _held(weight, bias, self.core)
        self.stride, self.padding, self.dilation = stride, padding, dilation
        self.out_channels, self.in_channels, self.kernel_size = weight.shape
        small = self.out_channels * self.in_channels <= _MAX_WEIGHTS and 3 <= self.kernel_size <= MAX_TAPS
        self._fewer = core is not None and small and stride == 1  # on the host

    @property
    def takes(self) -> DataType:
        """The type of its input."""
        return self.core or float32

    def as_input(self, x: GPUArray) -> GPUArray:
        """x as this takes it; a copy where it is not so."""
        if self.core is None or (x.dtype == self.core and x.strides[1] == x.itemsize):
            return x
        return copying.astype(copying.contiguous(x.transpose(0, 2, 1)), self.core).transpose(0, 2, 1)

    def __call__(self, x: GPUArray) -> GPUArray:
        settings = self.weight, self.bias, self.stride, self.padding
        if self._fewer and host.computes() and x.dtype == float32 and x.shape[2]:
            return self._on_host(x)
        if self.core is None:
            return ops.conv1d(x, *settings, dilation=self.dilation)
        tf32 = self.core == float32 or None
        last = x.transpose(0, 2, 1)
        return ops.conv1d(last, *settings, dilation=self.dilation, channels_last=True, tf32=tf32).transpose(0, 2, 1)

    @cached_property
    def _ready(self) -> FewerProducts:
        return FewerProducts(host.memory(self.weight))

    def _on_host(self, x: GPUArray) -> GPUArray:
        """With fewer products: what allows tensor cores' rounding allows that of these, which is smaller."""
        length = x.shape[2] + 2 * self.padding - self.dilation * (self.kernel_size - 1)
        if length < 1:
            raise ShapeError(f"conv1d: {self.kernel_size} taps do not fit {x.shape[2]} places")
        out = native.empty((x.shape[0], self.out_channels, length), float32)

        def work() -> None:
            bias = None if self.bias is None else host.memory(self.bias)
            for source, target in zip(host.memory(x), host.memory(out), strict=True):
                self._ready(source, bias, self.padding, self.dilation, target)

        native.host_launch("conv1d", work, [x, self.weight, out, *(() if self.bias is None else (self.bias,))])
        return out


def _held(
    weight: GPUArray, bias: GPUArray | None, core: DataType | None, transposed: bool = False
) -> tuple[GPUArray, GPUArray | None]:
    if core == float16:
        weight, bias = (None if x is None else copying.astype(x, core) for x in (weight, bias))  # type: ignore[assignment]
    elif core == float32:
        weight = _nearest(weight)
    return packed(weight, transposed, core is not None or None), bias


def _nearest(weight: GPUArray) -> GPUArray:
    """The weight rounded to the nearest tf32: a kernel may cut the last bits off, and sums would all become smaller."""
    import numpy as np

    bits = np.ascontiguousarray(weight.to_numpy()).view(np.uint32)
    return factory.from_numpy(((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32))


class WeightNormConv1d(Conv1d):
    """Conv1d whose weight is g v / |v|, folded when it is made. weight_g: (out, 1, 1), weight_v: (out, in, K)."""

    def __init__(
        self,
        weight_g: GPUArray,
        weight_v: GPUArray,
        bias: GPUArray | None = None,
        stride: int = 1,
        padding: int = 0,
        dilation: int = 1,
    ) -> None:
        self.weight_g, self.weight_v = weight_g, weight_v
        length = ops.sqrt(ops.sum(ops.square(weight_v), axis=(1, 2), keepdims=True))
        super().__init__(ops.mul(weight_v, ops.div(weight_g, length)), bias, stride, padding, dilation)


class ConvTranspose1d:
    """ops.conv_transpose1d() with its weights. weight: (in, out / groups, K). core, takes: as Conv1d has them; one with
    groups is computed in float32."""

    def __init__(
        self,
        weight: GPUArray,
        bias: GPUArray | None = None,
        stride: int = 1,
        padding: int = 0,
        output_padding: int = 0,
        groups: int = 1,
        core: DataType | None = None,
    ) -> None:
        self.core = core if core is not None and groups == 1 and tensor_cores() else None
        self.weight, self.bias = _held(weight, bias, self.core, transposed=True) if groups == 1 else (weight, bias)
        self.stride, self.padding, self.output_padding, self.groups = stride, padding, output_padding, groups
        self.in_channels, self.kernel_size = weight.shape[0], weight.shape[2]
        self.out_channels = weight.shape[1] * groups

    @property
    def takes(self) -> DataType:
        """The type of its input."""
        return self.core or float32

    def __call__(self, x: GPUArray) -> GPUArray:
        last = self.core is not None
        y = ops.conv_transpose1d(
            x.transpose(0, 2, 1) if last else x,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            output_padding=self.output_padding,
            groups=self.groups,
            channels_last=last,
            tf32=self.core == float32 or None,
        )
        return y.transpose(0, 2, 1) if last else y
