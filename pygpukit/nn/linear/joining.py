"""Weights that are multiplied with the same rows, joined into one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pygpukit.array import factory
from pygpukit.nn.linear.blocks import Blocks, below, values_of
from pygpukit.nn.linear.layer import LinearBF16
from pygpukit.ops.shape.joining import concatenate

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray


def joined(weights: Sequence[LinearBF16 | GPUArray | Blocks | None], biases: Sequence[GPUArray | None]) -> LinearBF16:
    """One Linear with the rows of all weights, one below the other; a bias that is missing beside others is zero.

    A weight that is None is part of the one before (it came joined).
    """
    parts = [
        w if isinstance(w, LinearBF16) else LinearBF16(w, b)
        for w, b in zip(weights, biases, strict=True)
        if w is not None
    ]
    if len(parts) == 1:
        return parts[0]
    blocks = [part.weight for part in parts if isinstance(part.weight, Blocks)]
    weight = below(blocks) if len(blocks) == len(parts) else concatenate([values_of(part.weight) for part in parts])
    if all(part.bias is None for part in parts):
        return LinearBF16(weight)
    full = [part.bias if part.bias is not None else factory.zeros(part.out_features, weight.dtype) for part in parts]
    return LinearBF16(weight, concatenate(full))


def part(linear: LinearBF16, first: int, end: int) -> LinearBF16:
    """Rows first to end - 1 of a Linear: views of its memory."""
    bias = linear.bias
    return LinearBF16(linear.weight[first:end], None if bias is None else bias[first:end])
