"""Names of the older project that there are not: each is refused with the reason, or with what stands in its place."""

from __future__ import annotations

LLM_INSTEAD = {
    "Llama4Attention": "its chunks and layers without rotation are in Attention, by TransformerConfig",
    "Llama4Block": "its layers are TransformerBlock",
    "Llama4Config": "config.json is read by load(); TransformerConfig has the fields",
    "Llama4MLP": "its dense layers are MLP, its mixtures MoELayer",
    "Llama4Model": "load() reads Llama 4 (text) with its experts, and has the loop, the cache and the tokenizer",
}
_NOT_OF_KOKORO = {
    "PLBERTEncoder": "Kokoro's is an ALBERT, one layer applied again and again: ALBERTEncoder",
    "BertLayer": "Kokoro's is an ALBERT: ALBERTLayer",
    "BertSelfAttention": "its attention is in ALBERTLayer",
    "build_plbert_from_weights": "Kokoro's is an ALBERT: build_albert_from_weights",
    "StyleEncoder": "styles come from a voice's table: load_voice_embedding",
    "ResBlock1d": "its residual blocks follow a style: AdaINResBlock",
    "Decoder": "it makes no mel spectrogram; KokoroModel.network.decoder is what Kokoro has",
    "ISTFTNet": "its generator takes pitch and style, too: KokoroModel.network.generator",
}


def refusal(module: str, name: str) -> str:
    """Why `module` has no attribute `name`, as the message of an AttributeError."""
    full = f"{module}.{name}"
    if module == "pygpukit.llm" and name in LLM_INSTEAD:
        return f"{full} is no class of its own: {LLM_INSTEAD[name]} (docs/llm.md)"
    if module == "pygpukit.tts" and name in _NOT_OF_KOKORO:
        return f"{full} is no part of Kokoro-82M: {_NOT_OF_KOKORO[name]} (docs/synthesis.md)"
    return f"module {module!r} has no attribute {name!r}"
