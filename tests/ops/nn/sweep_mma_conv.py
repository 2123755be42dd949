"""Convolutions by mma.sync: each block by itself, with strides, padding, dilation, groups and edges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from convolved import convolve
from sweep.engine import Call, Family, numbers

import pygpukit as gp
from pygpukit.core.dtypes import as_dtype
from pygpukit.ops.matmul.mma.block import Block
from pygpukit.ops.nn.conv import mma
from pygpukit.ops.nn.conv.layout import by_group, dense, put_back, readable, with_dense_channels
from pygpukit.ops.nn.conv.settings import Settings

Values = np.ndarray[Any, Any]
_TYPES = {"half_t": "float16", "bfloat16_t": "bfloat16", "float": "float32"}


def _variant(expression: str) -> str:
    kind, *sizes = expression.replace("pk::", "").split("<")[1].split(", ")
    return f"{_TYPES[kind]} {'x'.join(sizes[:3])}"


def _tf32(x: Values) -> Values:
    """Rounded as the kernel does it, middles away from zero."""
    rounded = x.astype(np.float32).view(np.int32) + 0x1000 & ~0x1FFF
    return rounded.view(np.float32).astype(np.float64)


def _calls(variant: str) -> Iterator[Call]:
    dtype, size = variant.split()
    (block,) = (one for one in mma.blocks(as_dtype(dtype).itemsize) if str(one) == size)
    round_ = _tf32 if dtype == "float32" else (lambda x: x)
    deep = block.depth * (block.stages - 1) + 8  # stages come round
    for shape, weight, settings in (
        ((1, 2 * 24, 9, 13), (2 * 20, 24, 3, 2), Settings(2, (1, 2), (2, 1), (2, 1), (9, 7), "relu")),
        ((1, deep, 2, block.rows // 2 + 3), (block.columns + 3, deep, 1, 1), Settings(1, (1, 1), (0, 0), (1, 1),
                                                                                     (2, block.rows // 2 + 3), "silu")),
        ((3, 16, 1, 50), (16, 16, 1, 7), Settings(1, (1, 1), (0, 9), (1, 3), (1, 50), None)),
    ):  # fmt: skip
        yield _call(dtype, block, shape, weight, settings, round_)


def _call(
    dtype: str, block: Block, shape: tuple[int, ...], weight: tuple[int, ...], settings: Settings, round_: Any
) -> Call:
    def convolution(x: gp.GPUArray, w: gp.GPUArray, bias: gp.GPUArray) -> gp.GPUArray:
        out = gp.full((shape[0], *settings.out, weight[0]), float("nan"), dtype)
        seen = out.transpose(0, 3, 1, 2)
        storage, whole = with_dense_channels(seen, out, settings.groups)
        taken = dense(by_group(w, settings.groups, False))
        mma.convolve(readable(x, settings.groups, (0, 0), (0, 0)), taken, bias, whole, storage, settings, block)
        put_back(whole, seen, settings.groups)
        return seen

    def reference(x: Values, w: Values, bias: Values) -> Values:
        given = settings.stride, settings.padding, settings.dilation, settings.groups
        shifted = convolve(round_(x), round_(w), *given) + bias[:, None, None]
        if settings.act == "silu":
            return shifted / (1 + np.exp(-shifted))
        return np.maximum(shifted, 0) if settings.act == "relu" else shifted

    return Call(convolution, (numbers(dtype, *shape), numbers(dtype, *weight), numbers(dtype, weight[0])), reference)


FAMILIES = (Family("gathered by mma", (mma.SOURCE.source,), _variant, _calls),)
