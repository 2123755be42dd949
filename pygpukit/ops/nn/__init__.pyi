# Written by tools/name_stubs.py from what the modules say they give.
from pygpukit.ops.nn.attention import sdpa_causal as sdpa_causal
from pygpukit.ops.nn.attention import sdpa_causal_fixed_cache as sdpa_causal_fixed_cache
from pygpukit.ops.nn.attention import sdpa_causal_fixed_cache_ptr as sdpa_causal_fixed_cache_ptr
from pygpukit.ops.nn.bias import bias_add_inplace as bias_add_inplace
from pygpukit.ops.nn.bias import linear_bias_gelu as linear_bias_gelu
from pygpukit.ops.nn.conv import conv1d as conv1d
from pygpukit.ops.nn.conv import conv2d as conv2d
from pygpukit.ops.nn.embedding import embedding as embedding
from pygpukit.ops.nn.embedding import embedding_lookup as embedding_lookup
from pygpukit.ops.nn.embedding import embedding_lookup_batch as embedding_lookup_batch
from pygpukit.ops.nn.embedding import embedding_lookup_ptr as embedding_lookup_ptr
from pygpukit.ops.nn.lstm import lstm_bidirectional as lstm_bidirectional
from pygpukit.ops.nn.lstm import lstm_forward as lstm_forward
from pygpukit.ops.nn.norm import groupnorm as groupnorm
from pygpukit.ops.nn.norm import l2norm as l2norm
from pygpukit.ops.nn.norm import layernorm as layernorm
from pygpukit.ops.nn.norm import rmsnorm as rmsnorm
from pygpukit.ops.nn.rope import rope_inplace as rope_inplace
from pygpukit.ops.nn.rope import rope_inplace_f32table as rope_inplace_f32table
from pygpukit.ops.nn.rope.tables import rope_init_linear as rope_init_linear
from pygpukit.ops.nn.rope.tables import rope_init_llama3 as rope_init_llama3
from pygpukit.ops.nn.rope.tables import rope_init_ntk_aware as rope_init_ntk_aware
from pygpukit.ops.nn.rope.tables import rope_init_yarn as rope_init_yarn
from pygpukit.ops.nn.sampling import sample_greedy as sample_greedy
from pygpukit.ops.nn.sampling import sample_multinomial as sample_multinomial
from pygpukit.ops.nn.sampling import sample_token as sample_token
from pygpukit.ops.nn.sampling import sample_token_gpu as sample_token_gpu
from pygpukit.ops.nn.sampling import sample_topk as sample_topk
from pygpukit.ops.nn.sampling import sample_topk_to_buf_ptr as sample_topk_to_buf_ptr
from pygpukit.ops.nn.sampling import sample_topp as sample_topp
from pygpukit.ops.nn.sampling import set_sampling_seed as set_sampling_seed
from pygpukit.ops.nn.softmax import log_softmax as log_softmax
from pygpukit.ops.nn.softmax import softmax as softmax

__all__: list[str]

def homes() -> dict[str, str]: ...
