"""The documented ring of samples on the host, in pygpukit.pipeline; one on a device is gp.ops.audio.AudioRingBuffer."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pygpukit.core.errors import InvalidSpecError
from pygpukit.tts.wav import as_samples


@dataclass
class AudioBuffer:
    """The last max_duration seconds of sound, float32. Raises InvalidSpecError where that is no sample."""

    sample_rate: int = 16000
    max_duration: float = 60.0
    _buffer: deque[float] = field(default_factory=deque)

    def __post_init__(self) -> None:
        size = round(self.sample_rate * self.max_duration)
        if size < 1:
            raise InvalidSpecError(
                f"{self.max_duration} s at {self.sample_rate} Hz are {size} samples, must be at least 1", "max_duration"
            )
        self._buffer = deque(self._buffer, maxlen=size)

    def append(self, audio: Any) -> None:
        """Add one channel of floats, (n,); the oldest samples make room. Raises InvalidSpecError for other sound."""
        self._buffer.extend(as_samples(audio).tolist())

    def get_audio(self, duration: float | None = None) -> np.ndarray[Any, Any]:
        """The last `duration` seconds, or what there is of them; all by default."""
        samples = np.fromiter(self._buffer, np.float32, len(self._buffer))
        if duration is None:
            return samples
        return samples[max(samples.size - round(duration * self.sample_rate), 0) :]

    def clear(self) -> None:
        """Forget all samples."""
        self._buffer.clear()

    def __len__(self) -> int:
        return len(self._buffer)
