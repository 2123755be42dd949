"""Operations of neural networks."""

from pygpukit.ops.nn.attention import sdpa_causal, sdpa_causal_fixed_cache, sdpa_causal_fixed_cache_ptr
from pygpukit.ops.nn.bias import bias_add_inplace, linear_bias_gelu
from pygpukit.ops.nn.conv import conv1d, conv2d
from pygpukit.ops.nn.embedding import embedding, embedding_lookup, embedding_lookup_batch, embedding_lookup_ptr
from pygpukit.ops.nn.lstm import lstm_bidirectional, lstm_forward
from pygpukit.ops.nn.norm import groupnorm, l2norm, layernorm, rmsnorm
from pygpukit.ops.nn.rope import rope_inplace, rope_inplace_f32table
from pygpukit.ops.nn.rope.tables import rope_init_linear, rope_init_llama3, rope_init_ntk_aware, rope_init_yarn
from pygpukit.ops.nn.softmax import log_softmax, softmax

__all__ = [
    "bias_add_inplace",
    "conv1d",
    "conv2d",
    "embedding",
    "embedding_lookup",
    "embedding_lookup_batch",
    "embedding_lookup_ptr",
    "groupnorm",
    "l2norm",
    "layernorm",
    "linear_bias_gelu",
    "log_softmax",
    "lstm_bidirectional",
    "lstm_forward",
    "rmsnorm",
    "rope_init_linear",
    "rope_init_llama3",
    "rope_init_ntk_aware",
    "rope_init_yarn",
    "rope_inplace",
    "rope_inplace_f32table",
    "sdpa_causal",
    "sdpa_causal_fixed_cache",
    "sdpa_causal_fixed_cache_ptr",
    "softmax",
]
