"""The package's own kernels in Triton: a program for each row, which is in registers whole."""

# Triton reads annotations: only what is known when a kernel is compiled has one.
# ruff: noqa: ANN001, ANN201
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False
from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def rmsnorm(x, weight, out, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < n
    value = tl.load(x + row * n + column, mask=inside, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(value * value, axis=0) / n + eps)
    factor = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + row * n + column, (value * scale * factor).to(out.dtype.element_ty), mask=inside)


@triton.jit
def layernorm(x, weight, bias, out, n, eps, SHIFTS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < n
    value = tl.load(x + row * n + column, mask=inside, other=0.0).to(tl.float32)
    centred = tl.where(inside, value - tl.sum(value, axis=0) / n, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(centred * centred, axis=0) / n + eps)
    result = centred * scale * tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
    if SHIFTS:
        result += tl.load(bias + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + row * n + column, result.to(out.dtype.element_ty), mask=inside)


@triton.jit
def softmax(x, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < n
    value = tl.load(x + row * n + column, mask=inside, other=float("-inf")).to(tl.float32)
    power = tl.exp(value - tl.max(value, axis=0))
    tl.store(out + row * n + column, (power / tl.sum(power, axis=0)).to(out.dtype.element_ty), mask=inside)


@triton.jit
def rotary(x, cos, sin, out, heads, positions, half, table, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    angle = (row // heads) % positions * table
    column = tl.arange(0, BLOCK)
    inside = column < half
    first = tl.load(x + row * 2 * half + column, mask=inside, other=0.0).to(tl.float32)
    second = tl.load(x + row * 2 * half + half + column, mask=inside, other=0.0).to(tl.float32)
    c = tl.load(cos + angle + column, mask=inside, other=0.0).to(tl.float32)
    s = tl.load(sin + angle + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + row * 2 * half + column, (first * c - second * s).to(out.dtype.element_ty), mask=inside)
    tl.store(out + row * 2 * half + half + column, (second * c + first * s).to(out.dtype.element_ty), mask=inside)
