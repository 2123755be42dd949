"""The short Fourier transform of the vocoder and its inverse: 20 samples every 5, as products with small matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pygpukit.ops as ops
from pygpukit.array import factory

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray


class ShortFourier:
    """Windows of n_fft samples (periodic Hann), hop apart, centred; the signal is reflected at its ends."""

    def __init__(self, n_fft: int, hop: int) -> None:
        import numpy as np

        self.n_fft, self.hop, self.bins = n_fft, hop, n_fft // 2 + 1
        window = np.sin(np.pi * np.arange(n_fft) / n_fft) ** 2
        turns = np.arange(self.bins)[:, None] * np.arange(n_fft) % n_fft / n_fft
        real, imaginary = np.cos(2 * np.pi * turns), -np.sin(2 * np.pi * turns)
        imaginary[[0, -1]] = 0  # exactly: the angle of a real number is 0 or pi
        weight = np.where(np.isin(np.arange(self.bins), (0, n_fft // 2)), 1.0, 2.0)[:, None] / n_fft
        forward = np.concatenate([real, imaginary]) * window
        inverse = np.concatenate([real * weight, imaginary * weight]) * window
        self._forward = factory.from_numpy(forward[:, None])
        self._inverse = factory.from_numpy(inverse[:, None].astype(np.float32))
        self._square = factory.from_numpy((window**2)[None, None].astype(np.float32))

    def forward(self, signal: GPUArray) -> GPUArray:
        """Magnitudes, then angles: (B, 2 bins, N / hop + 1) float32 of a float64 signal (B, N)."""
        half = self.n_fft // 2
        padded = ops.pad(signal, ((0, 0), (half, half)), "reflect")
        both = ops.conv1d(padded[:, None], self._forward, stride=self.hop)
        real, imaginary = both[:, : self.bins], ops.add(both[:, self.bins :], 0.0)  # -0 would turn pi into -pi
        magnitude = ops.sqrt(ops.add(ops.square(real), ops.square(imaginary)))
        return ops.concatenate([magnitude, ops.atan2(imaginary, real)], axis=1).astype("float32")

    def inverse(self, magnitude: GPUArray, angle: GPUArray) -> GPUArray:
        """The signal (B, N) of magnitudes and angles (B, bins, N / hop + 1), float32."""
        both = ops.concatenate([ops.mul(magnitude, ops.cos(angle)), ops.mul(magnitude, ops.sin(angle))], axis=1)
        half = self.n_fft // 2
        signal = ops.conv_transpose1d(both, self._inverse, stride=self.hop, padding=half)
        ones = factory.ones((1, 1, magnitude.shape[2]), "float32")
        weight = ops.conv_transpose1d(ones, self._square, stride=self.hop, padding=half)
        return ops.div(signal, weight)[:, 0]
