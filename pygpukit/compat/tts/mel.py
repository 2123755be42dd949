"""A mel spectrogram of text and style, and its sound: blocks of convolutions, and the inverse Fourier transform."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pygpukit.ops as ops
from pygpukit.array.factory import from_numpy
from pygpukit.core.errors import InvalidSpecError, ShapeError
from pygpukit.tts.config import KokoroConfig
from pygpukit.tts.layers.activation import leaky_relu

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

Layer = Callable[["GPUArray"], "GPUArray"]


class StyleEncoder:
    """The mean over time of convolutions, with a leaky ReLU after each. norm: of the result."""

    def __init__(self, convs: Sequence[Layer], norm: Layer | None = None, output_dim: int = 128) -> None:
        self.convs, self.norm, self.output_dim = list(convs), norm, output_dim

    def __call__(self, text_features: GPUArray, speaker_embedding: GPUArray | None = None) -> GPUArray:
        """(B, output_dim) of text_features (B, C, T). speaker_embedding (B, output_dim): added. Raises ShapeError
        where the convolutions give another width."""
        x = text_features
        for conv in self.convs:
            x = leaky_relu(conv(x))
        style = ops.mean(x, axis=2)
        if style.shape[1] != self.output_dim:
            raise ShapeError(f"StyleEncoder: the convolutions give {style.shape[1]} channels, not {self.output_dim}")
        style = style if self.norm is None else self.norm(style)
        return style if speaker_embedding is None else ops.add(style, speaker_embedding)


class ResBlock1d:
    """x += conv(leaky_relu(x)), once for each convolution, which keeps channels and length."""

    def __init__(self, convs: Sequence[Layer]) -> None:
        self.convs = list(convs)

    def __call__(self, x: GPUArray) -> GPUArray:
        """x (B, C, L)."""
        for conv in self.convs:
            x = ops.add(x, conv(leaky_relu(x)))
        return x


class Decoder:
    """A mel spectrogram: input_proj of text and style beside each other, the layers, output_proj."""

    def __init__(self, input_proj: Layer, layers: Sequence[Layer], output_proj: Layer, n_mels: int = 80) -> None:
        self.input_proj, self.layers, self.output_proj, self.n_mels = input_proj, list(layers), output_proj, n_mels

    def __call__(self, text_features: GPUArray, style: GPUArray, durations: Any = None) -> GPUArray:
        """(B, n_mels, frames) of text_features (B, T, D) and style (B, S).

        durations: (T,), frames of each position, in every row; one each by default. Raises InvalidSpecError for others
        and for another number of bands.
        """
        import numpy as np

        x = text_features
        if durations is not None:
            frames = np.asarray(durations.to_numpy() if hasattr(durations, "to_numpy") else durations)
            if frames.shape != (x.shape[1],) or frames.dtype.kind not in "iu" or (frames < 0).any():
                raise InvalidSpecError(
                    f"durations are {frames.dtype} {frames.shape}, must be {x.shape[1]} integers from 0 on", "durations"
                )
            x = ops.take(x, from_numpy(np.repeat(np.arange(frames.size), frames)), axis=1)
        rows, length = x.shape[:2]
        same = ops.broadcast_to(style.reshape(rows, 1, style.shape[1]), (rows, length, style.shape[1]))
        x = self.input_proj(ops.concat([x, same], axis=2))
        for layer in self.layers:
            x = layer(x)
        mel = self.output_proj(x)
        if mel.shape[2] != self.n_mels:
            raise InvalidSpecError(f"output_proj gives {mel.shape[2]} bands, n_mels is {self.n_mels}", "n_mels")
        return mel.transpose(0, 2, 1)


class ISTFTNet:
    """A vocoder (Kaneko et al. 2022): transposed convolutions, the mean of residual blocks after each, and the inverse
    short-time Fourier transform of magnitudes and phases that output_conv gives.

    resblocks: as many for each of ups. output_conv: to n_fft + 2 channels, logarithms of magnitudes, then phases,
    of which the sine is taken.
    """

    def __init__(
        self, config: KokoroConfig, ups: Sequence[Layer], resblocks: Sequence[Layer], output_conv: Layer
    ) -> None:
        if not ups or len(resblocks) % len(ups):
            raise InvalidSpecError(
                f"{len(resblocks)} residual blocks are given for {len(ups)} steps up; give as many for each",
                "resblocks",
            )
        self.config, self.ups, self.resblocks, self.output_conv = config, list(ups), list(resblocks), output_conv
        self.n_fft, self.hop_size = config.gen_istft_n_fft, config.gen_istft_hop_size

    def __call__(self, mel: GPUArray) -> GPUArray:
        """(B, samples) of mel (B, bands, frames). Raises ShapeError where output_conv gives another width."""
        x, each = mel, len(self.resblocks) // len(self.ups)
        for index, up in enumerate(self.ups):
            x = up(leaky_relu(x))
            blocks = [block(x) for block in self.resblocks[each * index : each * (index + 1)]]
            if blocks:
                x = ops.mean(ops.stack(blocks), axis=0)
        x = self.output_conv(leaky_relu(x))
        bins = self.n_fft // 2 + 1
        if x.shape[1] != 2 * bins:
            raise ShapeError(f"ISTFTNet: output_conv gives {x.shape[1]} channels, {2 * bins} are needed")
        magnitude, phase = ops.exp(x[:, :bins]), ops.sin(x[:, bins:])
        spectrum = ops.multiply(magnitude, ops.exp(ops.multiply(phase, 1j)))
        return ops.audio.istft(spectrum, hop_length=self.hop_size, n_fft=self.n_fft)
