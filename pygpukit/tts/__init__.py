"""Speech synthesis: Kokoro-82M, from text or phonemes to samples. Every name is fetched on first use."""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Module: the public names that live there. tools/name_stubs.py writes __init__.pyi, for type checkers, from it.
_HOMES = {
    "pygpukit.compat.tts.bert": "BertLayer BertSelfAttention PLBERTEncoder build_plbert_from_weights",
    "pygpukit.compat.tts.mel": "Decoder ISTFTNet ResBlock1d StyleEncoder",
    "pygpukit.tts.config": "KokoroConfig",
    "pygpukit.tts.layers.activation": "leaky_relu tanh",
    "pygpukit.tts.layers.albert": "ALBERTEncoder ALBERTLayer build_albert_from_weights",
    "pygpukit.tts.layers.convolution": "Conv1d ConvTranspose1d WeightNormConv1d",
    "pygpukit.nn.linear.layer": "Linear",
    "pygpukit.tts.layers.layer_norm": "LayerNorm",
    "pygpukit.tts.layers.lstm": "LSTM",
    "pygpukit.tts.layers.residual": "AdaINResBlock",
    "pygpukit.tts.layers.style": "AdaIN InstanceNorm1d",
    "pygpukit.tts.layers.text": "KokoroTextEncoder build_text_encoder_from_weights",
    "pygpukit.tts.model": "KokoroModel load",
    "pygpukit.tts.result": "SynthesisResult",
    "pygpukit.tts.text": "normalize_text split_sentences spoken_text",
    "pygpukit.tts.tokenizer": "KokoroTokenizer TokenizerOutput",
    "pygpukit.tts.vocabulary": "DEFAULT_VOCAB",
    "pygpukit.tts.voices": "list_available_voices load_voice_embedding",
    "pygpukit.tts.wav": "concatenate_audio from_wav resample_audio to_wav",
    "pygpukit.tts.weights": "get_weight_info load_kokoro_weights print_weight_summary",
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = [*_HOME_OF]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'pygpukit.tts' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
