"""SynthesisResult: what was spoken."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pygpukit.ops.audio.buffer import AudioBuffer
from pygpukit.tts.wav import to_wav

if TYPE_CHECKING:
    import numpy as np


@dataclass
class SynthesisResult:
    """audio: the sound, on the device, which a notebook shows as a player; and what it says."""

    audio: AudioBuffer
    text: str
    phonemes: str
    duration_sec: float

    def to_wav(self, path: str | os.PathLike[str]) -> None:
        """Write a WAV file of 16-bit samples."""
        to_wav(self.audio, path, self.audio.sample_rate)

    def to_numpy(self) -> np.ndarray[Any, Any]:
        """The samples on the host, float32 (n,)."""
        return self.audio.to_numpy()
