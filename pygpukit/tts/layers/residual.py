"""Residual blocks that follow a style: of the prosody and the decoder, and of the generator."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import TYPE_CHECKING

import pygpukit.ops as ops
from pygpukit.ops import copying
from pygpukit.ops.nn.spans import Spans
from pygpukit.tts.layers import style_last
from pygpukit.tts.layers.adapt import Activation
from pygpukit.tts.layers.convolution import Conv1d, ConvTranspose1d
from pygpukit.tts.layers.layout import silenced
from pygpukit.tts.layers.merge import merge
from pygpukit.tts.layers.style import AdaIN, Style

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

_LEAKY = Activation(slope=0.2)


class AdaINResBlock:
    """(conv2(act(norm2(conv1(act(norm1(x)))))) + shortcut) / sqrt(2).

    pool: a transposed convolution that doubles the length, before conv1; the shortcut then repeats each position.
    conv1x1: the shortcut's, where the channels change.
    """

    def __init__(
        self,
        conv1: Conv1d,
        conv2: Conv1d,
        norm1: AdaIN,
        norm2: AdaIN,
        conv1x1: Conv1d | None = None,
        pool: ConvTranspose1d | None = None,
    ) -> None:
        self.conv1, self.conv2, self.norm1, self.norm2 = conv1, conv2, norm1, norm2
        self.conv1x1, self.pool = conv1x1, pool

    def __call__(self, x: GPUArray, style: Style, spans: Spans | None = None, doubled: Spans | None = None) -> GPUArray:
        """x (B, C, L), style (B, S). spans: of x (1, C, L) with several sentences, which have a style each; doubled: of
        the result, where there is a pool."""
        if self.pool is None:
            inner = self.norm1(x, style, act=_LEAKY, spans=spans, dtype=self.conv1.takes)
        else:
            spans, inner = doubled, self.norm1(x, style, act=_LEAKY, spans=spans)
            inner = self.conv1.as_input(silenced(self.pool(copying.contiguous(inner)), spans))
            x = _doubled(x)
        inner = self.conv2(self.norm2(self.conv1(inner), style, act=_LEAKY, spans=spans, dtype=self.conv2.takes))
        x = x if self.conv1x1 is None else self.conv1x1(self.conv1x1.as_input(x))
        return merge([inner, x], 1 / sqrt(2))


def _doubled(x: GPUArray) -> GPUArray:
    """x with each place twice, in its layout."""
    if not style_last.has(x):
        return ops.repeat(x, 2, axis=2)
    return ops.repeat(x.transpose(0, 2, 1), 2, axis=1).transpose(0, 2, 1)


class SnakeResBlock:
    """x += conv2(snake(norm2(conv1(snake(norm1(x)))))), once for each dilation."""

    def __init__(self, steps: Sequence[tuple[AdaIN, GPUArray, Conv1d, AdaIN, GPUArray, Conv1d]]) -> None:
        """steps: norm1, its snake's alpha (C,), conv1, norm2, alpha, conv2."""
        self.steps = list(steps)

    def __call__(self, x: GPUArray, style: Style, spans: Spans | None = None) -> tuple[GPUArray, GPUArray]:
        """Two arrays whose sum is the result. x (B, C, L), style (B, S); or x (1, C, L) with the sentences of these
        spans and a style each."""
        more: GPUArray | None = None
        for norm1, alpha1, conv1, norm2, alpha2, conv2 in self.steps:
            inner, x = norm1.of_sum(x, more, style, act=Activation(alpha=alpha1), spans=spans, dtype=conv1.takes)
            act = Activation(alpha=alpha2)
            more = conv2(norm2(conv1(inner), style, act=act, spans=spans, dtype=conv2.takes))
        assert more is not None
        return x, more
