"""The generator (iSTFTNet, Kaneko et al. 2022): frames become a spectrum, and that a waveform."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pygpukit.ops as ops
from pygpukit.array import factory
from pygpukit.core.dtypes import float16, float32
from pygpukit.tts.config import KokoroConfig
from pygpukit.tts.layers import style_last
from pygpukit.tts.layers.convolution import ConvTranspose1d
from pygpukit.tts.layers.fourier import ShortFourier
from pygpukit.tts.layers.layout import Layout
from pygpukit.tts.layers.merge import merge
from pygpukit.tts.layers.residual import SnakeResBlock
from pygpukit.tts.layers.source import HarmonicSource
from pygpukit.tts.layers.style import Style
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
                    ConvTranspose1d(*up, rate, (kernel - rate) // 2, core=float32),
                    part.conv(f"noise_convs.{i}", left, (left + 1) // 2 if left > 1 else 0, core=float32),
                    _block(part.of(f"noise_res.{i}"), _NOISE_KERNELS[i], (1, 3, 5)),
                    blocks,
                )
            )
        post = part.array("conv_post.weight")
        self._post = part.conv("conv_post", padding=post.shape[2] // 2, core=float32)

    def source(self, pitch: GPUArray, seed: int | None) -> GPUArray:
        """sources() of one sentence, (1, 22, 120 L + 1) of (1, 1, 2 L)."""
        return self.sources(pitch, [seed], Layout([pitch.shape[2] // _FRAME]))

    def sources(self, pitch: GPUArray, seeds: Sequence[int | None], layout: Layout) -> GPUArray:
        """The source's spectrum, magnitudes and angles, of frequencies (1, 1, places) in Hz; zero between sentences.

        seeds: of each.
        """
        signal = self._source(pitch.reshape(-1), seeds, layout.spans(_FRAME))
        hop = self._rates[-1] * self._fourier.hop
        return self._fourier.forward(signal, layout.spans(hop), layout.spans(self._rates[-1], 1))

    def spectrum(self, x: GPUArray, source: GPUArray, style: Style, layout: Layout | None = None) -> GPUArray:
        """Logarithms of magnitudes, and angles before their sine, (1, 22, 120 L + 1), of frames x (1, 512, 2 L).

        layout: of the sentences in x, if there are several; a style each.
        """
        last = len(self._stages) - 1
        spans = None if layout is None else layout.at(2)
        source, parts = self._post.as_input(source), [self._post.as_input(x)]
        for i, (up, convolve, pass_on, blocks) in enumerate(self._stages):
            x = up(merge(parts, 1 / len(blocks) if i else 1.0, 0.1, spans))
            x = _begun(x, layout, self._rates[i]) if i == last else x
            spans = None if layout is None else layout.at(self._rates[i], int(i == last))
            x = merge([x, *pass_on(convolve(source), style, spans)])
            parts = [part for block in blocks for part in block(x, style, spans)]
        return self._post(merge(parts, 1 / len(blocks), 0.01, spans))

    def waveform(self, spectrum: GPUArray) -> GPUArray:
        """The samples (1, 600 L) of spectrum() of one sentence."""
        return self.waveforms(spectrum, Layout([spectrum.shape[2] // self._rates[-1]]))[0][None]

    def waveforms(self, spectrum: GPUArray, layout: Layout) -> list[GPUArray]:
        """The samples (600 L,) of each sentence."""
        apart = layout.apart(self._rates[-1] * self._fourier.hop)
        signal = self._fourier.inverse(spectrum, layout.spans(self._rates[-1], 1), apart)
        return [signal[start : start + size] for start, size in apart.pairs]


def _begun(x: GPUArray, layout: Layout | None, rate: int) -> GPUArray:
    """x with one more place before each sentence, a reflection of what follows."""
    spans = None if layout is None else layout.at(rate, 1)
    pairs, total = ([(0, 0)], x.shape[2] + 1) if spans is None else (spans.pairs, spans.total)
    import numpy as np

    places = np.maximum(np.arange(total, dtype=np.int32) - 1, 0)
    for start, _ in pairs:
        places[start] = start + 1
    taken = factory.from_numpy(places)
    if style_last.has(x):
        return ops.take(x.transpose(0, 2, 1), taken, axis=1).transpose(0, 2, 1)
    return ops.take(x, taken, axis=2)


def _block(part: Part, kernel: int, dilations: tuple[int, ...]) -> SnakeResBlock:
    steps = []
    for i, dilation in enumerate(dilations):
        first = part.conv(f"convs1.{i}", padding=(kernel * dilation - dilation) // 2, dilation=dilation, core=float16)
        second = part.conv(f"convs2.{i}", padding=(kernel - 1) // 2, core=float32)
        alphas = part.array(f"alpha1.{i}"), part.array(f"alpha2.{i}")
        steps.append((part.adain(f"adain1.{i}"), alphas[0], first, part.adain(f"adain2.{i}"), alphas[1], second))
    return SnakeResBlock(steps)
