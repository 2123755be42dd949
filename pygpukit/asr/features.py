"""Whisper's log-mel features: 25 ms frames every 10 ms, as numbers of about -1 to 1.5."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.array import factory
from pygpukit.core.errors import InvalidSpecError
from pygpukit.ops import elementwise, reduce
from pygpukit.ops.elementwise import math
from pygpukit.ops.matmul.gemm import matmul

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray

    Array = np.ndarray[Any, Any]

RATE = 16000  # samples a second
N_FFT, HOP = 400, 160  # samples of a frame, and from frame to frame
_CHUNK = 3000  # frames that are computed at a time
_FLOOR, _RANGE = 1e-10, 8.0  # the least energy, and how far below the loudest a feature may be, in powers of ten


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
        found = elementwise.maximum(self._logarithms(first, count), self.peak - _RANGE)
        out[:, :count] = elementwise.multiply(elementwise.add(found, 4.0), 0.25).T
        return out

    def _logarithms(self, first: int, count: int) -> GPUArray:
        """log10 of each band's energy: float32 (count, bands)."""
        import numpy as np

        samples = factory.from_numpy(self._between(first * HOP - N_FFT // 2, (count - 1) * HOP + N_FFT))
        frames = native.view(samples, (count, N_FFT), (HOP * samples.itemsize, samples.itemsize), samples.offset)
        waves, filters = _constants(self._bands)
        parts = matmul(frames, factory.from_numpy(waves))
        squares = elementwise.multiply(parts, parts)
        bins = N_FFT // 2 + 1
        energy = elementwise.add(squares[:, :bins], squares[:, bins:])
        bands = matmul(energy, factory.from_numpy(filters))
        return math.log10(elementwise.maximum(bands, float(np.float32(_FLOOR))))

    def _between(self, first: int, count: int) -> Array:
        """Samples from a place on, which may lie before the sound or after it: there it is reflected."""
        import numpy as np

        places = np.abs(np.arange(first, first + count))
        period = 2 * (self._length - 1)
        places %= period
        np.minimum(places, period - places, out=places)
        inside = places < self._samples.size
        found = np.zeros(count, np.float32)
        found[inside] = self._samples[places[inside]]
        return found


@cache
def _constants(bands: int) -> tuple[Array, Array]:
    """Cosines and sines under a periodic Hann window, (400, 402), and the mel filters, (201, bands)."""
    import numpy as np

    bins = N_FFT // 2 + 1
    angles = 2 * np.pi * (np.outer(np.arange(N_FFT), np.arange(bins)) % N_FFT) / N_FFT
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(N_FFT) / N_FFT)
    waves = window[:, None] * np.concatenate([np.cos(angles), -np.sin(angles)], axis=1)
    return waves.astype(np.float32), _mel_filters(bands).astype(np.float32)


def _mel_filters(bands: int) -> Array:
    """Triangles on Slaney's mel scale, each of the same area: M. Slaney, "Auditory Toolbox", 1998. (201, bands)."""
    import numpy as np

    # 3 mel for 200 Hz up to 1 kHz; beyond, 27 mel for each factor of 6.4.
    linear, step = 15.0, np.log(6.4) / 27.0
    top = linear + np.log(RATE / 2 / 1000.0) / step
    mels = np.linspace(0.0, top, bands + 2)
    edges = np.where(mels < linear, mels * 200.0 / 3.0, 1000.0 * np.exp(step * (mels - linear)))
    bins = np.linspace(0.0, RATE / 2, N_FFT // 2 + 1)[:, None]
    low, mid, high = edges[:-2], edges[1:-1], edges[2:]
    up, down = (bins - low) / (mid - low), (high - bins) / (high - mid)
    return np.maximum(0.0, np.minimum(up, down)) * (2.0 / (high - low))
