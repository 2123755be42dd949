"""Speech recognition: Whisper models, from sound to text with times. Every name is fetched on first use."""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Module: the public names that live there. tools/name_stubs.py writes __init__.pyi, for type checkers, from it.
_HOMES = {
    "pygpukit.asr.audio": "pad_or_trim preprocess_audio preprocess_audio_batch samples_of",
    "pygpukit.asr.config": "WHISPER_CONFIGS WhisperConfig",
    "pygpukit.asr.decoder": "WhisperDecoder WhisperDecoderLayer create_decoder",
    "pygpukit.compat.asr": (
        "WHISPER_CHUNK_LENGTH WHISPER_HOP_LENGTH WHISPER_N_FFT WHISPER_N_FRAMES WHISPER_N_MELS WHISPER_N_SAMPLES "
        "WHISPER_SAMPLE_RATE WhisperTokenizer download_model load_safetensors load_whisper_model normalize_mel"
    ),
    "pygpukit.asr.encoder": "WhisperEncoder WhisperEncoderLayer create_encoder",
    "pygpukit.asr.model": "WhisperModel load",
    "pygpukit.asr.options": "Options",
    "pygpukit.asr.results": "TranscriptionResult TranscriptionSegment Word",
    "pygpukit.asr.silero": "SileroStream SileroVAD",
    "pygpukit.asr.speech": "SpeechOptions",
    "pygpukit.asr.weights": "WhisperWeights",
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = [*_HOME_OF]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'pygpukit.asr' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
