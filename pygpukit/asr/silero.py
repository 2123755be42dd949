"""SileroVAD: the probability that somebody speaks, every 32 ms, by Silero's network on the device."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pygpukit.array import factory
from pygpukit.asr.audio import samples_of
from pygpukit.asr.features import RATE
from pygpukit.asr.speech import CHUNK, SpeechOptions, pieces
from pygpukit.core.errors import InvalidSpecError, ModelFileError
from pygpukit.models.fetch import get
from pygpukit.models.onnx import OnnxFile
from pygpukit.ops import elementwise
from pygpukit.ops.audio.vad import SpeechSegment
from pygpukit.ops.elementwise.activation import relu, sigmoid
from pygpukit.ops.elementwise.math import sqrt
from pygpukit.ops.nn.conv import conv1d
from pygpukit.ops.nn.lstm import lstm_forward

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

    Samples = np.ndarray[Any, Any]

_CONTEXT, _REFLECTED = 64, 64  # samples before a chunk, and of its end that are mirrored after it
_HOP, _BINS, _STATE = 128, 129, 128
_STRIDES = (1, 2, 2, 1)  # of the four convolutions
_TOGETHER = 512  # chunks whose convolutions are computed at once
# Tensors as the file names them, and their shapes; convolutions encoder.0 to encoder.3.
_STFT, _LSTM, _LAST = "stft.forward_basis_buffer", "decoder.rnn", "decoder.decoder.2"
_SHAPES: dict[str, tuple[int, ...]] = {
    _STFT: (2 * _BINS, 1, 256),
    **{
        f"encoder.{number}.reparam_conv.weight": shape
        for number, shape in enumerate(((128, _BINS, 3), (64, 128, 3), (64, 64, 3), (128, 64, 3)))
    },
    **{f"encoder.{number}.reparam_conv.bias": (width,) for number, width in enumerate((128, 64, 64, 128))},
    **{f"{_LSTM}.weight_{kind}": (4 * _STATE, _STATE) for kind in ("ih", "hh")},
    **{f"{_LSTM}.bias_{kind}": (4 * _STATE,) for kind in ("ih", "hh")},
    f"{_LAST}.weight": (1, _STATE, 1),
    f"{_LAST}.bias": (1,),
}


class SileroVAD:
    """Silero's voice activity detector for 16 kHz, version 6 (MIT), by its published weights.

    model: "silero-vad", fetched on first use, or an .onnx file of the 16 kHz model alone. Raises
    ModelNotFoundError, ModelFileError. Deterministic; a probability's bits do not depend on how many are asked for.
    """

    def __init__(self, model: str | os.PathLike[str] = "silero-vad", *, progress: bool = True) -> None:
        path = get(model, progress)
        file = OnnxFile(path)
        try:
            self.weights = {name: _tensor(file, path, name, shape) for name, shape in _SHAPES.items()}
        finally:
            file.close()

    def stream(self) -> SileroStream:
        """Sound in pieces: a state of its own for each stream; the weights are shared."""
        return SileroStream(self)

    def probabilities(self, audio: Any, sample_rate: int | None = None) -> Samples:
        """One for each 512 samples of 16 kHz, float32 (chunks,), on the host; zeros fill up the last chunk.

        audio, sample_rate, errors: as samples_of().
        """
        return self._of(samples_of(audio, sample_rate))

    def detect(self, audio: Any, sample_rate: int | None = None, **settings: Any) -> list[SpeechSegment]:
        """The pieces with speech, in order, as Silero's get_speech_timestamps(); samples are of 16 kHz.

        audio, sample_rate, errors: as samples_of(). settings: fields of SpeechOptions.
        """
        spans = self.pieces(samples_of(audio, sample_rate), SpeechOptions().changed(settings))
        return [SpeechSegment(start, end, start / RATE, end / RATE) for start, end in spans]

    def pieces(self, samples: Samples, options: SpeechOptions) -> list[tuple[int, int]]:
        """detect() of float32 (n,) at 16 kHz on the host: where each piece begins and ends, in samples."""
        return pieces(self._of(samples), samples.size, options)

    def _of(self, samples: Samples) -> Samples:
        return self.stream()(np.pad(samples, (0, -samples.size % CHUNK)))

    def forward(self, chunks: GPUArray, state: GPUArray, cell: GPUArray) -> tuple[GPUArray, GPUArray, GPUArray]:
        """Probabilities, float32 (N, 1, 1), and the state after them, of N chunks that follow each other.

        chunks: float32 (N, 1, 640): 64 samples from before, 512, and the 64 before the last one, mirrored. state, cell:
        (1, 128). Asynchronous.
        """
        w, count = self.weights, chunks.shape[0]
        waves = conv1d(chunks, w[_STFT], stride=_HOP)
        squares = elementwise.multiply(waves, waves)
        x = sqrt(elementwise.add(squares[:, :_BINS], squares[:, _BINS:]))
        for number, stride in enumerate(_STRIDES):
            weight, bias = (w[f"encoder.{number}.reparam_conv.{kind}"] for kind in ("weight", "bias"))
            x = relu(conv1d(x, weight, bias, stride, 1))
        # The gates by a convolution, too: the products of a chunk are then the same however many there are.
        gates = conv1d(x, w[f"{_LSTM}.weight_ih"][:, :, None]).reshape(1, count, 4 * _STATE)
        kept, biases = w[f"{_LSTM}.weight_hh"], (w[f"{_LSTM}.bias_ih"], w[f"{_LSTM}.bias_hh"])
        hidden, state, cell = lstm_forward(gates, None, kept, *biases, state, cell)
        x = relu(hidden).reshape(count, _STATE, 1)
        return sigmoid(conv1d(x, w[f"{_LAST}.weight"], w[f"{_LAST}.bias"])), state, cell


class SileroStream:
    """Sound in pieces of whole chunks. Call it with them; reset() begins anew."""

    def __init__(self, model: SileroVAD) -> None:
        self._model = model
        self.reset()

    def reset(self) -> None:
        """As if nothing had been heard."""
        self._context = np.zeros(_CONTEXT, np.float32)
        self._state, self._cell = factory.zeros((1, _STATE)), factory.zeros((1, _STATE))

    def __call__(self, samples: Samples) -> Samples:
        """The probability of each chunk of 512 samples, float32 (chunks,). samples: float32 (512 chunks,), 16 kHz, on
        the host. Raises InvalidSpecError where that is no whole number of chunks."""
        if samples.size % CHUNK:
            raise InvalidSpecError(f"there are {samples.size} samples, must be whole chunks of {CHUNK}", "samples")
        parts = [np.zeros(0, np.float32)]
        for first in range(0, samples.size, _TOGETHER * CHUNK):
            part = samples[first : first + _TOGETHER * CHUNK]
            probabilities, self._state, self._cell = self._model.forward(self._chunks(part), self._state, self._cell)
            parts.append(probabilities.to_numpy().ravel())
        return np.concatenate(parts)

    def _chunks(self, samples: Samples) -> GPUArray:
        """As forward() takes them."""
        sound = np.concatenate([self._context, samples])
        self._context = sound[-_CONTEXT:].copy()
        seen = np.lib.stride_tricks.sliding_window_view(sound, _CONTEXT + CHUNK)[::CHUNK]
        mirrored = seen[:, -2 : -2 - _REFLECTED : -1]
        return factory.from_numpy(np.concatenate([seen, mirrored], axis=1)[:, None])


def _tensor(file: OnnxFile, path: Path, name: str, shape: tuple[int, ...]) -> GPUArray:
    stored = next((candidate for candidate in (f"model.{name}", name) if candidate in file.names()), None)
    have = "missing" if stored is None else file.shape(stored)
    if stored is None or have != shape:
        raise ModelFileError(f"{path}: {name} is {have}, must be {shape} in Silero's 16 kHz model", str(path))
    array = factory.from_numpy(file.array(stored).astype(np.float32))
    array.name = f"silero-vad/{name}"
    return array
