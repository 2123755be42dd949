"""Kokoro's network (StyleTTS 2 with an iSTFTNet): tokens and a style in, samples out. One utterance at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pygpukit.ops as ops
from pygpukit.array import factory
from pygpukit.tts.config import KokoroConfig
from pygpukit.tts.layers.albert import build_albert_from_weights
from pygpukit.tts.layers.decoder import FrameDecoder
from pygpukit.tts.layers.generator import Generator
from pygpukit.tts.layers.prosody import ProsodyPredictor
from pygpukit.tts.layers.text import build_text_encoder_from_weights
from pygpukit.tts.parts import Part

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray


@dataclass
class Utterance:
    """What the network says of one utterance of T tokens: L frames of 25 ms are the sum of durations.

    durations: frames of each token. pitch in Hz and energy: (1, 1, 2 L). text: (1, 512, L), features of each frame.
    """

    durations: list[int]
    pitch: GPUArray
    energy: GPUArray
    text: GPUArray


class Network:
    """The parts, and what passes between them. A style is (1, 256): the voice's for the decoder, then for prosody."""

    def __init__(self, weights: Mapping[str, GPUArray], config: KokoroConfig) -> None:
        whole = Part(weights)
        self._style = config.style_dim
        self.bert = build_albert_from_weights(
            weights,
            "bert",
            config.plbert_num_hidden_layers,
            config.plbert_num_attention_heads,
            config.plbert_hidden_size,
        )
        self.bert_encoder = whole.linear("bert_encoder")
        self.predictor = ProsodyPredictor(whole.of("predictor"))
        self.text_encoder = build_text_encoder_from_weights(weights)
        self.decoder = FrameDecoder(whole.of("decoder"))
        self.generator = Generator(whole.of("decoder.generator"), config)

    def prosody(self, tokens: Sequence[int], style: GPUArray, speed: float) -> Utterance:
        """How an utterance is said. Waits once, for the durations: the number of frames follows from them."""
        import numpy as np

        voice = style[:, self._style :]
        ids = factory.from_numpy(np.asarray([tokens], np.int32))
        encoded = self.predictor.encode(self.bert_encoder(self.bert(ids)), voice)
        told = self.predictor.durations(encoded).to_numpy()[0] / np.float32(speed)
        durations = np.maximum(np.rint(told), 1).astype(np.int64)
        frames = factory.from_numpy(np.repeat(np.arange(len(tokens), dtype=np.int32), durations))
        pitch, energy = self.predictor.curves(ops.take(encoded, frames, axis=1), voice)
        text = ops.take(self.text_encoder(ids), frames, axis=1).transpose(0, 2, 1)
        return Utterance([int(each) for each in durations], pitch, energy, text)

    def frames(self, utterance: Utterance, style: GPUArray) -> GPUArray:
        """What the generator takes, (1, 512, 2 L)."""
        return self.decoder(utterance.text, utterance.pitch, utterance.energy, style[:, : self._style])

    def waveform(self, utterance: Utterance, style: GPUArray, seed: int | None) -> GPUArray:
        """The samples, (600 L,) float32. seed: of the noise in the source; None for none."""
        source = self.generator.source(utterance.pitch, seed)
        spectrum = self.generator.spectrum(self.frames(utterance, style), source, style[:, : self._style])
        return self.generator.waveform(spectrum)[0]
