"""The short Fourier transform of the vocoder and its inverse: 20 samples every 5, as products with small matrices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pygpukit.ops as ops
from pygpukit import kernels
from pygpukit._core import native
from pygpukit.array import factory
from pygpukit.core.dtypes import float32
from pygpukit.ops import copying, host
from pygpukit.ops.nn.spans import Spans
from pygpukit.ops.operands import span
from pygpukit.tts.layers import style_last

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

SOURCE = kernels.KernelSpec(__file__, "fourier.cu")
_FOURIER = SOURCE.structure("ShortFourier")
_FRAMES = 128  # fourier.cu: kBlockFrames


class ShortFourier:
    """Windows of n_fft samples (periodic Hann), hop apart, centred; the signal is reflected at its ends. Sentences lie
    one after the other, each for itself. n_fft is at most 30."""

    def __init__(self, n_fft: int, hop: int) -> None:
        import numpy as np

        self.n_fft, self.hop, self.bins = n_fft, hop, n_fft // 2 + 1
        window = np.sin(np.pi * np.arange(n_fft) / n_fft) ** 2
        phases = np.arange(self.bins)[:, None] * np.arange(n_fft) % n_fft / n_fft
        real, imaginary = np.cos(2 * np.pi * phases), -np.sin(2 * np.pi * phases)
        imaginary[[0, -1]] = 0  # exactly: the angle of a real number is 0 or pi
        weight = np.where(np.isin(np.arange(self.bins), (0, n_fft // 2)), 1.0, 2.0)[:, None] / n_fft
        forward = np.concatenate([real, imaginary]) * window
        inverse = np.concatenate([real * weight, imaginary * weight]) * window
        self._forward = factory.from_numpy(forward[:, None])
        self._inverse = factory.from_numpy(inverse[:, None].astype(np.float32))
        self._square = factory.from_numpy((window**2)[None, None].astype(np.float32))

    def forward(self, signal: GPUArray, signals: Spans, frames: Spans) -> GPUArray:
        """Magnitudes, then angles: (1, 2 bins, places) float32 of a float64 signal (N,); zero between sentences.

        signals: where they are among the samples; frames: among the places, N / hop + 1 for N samples.
        """
        if host.computes():
            out = native.empty((1, 2 * self.bins, frames.total), float32)
            copying.fill(out, 0)
            for (start, size), (first, count) in zip(signals.pairs, frames.pairs, strict=True):
                copying.copy_to(
                    self._forward_single(signal[None, start : start + size]), out[..., first : first + count]
                )
            return out
        out = native.empty((1, frames.total, 2 * self.bins), float32)
        if not frames.gapless:
            copying.fill(out, 0)
        out = out.transpose(0, 2, 1)
        kernels.launch(
            SOURCE.of("pk::short_spectrum"),
            (-(-frames.longest // _FRAMES), len(frames), 1),
            (_FRAMES, 1, 1),
            *(signal, self._forward, signals.device, frames.device, span(out)[0], self._packed(out)),
        )
        return out

    def inverse(self, spectrum: GPUArray, frames: Spans, signals: Spans) -> GPUArray:
        """The signal (N,) float32 of logarithms of magnitudes and of angles before their sine, (1, 2 bins, places)."""
        out = native.empty((signals.total,), float32)
        if host.computes():
            for (first, count), (start, size) in zip(frames.pairs, signals.pairs, strict=True):
                part = spectrum[..., first : first + count]
                magnitude, angle = ops.exp(part[:, : self.bins]), ops.sin(part[:, self.bins :])
                copying.copy_to(self._inverse_single(magnitude, angle)[0], out[start : start + size])
            return out
        if not (style_last.has(spectrum) or spectrum.is_contiguous()):
            spectrum = copying.contiguous(spectrum)
        over = -(-self.n_fft // self.hop)
        kernels.launch(
            SOURCE.of("pk::short_waveform", shared_bytes=(_FRAMES + over) * 2 * self.bins * 4),
            (-(-signals.longest // (_FRAMES * self.hop)), len(frames), 1),
            (_FRAMES, 1, 1),
            *(span(spectrum)[0], self._inverse, self._square, frames.device, signals.device, out),
            self._packed(spectrum),
        )
        return out

    def _packed(self, spectrum: GPUArray) -> bytes:
        channel, place = (step // spectrum.itemsize for step in spectrum.strides[1:])
        return _FOURIER.pack(bins=self.bins, size=self.n_fft, hop=self.hop, place_step=place, channel_step=channel)

    def _forward_single(self, signal: GPUArray) -> GPUArray:
        """Of one sentence (1, N)."""
        half = self.n_fft // 2
        padded = ops.pad(signal, ((0, 0), (half, half)), "reflect")
        both = ops.conv1d(padded[:, None], self._forward, stride=self.hop)
        real, imaginary = both[:, : self.bins], ops.add(both[:, self.bins :], 0.0)  # -0 would turn pi into -pi
        magnitude = ops.sqrt(ops.add(ops.square(real), ops.square(imaginary)))
        return ops.concatenate([magnitude, ops.atan2(imaginary, real)], axis=1).astype("float32")

    def _inverse_single(self, magnitude: GPUArray, angle: GPUArray) -> GPUArray:
        """Of one sentence, (1, N)."""
        both = ops.concatenate([ops.mul(magnitude, ops.cos(angle)), ops.mul(magnitude, ops.sin(angle))], axis=1)
        half = self.n_fft // 2
        signal = ops.conv_transpose1d(both, self._inverse, stride=self.hop, padding=half)
        unit = factory.ones((1, 1, magnitude.shape[2]), "float32")
        weight = ops.conv_transpose1d(unit, self._square, stride=self.hop, padding=half)
        return ops.div(signal, weight)[:, 0]


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """The two kernels."""
    yield "pk::short_spectrum", "pk::short_waveform"
