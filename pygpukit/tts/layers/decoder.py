"""The decoder: text features, fundamental frequency and energy of frames become what the generator takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pygpukit.ops as ops
from pygpukit.core.dtypes import float32
from pygpukit.tts.layers import style_last
from pygpukit.tts.layers.layout import Layout, silenced
from pygpukit.tts.layers.style import Style
from pygpukit.tts.parts import Part

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray


class FrameDecoder:
    """Residual blocks, the last of which doubles the frames; all but the first see the inputs again."""

    def __init__(self, part: Part) -> None:
        self._pitch, self._energy = (part.conv(name, stride=2, padding=1) for name in ("F0_conv", "N_conv"))
        self._encode, self._again = part.residual("encode", rounded=True), part.conv("asr_res.0", core=float32)
        self._blocks = [part.residual(f"decode.{i}", rounded=True) for i in range(4)]

    def __call__(
        self, text: GPUArray, pitch: GPUArray, energy: GPUArray, style: Style, layout: Layout | None = None
    ) -> GPUArray:
        """text (B, 512, L), pitch and energy (B, 1, 2 L), style (B, S) give (B, 512, 2 L). layout: of the sentences, if
        B is 1 and there are several; a style each."""
        spans, doubled = (None, None) if layout is None else (layout.at(1), layout.at(2))
        curves = [self._pitch(silenced(pitch, doubled)), self._energy(silenced(energy, doubled))]
        text = self._again.as_input(text)
        x = self._encode(_together([text, *curves]), style, spans)
        seen = [self._again(text), *curves]
        for block in self._blocks:
            x = block(_together([x, *seen]), style, spans, doubled)
        return x


def _together(arrays: Sequence[GPUArray]) -> GPUArray:
    """Arrays (1, C, L) one after the other along channels, in the layout of the first."""
    if not style_last.has(arrays[0]):
        return ops.concatenate(arrays, axis=1)
    return ops.concatenate([x.transpose(0, 2, 1) for x in arrays], axis=2).transpose(0, 2, 1)
