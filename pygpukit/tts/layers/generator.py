"""The generator (iSTFTNet, Kaneko et al. 2022): frames become a spectrum, and that a waveform."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pygpukit.ops as ops
from pygpukit.array import factory
from pygpukit.tts.config import KokoroConfig
from pygpukit.tts.layers.activation import leaky_relu
from pygpukit.tts.layers.convolution import ConvTranspose1d
from pygpukit.tts.layers.fourier import ShortFourier
from pygpukit.tts.layers.layout import Layout, silenced
from pygpukit.tts.layers.residual import SnakeResBlock
from pygpukit.tts.layers.source import HarmonicSource
from pygpukit.tts.parts import Part

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

_FRAME = 2  # places of a frame that come in
_NOISE_KERNELS = (7, 11)  # of the residual blocks that the source passes


class Generator:
    """Two stages that lengthen the frames, each with the source's spectrum added; then an inverse Fourier transform."""

    def __init__(self, part: Part, config: KokoroConfig) -> None:
        self._source = HarmonicSource(part.of("m_source"), config.sample_rate, config.hop_length)
        self._fourier = ShortFourier(config.gen_istft_n_fft, config.gen_istft_hop_size)
        rates, dilations = config.upsample_rates, config.resblock_dilation_sizes
        kinds = len(config.resblock_kernel_sizes)
        self._stages = []
        self._rates: list[int] = []  # places of a frame after each stage
        for i, (rate, kernel) in enumerate(zip(rates, config.upsample_kernel_sizes, strict=True)):
            self._rates.append((self._rates[-1] if self._rates else _FRAME) * rate)
            left = 1
            for later in rates[i + 1 :]:
                left *= later
            up = part.array(f"ups.{i}.weight"), part.array(f"ups.{i}.bias")
            blocks = [
                _block(part.of(f"resblocks.{i * kinds + k}"), size, dilations[k])
                for k, size in enumerate(config.resblock_kernel_sizes)
            ]
            self._stages.append(
                (
                    ConvTranspose1d(*up, rate, (kernel - rate) // 2),
                    part.conv(f"noise_convs.{i}", left, (left + 1) // 2 if left > 1 else 0),
                    _block(part.of(f"noise_res.{i}"), _NOISE_KERNELS[i], (1, 3, 5)),
                    blocks,
                )
            )
        post = part.array("conv_post.weight")
        self._post = part.conv("conv_post", padding=post.shape[2] // 2)

    def source(self, pitch: GPUArray, seed: int | None) -> GPUArray:
        """The source's spectrum, magnitudes and angles: (1, 22, 120 L + 1) of frequencies (1, 1, 2 L) in Hz."""
        return self._fourier.forward(self._source(pitch.reshape(-1), seed)[None])

    def sources(self, pitch: GPUArray, seeds: Sequence[int | None], layout: Layout) -> GPUArray:
        """source() of each sentence, with zeros between them. seeds: of each."""
        parts = layout.parts(pitch, 2)
        made = [self.source(part, seed) for part, seed in zip(parts, seeds, strict=True)]
        spans = layout.at(self._rates[-1], 1)
        if spans is None:
            return made[0]
        rows: list[GPUArray] = []
        for number, ((start, length), part) in enumerate(zip(spans.pairs, made, strict=True)):
            rows.append(part)
            if number + 1 < len(made):
                rows.append(factory.zeros((1, part.shape[1], spans.pairs[number + 1][0] - start - length), "float32"))
        return ops.concatenate(rows, axis=2)

    def spectrum(self, x: GPUArray, source: GPUArray, style: GPUArray, layout: Layout | None = None) -> GPUArray:
        """Logarithms of magnitudes, and angles before their sine, (1, 22, 120 L + 1), of frames x (1, 512, 2 L).

        layout: of the sentences in x, if there are several; a style each.
        """
        last = len(self._stages) - 1
        spans = None if layout is None else layout.at(2)
        for i, (up, convolve, pass_on, blocks) in enumerate(self._stages):
            x = up(silenced(leaky_relu(x, 0.1), spans))
            x = _begun(x, layout, self._rates[i]) if i == last else x
            spans = None if layout is None else layout.at(self._rates[i], int(i == last))
            x = ops.add(x, pass_on(convolve(source), style, spans))
            total = blocks[0](x, style, spans)
            for block in blocks[1:]:
                total = ops.add(total, block(x, style, spans))
            x = ops.div(total, float(len(blocks)))
        return self._post(silenced(leaky_relu(x, 0.01), spans))

    def waveform(self, spectrum: GPUArray) -> GPUArray:
        """The samples (1, 600 L) of spectrum()."""
        bins = spectrum.shape[1] // 2
        return self._fourier.inverse(ops.exp(spectrum[:, :bins]), ops.sin(spectrum[:, bins:]))

    def waveforms(self, spectrum: GPUArray, layout: Layout) -> list[GPUArray]:
        """The samples (600 L,) of each sentence."""
        return [self.waveform(part)[0] for part in layout.parts(spectrum, self._rates[-1], 1)]


def _begun(x: GPUArray, layout: Layout | None, rate: int) -> GPUArray:
    """x with one more place before each sentence, a reflection of what follows."""
    spans = None if layout is None else layout.at(rate, 1)
    if spans is None:
        return ops.pad(x, ((0, 0), (0, 0), (1, 0)), "reflect")
    import numpy as np

    places = np.maximum(np.arange(spans.total, dtype=np.int32) - 1, 0)
    for start, _ in spans.pairs:
        places[start] = start + 1
    return ops.take(x, factory.from_numpy(places), axis=2)


def _block(part: Part, kernel: int, dilations: tuple[int, ...]) -> SnakeResBlock:
    steps = []
    for i, dilation in enumerate(dilations):
        first = part.conv(f"convs1.{i}", padding=(kernel * dilation - dilation) // 2, dilation=dilation)
        second = part.conv(f"convs2.{i}", padding=(kernel - 1) // 2)
        alphas = part.array(f"alpha1.{i}"), part.array(f"alpha2.{i}")
        steps.append((part.adain(f"adain1.{i}"), alphas[0], first, part.adain(f"adain2.{i}"), alphas[1], second))
    return SnakeResBlock(steps)
