"""Activation functions that Kokoro's parts use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pygpukit.ops as ops

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray


def leaky_relu(x: GPUArray, negative_slope: float = 0.1) -> GPUArray:
    """x where it is positive, else x times the slope, which is between 0 and 1."""
    return ops.maximum(x, ops.mul(x, negative_slope))


def tanh(x: GPUArray) -> GPUArray:
    """The hyperbolic tangent of each element."""
    return ops.tanh(x)
