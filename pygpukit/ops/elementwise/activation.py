"""Activation functions of neural networks, element by element. Types, out= and errors as in ops/elementwise/math.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pygpukit.ops.elementwise import binary, binary_function, operations, unary, unary_function
from pygpukit.ops.operands import check_input

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["geglu", "gelu", "relu", "relu2", "sigmoid", "silu", "swiglu"]

sigmoid = unary_function(operations.SIGMOID, "1 / (1 + exp(-a)).")
silu = unary_function(operations.SILU, "a sigmoid(a).")
relu2 = unary_function(operations.RELU2, "max(a, 0) squared.")


def relu(a: GPUArray, *, out: GPUArray | None = None) -> GPUArray:
    """max(a, 0), in a's type; NaN stays NaN."""
    return binary(operations.MAXIMUM, check_input(a, "relu"), 0, out)


def gelu(a: GPUArray, *, approximate: Literal["none", "tanh"] = "none", out: GPUArray | None = None) -> GPUArray:
    """a times the normal distribution's probability below a.

    approximate: "none" for this definition, with erf; "tanh" for the form a/2 (1 + tanh(sqrt(2/pi) (a + 0.044715 a^3)))
    that some models were trained with. ValueError for anything else.
    """
    if approximate not in ("none", "tanh"):
        raise ValueError(f"gelu: approximate={approximate!r}; use 'none' or 'tanh'")
    return unary(operations.GELU if approximate == "none" else operations.GELU_TANH, a, out)


swiglu = binary_function(operations.SWIGLU, "silu(a) b: a is the gate, b what it lets through.")
geglu = binary_function(operations.GEGLU, "gelu(a) b: a is the gate, b what it lets through.")
