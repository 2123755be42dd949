"""SynthesisResult: what was spoken."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pygpukit.tts.wav import to_wav

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray


@dataclass
class SynthesisResult:
    """audio: the samples, (n,) float32 on the device, 1 as full scale. durations: seconds of each phoneme."""

    audio: GPUArray
    text: str
    phonemes: str
    duration_sec: float
    sample_rate: int = 24000

    def to_wav(self, path: str | os.PathLike[str]) -> None:
        """Write a WAV file of 16-bit samples."""
        to_wav(self.audio, path, self.sample_rate)

    def to_numpy(self) -> np.ndarray[Any, Any]:
        """The samples on the host, float32 (n,)."""
        return self.audio.to_numpy()
