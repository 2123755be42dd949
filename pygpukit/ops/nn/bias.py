"""Bias, added in place to the rows of an array."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygpukit.core.errors import ShapeError
from pygpukit.ops import elementwise
from pygpukit.ops.operands import check_array

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["bias_add_inplace"]


def bias_add_inplace(output: GPUArray, bias: GPUArray) -> None:
    """output[..., :] += bias: output (..., F), bias (F,), in output's type.

    Raises ShapeError, DTypeError (bias of a type that output cannot take), DeviceMismatchError. Asynchronous; one
    addition an element, rounded once.
    """
    what = "bias_add_inplace"
    check_array(output, f"{what}: output")
    if check_array(bias, f"{what}: bias").ndim != 1 or not output.ndim or output.shape[-1:] != bias.shape:
        raise ShapeError(f"{what}: output has shape {output.shape} and bias {bias.shape}; bias must be (last extent,)")
    elementwise.add(output, bias, out=output)
