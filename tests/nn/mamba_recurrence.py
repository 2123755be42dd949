"""What a Mamba-2 layer computes between its products, in float64, one position at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pygpukit.nn.mamba.state_space import StateSpace

Array = np.ndarray[Any, Any]


def silu(x: Array) -> Array:
    """x / (1 + exp(-x))."""
    return np.asarray(x / (1 + np.exp(-x)))


def scanned(
    projected: Array,
    space: StateSpace,
    conv: Array,
    conv_bias: Array | None,
    step_bias: Array,
    rate_logs: Array,
    skip: Array,
    rounded: Callable[[Array], Array] = np.asarray,
) -> Array:
    """(positions, inner) of what the first product gives, (positions, z and x and B and C and dt). rounded: to the type
    of the layer, between convolution and scan."""
    heads, channels = len(rate_logs), len(conv)
    inner = channels - 2 * space.groups * space.state
    z, raw, steps = np.split(projected, [inner, inner + channels], axis=1)
    steps = np.clip(np.log1p(np.exp(steps + step_bias)), space.min_step, space.max_step)
    seen = np.concatenate([np.zeros((space.conv - 1, channels)), raw])
    state, result = np.zeros((heads, inner // heads, space.state)), np.empty((len(projected), inner))
    for t in range(len(projected)):
        row = rounded(silu((conv.T * seen[t : t + space.conv]).sum(axis=0) + (0 if conv_bias is None else conv_bias)))
        own = row[:inner].reshape(heads, -1)
        b, c = (
            part.repeat(heads // space.groups, axis=0) for part in row[inner:].reshape(2, space.groups, space.state)
        )
        state = state * np.exp(steps[t] * -np.exp(rate_logs))[:, None, None]
        state += np.einsum("h,hp,hn->hpn", steps[t], own, b)
        result[t] = (np.einsum("hpn,hn->hp", state, c) + skip[:, None] * own).reshape(inner)
    return np.asarray(result * silu(z))


def normed(rows: Array, weight: Array, groups: int, eps: float) -> Array:
    """Rows, each group of their elements divided by the root of its mean square, times the weight."""
    grouped = rows.reshape(len(rows), groups, -1)
    grouped = grouped / np.sqrt((grouped**2).mean(axis=-1, keepdims=True) + eps)
    return np.asarray(grouped.reshape(rows.shape) * weight)
