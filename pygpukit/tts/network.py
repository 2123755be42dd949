"""Kokoro's network (StyleTTS 2 with an iSTFTNet): tokens and a style in, samples out.

Sentences of a batch go through it together, each with the bits that it has alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pygpukit.ops as ops
from pygpukit.array import factory
from pygpukit.ops.nn.spans import Spans
from pygpukit.tts.config import KokoroConfig
from pygpukit.tts.layers.albert import build_albert_from_weights
from pygpukit.tts.layers.decoder import FrameDecoder
from pygpukit.tts.layers.generator import Generator
from pygpukit.tts.layers.layout import Layout
from pygpukit.tts.layers.prosody import ProsodyPredictor
from pygpukit.tts.layers.style import Styled, Styles
from pygpukit.tts.layers.text import build_text_encoder_from_weights
from pygpukit.tts.parts import Part

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray


@dataclass
class Prediction:
    """The prediction from the tokens of B sentences: durations in frames of each token, and features of tokens.

    encoded: (B, T, 640) for the prosody, text: (B, T, 512) for the decoder; T is the longest sentence's.
    """

    durations: list[list[int]]
    encoded: GPUArray
    text: GPUArray

    def frames(self, number: int) -> int:
        """Of a sentence."""
        return sum(self.durations[number])


@dataclass
class Utterance:
    """The prosody of sentences: L frames of 25 ms are the sum of durations, and of gaps between sentences.

    durations: frames of each token, of one sentence after the other. pitch in Hz and energy: (1, 1, 2 L). text:
    (1, 512, L), features of each frame. layout: where the sentences are.
    """

    durations: list[int]
    pitch: GPUArray
    energy: GPUArray
    text: GPUArray
    layout: Layout


class Network:
    """The parts, and what passes between them. Styles are (B, 256), of each sentence: the voice's for the
    decoder, then for prosody."""

    def __init__(self, weights: Mapping[str, GPUArray], config: KokoroConfig) -> None:
        root = Part(weights)
        self._style = config.style_dim
        self.bert = build_albert_from_weights(
            weights,
            "bert",
            config.plbert_num_hidden_layers,
            config.plbert_num_attention_heads,
            config.plbert_hidden_size,
        )
        self.bert_encoder = root.linear("bert_encoder")
        prosody, decoder = Part(weights, "predictor"), Part(weights, "decoder")
        self.predictor = ProsodyPredictor(prosody)
        self.text_encoder = build_text_encoder_from_weights(weights)
        self.decoder = FrameDecoder(decoder)
        self.generator = Generator(decoder.of("generator"), config)
        self._manner, self._voice = Styles(prosody.norms), Styles(decoder.norms)

    def prosody(self, tokens: Sequence[int], style: GPUArray, speed: float) -> Utterance:
        """The prosody of one sentence. Waits once, for the durations: the number of frames follows from them."""
        return self.utterance(self.predict([tokens], style, [speed]), style, [0])

    def predict(self, tokens: Sequence[Sequence[int]], styles: GPUArray, speeds: Sequence[float]) -> Prediction:
        """The prediction from the tokens of sentences. Waits for the durations."""
        import numpy as np

        voice, counts = styles[:, self._style :], [len(each) for each in tokens]
        longest = max(counts)
        padded = np.zeros((len(counts), longest), np.int32)
        for row, each in zip(padded, tokens, strict=True):
            row[: len(each)] = each
        ids, spans, lengths = factory.from_numpy(padded), None, None
        if len(counts) > 1:
            spans = Spans([(number * longest, count) for number, count in enumerate(counts)], padded.size)
            lengths = factory.from_numpy(np.asarray(counts, np.int32))
        encoded = self.predictor.encode(self.bert_encoder(self.bert(ids, lengths=lengths)), voice, spans)
        predicted = self.predictor.durations(encoded, spans).to_numpy() / np.asarray(speeds, np.float32)[:, None]
        frames = np.maximum(np.rint(predicted), 1).astype(np.int64)
        durations = [row[:count].tolist() for row, count in zip(frames, counts, strict=True)]
        return Prediction(durations, encoded, self.text_encoder(ids, spans))

    def utterance(self, prediction: Prediction, styles: GPUArray, chosen: Sequence[int]) -> Utterance:
        """The prosody of the chosen sentences, one after the other. styles: of the chosen ones."""
        import numpy as np

        durations = [prediction.durations[number] for number in chosen]
        layout = Layout([sum(each) for each in durations])
        longest = prediction.encoded.shape[1]
        places = np.zeros(layout.total, np.int32)  # gaps have the first token, which nobody sees
        for number, start, each in zip(chosen, layout.starts, durations, strict=True):
            places[start : start + sum(each)] = number * longest + np.repeat(np.arange(len(each)), each)
        frames = factory.from_numpy(places)
        encoded, text = (
            ops.take(x.reshape(1, -1, x.shape[2]), frames, axis=1) for x in (prediction.encoded, prediction.text)
        )
        pitch, energy = self.predictor.curves(encoded, self._manner(styles[:, self._style :]), layout)
        return Utterance([x for each in durations for x in each], pitch, energy, text.transpose(0, 2, 1), layout)

    def frames(self, utterance: Utterance, styles: GPUArray) -> GPUArray:
        """The generator's input, (1, 512, 2 L)."""
        return self._frames(utterance, self._voice(styles[:, : self._style]))

    def waveform(self, utterance: Utterance, style: GPUArray, seed: int | None) -> GPUArray:
        """The samples of one sentence, (600 L,) float32. seed: of the noise in the source; None for none."""
        return self.waveforms(utterance, style, [seed])[0]

    def waveforms(self, utterance: Utterance, styles: GPUArray, seeds: Sequence[int | None]) -> list[GPUArray]:
        """The samples of each sentence. seeds: as waveform() has them, of each."""
        source = self.generator.sources(utterance.pitch, seeds, utterance.layout)
        style = self._voice(styles[:, : self._style])
        frames = self._frames(utterance, style)
        spectrum = self.generator.spectrum(frames, source, style, utterance.layout)
        return self.generator.waveforms(spectrum, utterance.layout)

    def _frames(self, utterance: Utterance, style: Styled) -> GPUArray:
        return self.decoder(utterance.text, utterance.pitch, utterance.energy, style, utterance.layout)
