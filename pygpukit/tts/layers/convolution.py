"""Convolutions in one dimension, and weights that are stored as a length and a direction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pygpukit.ops as ops
from pygpukit.ops.nn.conv.tile import packed

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray


class Conv1d:
    """ops.conv1d() with its weights: x (B, in, L) gives (B, out, L')."""

    def __init__(
        self, weight: GPUArray, bias: GPUArray | None = None, stride: int = 1, padding: int = 0, dilation: int = 1
    ) -> None:
        self.weight, self.bias = packed(weight), bias
        self.stride, self.padding, self.dilation = stride, padding, dilation
        self.out_channels, self.in_channels, self.kernel_size = weight.shape

    def __call__(self, x: GPUArray) -> GPUArray:
        return ops.conv1d(x, self.weight, self.bias, self.stride, self.padding, dilation=self.dilation)


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
    """ops.conv_transpose1d() with its weights. weight: (in, out / groups, K)."""

    def __init__(
        self,
        weight: GPUArray,
        bias: GPUArray | None = None,
        stride: int = 1,
        padding: int = 0,
        output_padding: int = 0,
        groups: int = 1,
    ) -> None:
        self.weight, self.bias = packed(weight, transposed=True) if groups == 1 else weight, bias
        self.stride, self.padding, self.output_padding, self.groups = stride, padding, output_padding, groups
        self.in_channels, self.kernel_size = weight.shape[0], weight.shape[2]
        self.out_channels = weight.shape[1] * groups

    def __call__(self, x: GPUArray) -> GPUArray:
        return ops.conv_transpose1d(
            x,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            output_padding=self.output_padding,
            groups=self.groups,
        )
