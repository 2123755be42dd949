"""The samples of a player on the host: those of a sound, or what was pushed so far."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from pygpukit.core.errors import InvalidSpecError

if TYPE_CHECKING:
    from pygpukit.ops.audio.buffer import AudioBuffer

HEARD_CHANNELS = 2  # of more a browser plays two
KEPT_BYTES = 256 << 20  # of a stream: what came first goes first


class Samples:
    """Samples by number, float32; a stream grows at its end and forgets its beginning when it is long. Thread-safe."""

    def __init__(self, rate: int, channels: int, kept_bytes: int = KEPT_BYTES) -> None:
        self.rate, self.channels = rate, channels
        self.first = 0  # number of the first sample that is kept
        self.frames = 0
        self.ended = False
        self._lock = threading.Lock()
        self._kept = max(1, kept_bytes // (4 * channels))
        self._data = np.zeros((channels, 0), np.float32)

    @classmethod
    def of(cls, sound: AudioBuffer) -> Samples:
        """Those of a whole sound."""
        host = sound.to_numpy().reshape(sound.channels, len(sound))
        samples = cls(sound.sample_rate, sound.channels, max(host.nbytes, 1))
        samples._data, samples.frames, samples.ended = host, len(sound), True
        return samples

    def append(self, chunk: np.ndarray[Any, Any]) -> int:
        """Add a chunk, (channels, n); the number of its first sample. Raises InvalidSpecError after the end."""
        with self._lock:
            if self.ended:
                raise InvalidSpecError("push: this sound has ended; show another player for another sound", "samples")
            at, held = self.frames, self.frames - self.first
            if held + chunk.shape[1] > self._data.shape[1]:
                keep = min(held, max(0, self._kept - chunk.shape[1]))
                room = max(2 * keep, keep + chunk.shape[1], self.rate)
                data = np.zeros((self.channels, room), np.float32)
                data[:, :keep] = self._data[:, held - keep : held]
                self._data, self.first, held = data, self.frames - keep, keep
            self._data[:, held : held + chunk.shape[1]] = chunk
            self.frames += chunk.shape[1]
            return at

    def end(self) -> None:
        """Nothing more comes."""
        with self._lock:
            self.ended = True

    def read(self, at: int, max_frames: int) -> np.ndarray[Any, Any]:
        """Up to so many samples from number `at` on, (channels, n); none where there are none."""
        with self._lock:
            if not self.first <= at < self.frames:
                return self._data[:, :0]
            return self._data[:, at - self.first : min(at + max_frames, self.frames) - self.first].copy()
