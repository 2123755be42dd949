"""Normalisation whose scale and shift follow from a style: along time (AdaIN) or across channels (AdaLayerNorm)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, TypeAlias

import pygpukit.ops as ops
from pygpukit.core.dtypes import DataType, float32
from pygpukit.nn.linear.layer import Linear
from pygpukit.ops.nn.spans import Spans
from pygpukit.tts.layers.adapt import NONE, Activation, adapt

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

Style: TypeAlias = "GPUArray | Styled"


class InstanceNorm1d:
    """Each channel of each item normalised over time: x (B, C, L). gamma, beta: (C,), or (B, C), or None."""

    def __init__(self, gamma: GPUArray | None, beta: GPUArray | None, eps: float = 1e-5) -> None:
        self.gamma, self.beta, self.eps = gamma, beta, eps

    @property
    def num_features(self) -> int | None:
        """Channels; None without weights."""
        return None if self.gamma is None else self.gamma.shape[-1]

    def __call__(self, x: GPUArray) -> GPUArray:
        return adapt(x, self.gamma, self.beta, self.eps)[0]


class AdaIN:
    """(1 + gamma) n + beta, n being x normalised over time; gamma and beta are a linear function of the style.

    fc_weight: (2 C, style), the rows of gamma first; fc_bias: (2 C,).
    """

    def __init__(self, fc_weight: GPUArray, fc_bias: GPUArray) -> None:
        self.fc_weight, self.fc_bias = fc_weight, fc_bias
        self.num_features = fc_weight.shape[0] // 2
        self._fc = Linear(fc_weight, fc_bias)

    def __call__(
        self,
        x: GPUArray,
        style: Style,
        eps: float = 1e-5,
        *,
        act: Activation = NONE,
        spans: Spans | None = None,
        dtype: DataType = float32,
    ) -> GPUArray:
        """x (B, C, L), style (B, S); or x (1, C, L) with the sentences of these spans and a style each. act, dtype: of
        the result."""
        return self.of_sum(x, None, style, eps, act=act, spans=spans, dtype=dtype)[0]

    def of_sum(
        self,
        x: GPUArray,
        other: GPUArray | None,
        style: Style,
        eps: float = 1e-5,
        *,
        act: Activation = NONE,
        spans: Spans | None = None,
        dtype: DataType = float32,
    ) -> tuple[GPUArray, GPUArray]:
        """That of x + other, and x + other; other may be None."""
        both, half = style.of(self) if isinstance(style, Styled) else self._fc(style), self.num_features
        weights = both[:, :half], both[:, half:]
        return adapt(x, *weights, eps, other=other, plus_one=True, act=act, spans=spans, dtype=dtype)


class Styled:
    """A style, of each sentence, and what many norms make of it, by one product."""

    def __init__(self, style: GPUArray, together: Linear, places: Mapping[AdaIN, int]) -> None:
        self._both, self._places = together(style), places

    def of(self, norm: AdaIN) -> GPUArray:
        """Scales, then shifts, (B, 2 C)."""
        start = self._places[norm]
        return self._both[:, start : start + 2 * norm.num_features]


class Styles:
    """Makes Styled of a style (B, S), for these norms."""

    def __init__(self, norms: Sequence[AdaIN]) -> None:
        weights, biases = [norm.fc_weight for norm in norms], [norm.fc_bias for norm in norms]
        self._together = Linear(ops.concatenate(weights), ops.concatenate(biases))
        starts = accumulate((2 * norm.num_features for norm in norms), initial=0)
        self._places = dict(zip(norms, starts, strict=False))

    def __call__(self, style: GPUArray) -> Styled:
        return Styled(style, self._together, self._places)


class AdaLayerNorm:
    """(1 + gamma) n + beta, n being x (B, T, C) normalised across channels; gamma and beta as AdaIN has them."""

    def __init__(self, fc: Linear, eps: float = 1e-5) -> None:
        self._fc, self._eps = fc, eps

    def __call__(self, x: GPUArray, style: GPUArray) -> GPUArray:
        scale, shift = scale_and_shift(self._fc, style)
        normal = ops.layernorm(x, None, None, self._eps)
        return ops.add(ops.mul(normal, scale[:, None]), shift[:, None])


def scale_and_shift(fc: Linear, style: GPUArray) -> tuple[GPUArray, GPUArray]:
    """1 + gamma and beta, (B, C) each."""
    both = fc(style)
    half = both.shape[1] // 2
    return ops.add(both[:, :half], 1.0), both[:, half:]
