"""The decoder: text features, fundamental frequency and energy of frames become what the generator takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pygpukit.ops as ops
from pygpukit.tts.layers.layout import Layout, silenced
from pygpukit.tts.parts import Part

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray


class FrameDecoder:
    """Residual blocks, the last of which doubles the frames; all but the first see the inputs again."""

    def __init__(self, part: Part) -> None:
        self._pitch, self._energy = (part.conv(name, stride=2, padding=1) for name in ("F0_conv", "N_conv"))
        self._encode, self._again = part.residual("encode"), part.conv("asr_res.0")
        self._blocks = [part.residual(f"decode.{i}") for i in range(4)]

    def __call__(
        self, text: GPUArray, pitch: GPUArray, energy: GPUArray, style: GPUArray, layout: Layout | None = None
    ) -> GPUArray:
        """text (B, 512, L), pitch and energy (B, 1, 2 L), style (B, S) give (B, 512, 2 L). layout: of the sentences, if
        B is 1 and there are several; a style each."""
        spans, doubled = (None, None) if layout is None else (layout.at(1), layout.at(2))
        curves = [self._pitch(silenced(pitch, doubled)), self._energy(silenced(energy, doubled))]
        x = self._encode(ops.concatenate([text, *curves], axis=1), style, spans)
        seen = [self._again(text), *curves]
        for block in self._blocks:
            x = block(ops.concatenate([x, *seen], axis=1), style, spans, doubled)
        return x
