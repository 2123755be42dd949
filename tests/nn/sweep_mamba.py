"""The kernels of Mamba-2: convolution, scan of prompts and of steps, and the norm of groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from mamba_recurrence import normed, scanned
from sweep.engine import Call, Family, numbers

import pygpukit as gp
from pygpukit.nn.batch import Batch, Span
from pygpukit.nn.config import TransformerConfig
from pygpukit.nn.linear.layer import LinearBF16
from pygpukit.nn.mamba import device
from pygpukit.nn.mamba.cache import StateCache
from pygpukit.nn.mamba.mixer import Mamba2
from pygpukit.nn.mamba.state_space import StateSpace
from pygpukit.nn.norm import Norm

Array = np.ndarray[Any, Any]
_HEADS, _DIM, _SPACE, _ROWS = 2, 8, StateSpace(5, 2, 4), 69
_INNER = _HEADS * _DIM
_CHANNELS = _SPACE.channels(_INNER)
_WIDTH = _INNER + _CHANNELS + _HEADS


def _integers(*values: int) -> gp.GPUArray:
    return gp.from_numpy(np.array(values, np.int32))


def _layer(dtype: str, arrays: tuple[gp.GPUArray, ...]) -> Mamba2:
    conv, conv_bias, step_bias, rate_logs, skip, weight = arrays
    config = TransformerConfig(hidden_size=16, num_heads=_HEADS, _head_dim=_DIM, num_layers=1, state_space=_SPACE)
    first, last = LinearBF16(gp.zeros((_WIDTH, 16), dtype)), LinearBF16(gp.zeros((16, _INNER), dtype))
    return Mamba2(config, _SPACE, first, conv, conv_bias, step_bias, rate_logs, skip, Norm(weight, eps=1e-5), last)


def _scan(dtype: str) -> Call:
    """Of one sequence: a part that ends in a chunk, one that begins there and ends in the next, and steps."""

    def scan(projected: gp.GPUArray, *arrays: gp.GPUArray) -> gp.GPUArray:
        layer, out = _layer(dtype, arrays), gp.full((_ROWS, _INNER), 7.0, "float32")
        cache = StateCache(layer.config, _SPACE, 2, dtype, "t").layers[0]
        for begin, end in ((0, 40), (40, 66), (66, 67), (67, 68), (68, 69)):
            places, slots = _integers(*range(begin, end)), _integers(*[1] * (end - begin))
            spans = (Span(0, end - begin, begin),) if begin < 66 else ()
            device.scan(layer, Batch(places, places, slots, spans), cache, projected[begin:end], out[begin:end])
        return out.astype(dtype)  # a step rounds rows between convolution and scan, too

    def reference(projected: Array, *arrays: Array) -> Array:
        def rounded(row: Array) -> Array:
            return np.asarray(gp.from_numpy(row).astype(dtype).astype("float64").to_numpy())

        conv, conv_bias, step_bias, rate_logs, skip, _ = arrays
        return scanned(projected, _SPACE, conv, conv_bias, step_bias, rate_logs, skip, rounded)

    return Call(scan, (numbers(dtype, _ROWS, _WIDTH), *_weights(dtype)), reference)


def _norm(dtype: str) -> Call:
    def norm(rows: gp.GPUArray, *arrays: gp.GPUArray) -> gp.GPUArray:
        out = gp.full(rows.shape, 7.0, dtype)
        device.norm_groups(_layer(dtype, arrays), rows, out)
        return out

    def reference(rows: Array, *arrays: Array) -> Array:
        return normed(rows, arrays[5], _SPACE.groups, 1e-5)

    return Call(norm, (numbers("float32", 3, _INNER), *_weights(dtype)), reference)


def _weights(dtype: str) -> tuple[gp.GPUArray, ...]:
    """The convolution and its bias, the steps' bias, the logarithms of the rates, D, and the norm's weight."""
    conv = numbers(dtype, _CHANNELS, _SPACE.conv)
    heads = numbers(dtype, _HEADS), numbers("float32", _HEADS), numbers(dtype, _HEADS)
    return conv, numbers(dtype, _CHANNELS), *heads, numbers(dtype, _INNER, low=0.5, high=1.5)


def _calls(_: str) -> Iterator[Call]:
    for dtype in ("float32", "float16", "bfloat16"):
        yield _scan(dtype)
        yield _norm(dtype)


FAMILIES = (Family("mamba", (device.SOURCE.source, device.STEP.source, device.CHUNKS.source), lambda _: "all", _calls),)
