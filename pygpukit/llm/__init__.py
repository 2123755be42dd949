"""Language models: files, tokenizers, chat templates, and what runs them. Every name is fetched on first use."""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Module: the public names that live there. tools/name_stubs.py writes __init__.pyi, for type checkers, from it.
_HOMES = {
    "pygpukit.jupyter.chat": "chat",
    "pygpukit.llm.conversation": "Conversation",
    "pygpukit.llm.message": "Message",
    "pygpukit.llm.serving.server": "Server serve",
    "pygpukit.models.tokenizer.template": (
        "CHATML_TEMPLATE ChatMessage ChatTemplate LLAMA2_TEMPLATE LLAMA3_TEMPLATE MISTRAL_TEMPLATE QWEN_TEMPLATE "
        "TEMPLATES apply_chat_template create_chat_prompt format_chat_messages"
    ),
    "pygpukit.nn.kv_cache": "KVCache",
    "pygpukit.llm.config": "GPT2Config LlamaConfig Qwen3Config",
    "pygpukit.nn.config": "TransformerConfig",
    "pygpukit.compat.llm": (
        "load_gpt2_from_safetensors load_llama_from_safetensors load_mixtral_from_safetensors "
        "load_model_from_safetensors load_qwen3_from_safetensors repack_model_weights repack_norm repack_weight "
        "sample_token"
    ),
    "pygpukit.compat.decoding.batch": "DecodeBatch",
    "pygpukit.compat.decoding.buffers": "DecodeBuffers",
    "pygpukit.compat.decoding.jacobi": "DecodeJacobi",
    "pygpukit.compat.decoding.m1": "DecodeM1 DecodeM1Graph",
    "pygpukit.compat.decoding.prefill_buffers": "PrefillBuffers",
    "pygpukit.compat.decoding.speculative": "DecodeSpeculative",
    "pygpukit.compat.decoding.strategy": "DecodeStrategy",
    "pygpukit.compat.llama4": "Llama4Attention Llama4Block Llama4Config Llama4MLP Llama4Model generate",
    "pygpukit.compat.fp8": "LinearFP8 dequantize_fp8_e4m3_block is_fp8_weight load_fp8_weight_direct",
    "pygpukit.compat.lazy_loading.context": "LayerStreamingContext create_streaming_context",
    "pygpukit.compat.lazy_loading.loader": "LazyModelLoader",
    "pygpukit.compat.lazy_loading.state": "PoolStats TensorState",
    "pygpukit.compat.lazy_loading.strategies": "AutoLRU LoadingStrategy SimpleStreaming SlidingWindow",
    "pygpukit.compat.optimisation": (
        "FP8QuantConfig ModelOptimizationInfo PruningConfig QATQuantConfig SparsityConfig"
    ),
    "pygpukit.llm.drafts.speculation": "Speculation",
    "pygpukit.llm.generation": "Alternative Completion Figures Generation Token",
    "pygpukit.nn.attention.layer": "Attention CausalSelfAttention LlamaAttention",
    "pygpukit.nn.block": "LlamaBlock TransformerBlock",
    "pygpukit.nn.linear.layer": "Linear LinearBF16 repack_linear",
    "pygpukit.nn.mlp": "MLP LlamaMLP",
    "pygpukit.nn.moe.layer": "MoELayer",
    "pygpukit.nn.norm": "LayerNorm Norm RMSNorm",
    "pygpukit.nn.rope": "apply_rotary_pos_emb_numpy precompute_freqs_cis",
    "pygpukit.llm.model": "CausalTransformerModel GPT2Model LlamaModel",
    "pygpukit.llm.models": (
        "GPT2_SPEC LLAMA_SPEC MISTRAL_SPEC MIXTRAL_SPEC MODEL_SPECS ModelSpec QWEN2_SPEC QWEN3_MOE_SPEC QWEN3_SPEC "
        "detect_model_spec"
    ),
    "pygpukit.llm.grammar": "Grammar",
    "pygpukit.llm.encoders.encoder": "TextEncoder load_encoder",
    "pygpukit.llm.looking": "attention routing",
    "pygpukit.llm.engine.sampling": "Sampling",
    "pygpukit.llm.weights": "load",
    "pygpukit.models.tokenizer.text_stream": "TextStream",
    "pygpukit.models.tokenizer.tokenizer": "Tokenizer",
    "pygpukit.models.safetensors": "Dtype SafeTensorsFile ShardedSafeTensorsFile TensorInfo load_safetensors",
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = [*_HOME_OF]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
