"""The prosody predictor: how long each phoneme lasts, how high and how loud the voice is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pygpukit.ops as ops
from pygpukit.ops.nn.spans import Spans
from pygpukit.tts.layers.layout import Layout
from pygpukit.tts.layers.lstm import LSTM
from pygpukit.tts.layers.style import AdaLayerNorm, Style
from pygpukit.tts.layers.text import over_tokens
from pygpukit.tts.parts import Part

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray


class ProsodyPredictor:
    """Durations from phonemes; fundamental frequency and energy from frames."""

    def __init__(self, part: Part) -> None:
        encoder = part.of("text_encoder.lstms")
        self._encoder: list[tuple[LSTM, AdaLayerNorm]] = []
        while encoder.has(f"{2 * len(self._encoder)}.weight_ih_l0"):
            first = 2 * len(self._encoder)
            self._encoder.append((encoder.lstm(str(first)), AdaLayerNorm(encoder.linear(f"{first + 1}.fc"))))
        self._lstm, self._duration = part.lstm("lstm"), part.linear("duration_proj.linear_layer")
        self._shared = part.lstm("shared")
        self._curves = tuple(
            ([part.residual(f"{name}.{i}", rounded=True) for i in range(3)], part.conv(f"{name}_proj"))
            for name in ("F0", "N")
        )

    def encode(self, x: GPUArray, style: GPUArray, spans: Spans | None = None) -> GPUArray:
        """Phonemes x (B, T, 512) and style (B, S) as (B, T, 512 + S). spans: as the text encoder has them."""
        repeated = ops.broadcast_to(style[:, None], (*x.shape[:2], style.shape[1]))
        x = ops.concatenate([x, repeated], axis=2)
        for lstm, norm in self._encoder:
            x = ops.concatenate([norm(over_tokens(lstm, x, spans), style), repeated], axis=2)
        return x

    def durations(self, encoded: GPUArray, spans: Spans | None = None) -> GPUArray:
        """Frames of each phoneme, (B, T), not rounded, at speed 1."""
        return ops.sum(ops.sigmoid(self._duration(over_tokens(self._lstm, encoded, spans))), axis=2)

    def curves(self, frames: GPUArray, style: Style, layout: Layout | None = None) -> tuple[GPUArray, GPUArray]:
        """Fundamental frequency in Hz and energy, (B, 1, 2 L) each, of encoded phonemes repeated to L frames.

        layout: of the sentences, if B is 1 and there are several; a style each."""
        spans, doubled = (None, None) if layout is None else (layout.at(1), layout.at(2))
        shared = self._shared(frames, spans=spans)[0].transpose(0, 2, 1)
        curves = []
        for blocks, project in self._curves:
            x, now = shared, spans
            for block in blocks:
                x = block(x, style, now, doubled)
                now = now if block.pool is None else doubled
            curves.append(project(x))
        return curves[0], curves[1]
