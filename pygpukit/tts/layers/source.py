"""The source of the voice: nine harmonics of the fundamental frequency with a little noise, mixed to one signal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.array import factory
from pygpukit.core.dtypes import float64
from pygpukit.ops import copying, host
from pygpukit.ops.nn.spans import Spans
from pygpukit.random import Generator
from pygpukit.tts.parts import Part

if TYPE_CHECKING:
    import numpy as np

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

    def __call__(self, pitch: GPUArray, seeds: Sequence[int | None], spans: Spans) -> GPUArray:
        """The signal (hop F,) float64 of frequencies (F,) float32 in Hz, each sentence for itself; zero between them.

        spans: of the sentences in F. seeds: of the noise of each; None for none.
        """
        out = native.empty((spans.total * self._hop,), float64)
        if not spans.gapless:
            copying.fill(out, 0)
        if host.computes():
            for (start, frames), seed in zip(spans.pairs, seeds, strict=True):
                part = pitch[start : start + frames]
                noise = None if seed is None else self._noise(seed, frames)
                target = out[start * self._hop : (start + frames) * self._hop]
                arrays = [part, self._weight, self._bias, target, *(() if noise is None else (noise,))]
                work = lambda part=part, noise=noise, target=target: self._on_host(part, noise, target)  # noqa: E731
                native.host_launch("harmonic_source", work, arrays)
            return out
        import numpy as np

        count = self._weight.shape[0]
        packed = _SOURCE.pack(
            harmonics=count,
            hop=self._hop,
            rate=self._rate,
            amplitude=_AMPLITUDE,
            voiced_noise=_VOICED_NOISE,
            unvoiced_noise=_AMPLITUDE / 3,
            threshold=_THRESHOLD_HZ,
        )
        seed_array = factory.from_numpy(np.array([(seed or 0, seed is not None) for seed in seeds], np.uint64))
        phases = native.empty((spans.total, count), float64)
        pitch, places = copying.contiguous(pitch), spans.device
        kernels.launch(SOURCE.of("pk::source_turns"), (len(spans), 1, 1), (32, 1, 1), *(pitch, places, phases, packed))
        kernels.launch(
            SOURCE.of("pk::harmonic_source"),
            (-(-spans.longest * self._hop // _BLOCK), len(spans), 1),
            (_BLOCK, 1, 1),
            *(pitch, phases, places, seed_array, self._weight, self._bias, out, packed),
        )
        return out

    def _noise(self, seed: int, frames: int) -> GPUArray:
        return Generator(seed).normal(0.0, 1.0, (frames * self._hop, self._weight.shape[0]), "float32")

    def _on_host(self, pitch: GPUArray, noise: GPUArray | None, out: GPUArray) -> None:
        import numpy as np

        weight, pitch_values = host.memory(self._weight).astype(np.float64), host.memory(pitch)
        frames = pitch.shape[0]
        steps = pitch_values.astype(np.float64)[:, None] * np.arange(1, weight.size + 1) / self._rate
        phases = np.cumsum(steps - np.floor(steps), axis=0) * self._hop
        voiced = np.repeat(pitch_values > _THRESHOLD_HZ, self._hop)[:, None]
        place = np.clip((np.arange(out.shape[0]) + 0.5) / self._hop - 0.5, 0, frames - 1)
        frame = place.astype(np.int64)
        first = phases[frame]
        phase = first + (phases[np.minimum(frame + 1, frames - 1)] - first) * (place - frame)[:, None]
        value: np.ndarray = np.where(voiced, _AMPLITUDE * np.sin(2 * np.pi * (phase - np.floor(phase))), 0.0)
        if noise is not None:
            value += np.where(voiced, _VOICED_NOISE, _AMPLITUDE / 3) * host.memory(noise)
        host.memory(out)[...] = np.tanh(value @ weight + host.memory(self._bias))


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """The two kernels."""
    yield "pk::source_turns", "pk::harmonic_source"
