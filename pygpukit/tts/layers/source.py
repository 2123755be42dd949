"""The source of the voice: nine harmonics of the fundamental frequency with a little noise, mixed to one signal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pygpukit.ops as ops
from pygpukit import kernels
from pygpukit._core import native
from pygpukit.array import factory
from pygpukit.core.dtypes import float64
from pygpukit.ops import host
from pygpukit.random import Generator
from pygpukit.tts.parts import Part

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

SOURCE = kernels.KernelSpec(__file__, "source.cu")
_SOURCE = SOURCE.structure("Source")
_BLOCK = 256
_AMPLITUDE = 0.1
_VOICED_NOISE = 0.003  # standard deviation; where there is no voice it is a third of the amplitude
_THRESHOLD_HZ = 10.0


class HarmonicSource:
    """Sines at the multiples of a fundamental frequency, in float64: phases add up over the whole utterance."""

    def __init__(self, part: Part, sample_rate: int, hop: int) -> None:
        """hop: samples of a frame of the frequency."""
        self._weight = part.array("l_linear.weight").reshape(-1)
        self._bias = part.array("l_linear.bias")
        self._rate, self._hop = sample_rate, hop

    def __call__(self, pitch: GPUArray, seed: int | None) -> GPUArray:
        """The signal (hop F,) float64 of frequencies (F,) float32 in Hz. seed: of the noise; None for none."""
        frames, count = pitch.shape[0], self._weight.shape[0]
        multiples = factory.arange(1, count + 1, dtype="float64")
        steps = ops.div(ops.mul(pitch.astype("float64")[:, None], multiples), float(self._rate))
        turns = ops.mul(ops.cumsum(ops.sub(steps, ops.floor(steps)), axis=0), float(self._hop))
        samples = frames * self._hop
        noise = None if seed is None else Generator(seed).normal(0.0, 1.0, (samples, count), "float32")
        out = native.empty((samples,), float64)
        arrays = [pitch, turns, *(() if noise is None else (noise,)), self._weight, self._bias, out]
        if host.computes():
            native.host_launch("harmonic_source", lambda: self._on_host(pitch, turns, noise, out), arrays)
            return out
        packed = _SOURCE.pack(
            samples=samples,
            frames=frames,
            harmonics=count,
            hop=self._hop,
            amplitude=_AMPLITUDE,
            voiced_noise=_VOICED_NOISE,
            unvoiced_noise=_AMPLITUDE / 3,
            threshold=_THRESHOLD_HZ,
            has_noise=noise is not None,
        )
        kernels.launch(
            SOURCE.of("pk::harmonic_source"),
            (-(-samples // _BLOCK), 1, 1),
            (_BLOCK, 1, 1),
            *(pitch, turns, pitch if noise is None else noise, self._weight, self._bias, out, packed),
        )
        return out

    def _on_host(self, pitch: GPUArray, turns: GPUArray, noise: GPUArray | None, out: GPUArray) -> None:
        import numpy as np

        frames = pitch.shape[0]
        voiced = np.repeat(host.memory(pitch) > _THRESHOLD_HZ, self._hop)[:, None]
        place = np.clip((np.arange(out.shape[0]) + 0.5) / self._hop - 0.5, 0, frames - 1)
        frame = place.astype(np.int64)
        known = host.memory(turns)
        first = known[frame]
        turn = first + (known[np.minimum(frame + 1, frames - 1)] - first) * (place - frame)[:, None]
        value = np.where(voiced, _AMPLITUDE * np.sin(2 * np.pi * (turn - np.floor(turn))), 0.0)
        if noise is not None:
            value += np.where(voiced, _VOICED_NOISE, _AMPLITUDE / 3) * host.memory(noise)
        host.memory(out)[...] = np.tanh(value @ host.memory(self._weight).astype(np.float64) + host.memory(self._bias))


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """The one kernel."""
    yield ("pk::harmonic_source",)
