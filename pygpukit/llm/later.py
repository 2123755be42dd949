"""Documented names of language models whose time has not come; each is refused by name, with what it belongs to."""

from __future__ import annotations

_LATER = {
    "mixtures of experts": "MIXTRAL_SPEC MoELayer QWEN3_MOE_SPEC load_mixtral_from_safetensors",
    "weights of 8 and 4 bits": (
        "FP8QuantConfig LinearFP8 ModelOptimizationInfo PruningConfig QATQuantConfig SparsityConfig "
        "dequantize_fp8_e4m3_block is_fp8_weight load_fp8_weight_direct"
    ),
    "loading a model layer by layer": (
        "AutoLRU LayerStreamingContext LazyModelLoader LoadingStrategy PoolStats SimpleStreaming SlidingWindow "
        "TensorState create_streaming_context"
    ),
    "speculation and other decode strategies": (
        "DecodeBatch DecodeJacobi DecodeM1 DecodeM1Graph DecodeSpeculative DecodeStrategy"
    ),
    "buffers that the caller keeps": "DecodeBuffers PrefillBuffers",
    "LLaMA 4": "Llama4Attention Llama4Block Llama4Config Llama4MLP Llama4Model",
}
NAMES = {name: what for what, names in _LATER.items() for name in names.split()}


def refusal(name: str) -> str | None:
    """The sentence for such a name; None for any other."""
    what = NAMES.get(name)
    return None if what is None else f"pygpukit.llm.{name} is not there yet: {what} comes later (docs/llm.md)"
