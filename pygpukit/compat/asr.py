"""Names of recognition that are constants, or other things' names here: they are in pygpukit.asr."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from pygpukit.asr.config import WhisperConfig
from pygpukit.asr.features import RATE
from pygpukit.asr.model import located
from pygpukit.asr.weights import WhisperWeights
from pygpukit.ops import elementwise, reduce
from pygpukit.ops.audio.whisper import HOP, N_FFT

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray

WHISPER_SAMPLE_RATE, WHISPER_N_FFT, WHISPER_HOP_LENGTH = RATE, N_FFT, HOP
WHISPER_N_MELS, WHISPER_CHUNK_LENGTH = 80, 30
WHISPER_N_SAMPLES = WHISPER_SAMPLE_RATE * WHISPER_CHUNK_LENGTH
WHISPER_N_FRAMES = WHISPER_N_SAMPLES // WHISPER_HOP_LENGTH


def normalize_mel(log_mel: GPUArray) -> GPUArray:
    """log10 energies as Whisper takes them: at most 8 below the largest of all, plus 4, divided by 4."""
    lowest = reduce.max(log_mel) - 8.0
    return elementwise.multiply(elementwise.add(elementwise.maximum(log_mel, lowest), 4.0), 0.25)


def load_safetensors(file_path: str | os.PathLike[str]) -> dict[str, np.ndarray[Any, Any]]:
    """All tensors of a safetensors file, by name, as NumPy arrays (bfloat16 as uint16 bits)."""
    from pygpukit.models.checkpoint import open_checkpoint

    checkpoint = open_checkpoint(file_path)
    try:
        return {name: checkpoint.read(name) for name in checkpoint.names()}
    finally:
        checkpoint.close()


def download_model(model_id: str, cache_dir: str | os.PathLike[str] | None = None) -> str:
    """The path of a model by name, fetched where it is not on this machine: gp.models.get(), after cache_dir."""
    return str(located(model_id, cache_dir))


def load_whisper_model(
    model_path_or_id: str | os.PathLike[str], cache_dir: str | os.PathLike[str] | None = None
) -> tuple[WhisperConfig, WhisperWeights]:
    """Configuration and weights of a model by name, folder or file."""
    weights = WhisperWeights.from_safetensors(located(model_path_or_id, cache_dir))
    return weights.config, weights


class WhisperTokenizer:
    """The tokenizer of a model's folder: encode() gives the ids of a text alone, without tokens that mean something."""

    def __init__(self, model_path: str | os.PathLike[str]) -> None:
        from pygpukit.models.tokenizer.tokenizer import Tokenizer

        self.model_path = str(model_path)
        self._tokenizer = Tokenizer(model_path)

    def encode(self, text: str) -> list[int]:
        """The ids of a text."""
        return self._tokenizer.encode(text, add_special_tokens=False)

    def decode(self, token_ids: list[int], skip_special_tokens: bool = True) -> str:
        """The text of ids."""
        return self._tokenizer.decode(token_ids, skip_special_tokens)
