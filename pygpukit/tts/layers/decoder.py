"""The decoder: text features, fundamental frequency and energy of frames become what the generator takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pygpukit.ops as ops
from pygpukit.tts.parts import Part

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray


class FrameDecoder:
    """Residual blocks, the last of which doubles the frames; all but the first see the inputs again."""

    def __init__(self, part: Part) -> None:
        self._pitch, self._energy = (part.conv(name, stride=2, padding=1) for name in ("F0_conv", "N_conv"))
        self._encode, self._again = part.residual("encode"), part.conv("asr_res.0")
        self._blocks = [part.residual(f"decode.{i}") for i in range(4)]

    def __call__(self, text: GPUArray, pitch: GPUArray, energy: GPUArray, style: GPUArray) -> GPUArray:
        """text (B, 512, L), pitch and energy (B, 1, 2 L), style (B, S) give (B, 512, 2 L)."""
        curves = [self._pitch(pitch), self._energy(energy)]
        x = self._encode(ops.concatenate([text, *curves], axis=1), style)
        seen = [self._again(text), *curves]
        for block in self._blocks:
            x = block(ops.concatenate([x, *seen], axis=1), style)
        return x
