"""Documented names of speech synthesis that are no part of Kokoro-82M; each is refused by name, with the reason."""

from __future__ import annotations

_NOT_PARTS = {
    "PLBERTEncoder": "Kokoro's is an ALBERT, one layer applied again and again: ALBERTEncoder",
    "BertLayer": "Kokoro's is an ALBERT: ALBERTLayer",
    "BertSelfAttention": "its attention is in ALBERTLayer",
    "build_plbert_from_weights": "Kokoro's is an ALBERT: build_albert_from_weights",
    "StyleEncoder": "styles come from a voice's table: load_voice_embedding",
    "ResBlock1d": "its residual blocks follow a style: AdaINResBlock",
    "Decoder": "it makes no mel spectrogram; KokoroModel.network.decoder is what Kokoro has",
    "ISTFTNet": "its generator takes pitch and style, too: KokoroModel.network.generator",
}


def refusal(name: str) -> str | None:
    """The sentence for such a name; None for any other."""
    what = _NOT_PARTS.get(name)
    return None if what is None else f"pygpukit.tts.{name} is no part of Kokoro-82M: {what} (docs/synthesis.md)"
