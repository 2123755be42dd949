"""A product that is added to the residual stream, after a norm of its own where an architecture has one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.nn.linear.layer import LinearBF16
from pygpukit.nn.norm import Norm
from pygpukit.ops.elementwise import add

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray


def add_product(x: GPUArray, linear: LinearBF16, y: GPUArray, start: int | None, post_norm: Norm | None = None) -> None:
    """x += linear(y), or x += post_norm(linear(y)): x float32 (R, out), y (R, in). start: Batch.start."""
    decodes = start is None
    if post_norm is None:
        linear.project(y, x, start, epilogue="add", overlaps=decodes)
        return
    out = native.empty(x.shape, linear.weight.dtype)
    linear.project(y, out, start, overlaps=decodes)
    add(x, post_norm(out), out=x)
