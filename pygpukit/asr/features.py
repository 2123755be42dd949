"""Whisper's log-mel features: 25 ms frames every 10 ms, as numbers of about -1 to 1.5."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit.array import factory
from pygpukit.core.errors import InvalidSpecError
from pygpukit.ops import elementwise, reduce
from pygpukit.ops.audio.whisper import HOP, N_FFT, SAMPLE_RATE, log_energies

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray

    Array = np.ndarray[Any, Any]

RATE = SAMPLE_RATE  # samples a second; N_FFT are a frame's, HOP those from frame to frame
_CHUNK = 3000  # frames that are computed at a time
_RANGE = 8.0  # how far below the loudest a feature may be, in powers of ten


class Features:
    """The features of a sound, window by window: nothing of it is kept on the device but the window asked for.

    samples: float32 (n,) on the host, 16 kHz, -1 to 1. pad: zeros put after them. The range below the loudest frame
    is that of the whole sound. frames: how many there are.
    """

    def __init__(self, samples: Array, bands: int, pad: int = HOP) -> None:
        self._samples, self._pad, self._bands = samples, pad, bands
        self._length = samples.size + pad
        if self._length < 2:
            raise InvalidSpecError("the sound is empty; it must have at least one sample", "audio")
        self.frames = self._length // HOP
        self._peak: float | None = None

    @property
    def peak(self) -> float:
        """The largest log10 of a band's energy."""
        if self._peak is None:
            starts = range(0, self.frames, _CHUNK)
            self._peak = max(
                float(reduce.max(self._logarithms(start, min(_CHUNK, self.frames - start))).to_numpy())
                for start in starts
            )
        return self._peak

    def window(self, first: int, count: int, width: int) -> GPUArray:
        """Frames from `first` on as float32 (bands, width); zeros after the `count` that are asked for."""
        out = factory.zeros((self._bands, width))
        mel = elementwise.maximum(self._logarithms(first, count), self.peak - _RANGE)
        out[:, :count] = elementwise.multiply(elementwise.add(mel, 4.0), 0.25).T
        return out

    def _logarithms(self, first: int, count: int) -> GPUArray:
        """log10 of each band's energy: float32 (count, bands)."""
        samples = self._between(first * HOP - N_FFT // 2, (count - 1) * HOP + N_FFT)
        return log_energies(factory.from_numpy(samples), self._bands, center=False)

    def _between(self, first: int, count: int) -> Array:
        """Samples from a place on, which may lie before the sound or after it: there it is reflected."""
        import numpy as np

        samples = np.zeros(count, np.float32)
        begin = min(max(0, -first), count)
        end = max(begin, min(count, self._samples.size - first))
        samples[begin:end] = self._samples[first + begin : first + end]
        for outside in (np.arange(begin), np.arange(end, count)):
            places = np.abs(first + outside) % (2 * (self._length - 1))
            np.minimum(places, 2 * (self._length - 1) - places, out=places)
            inside = places < self._samples.size
            samples[outside[inside]] = self._samples[places[inside]]
        return samples
