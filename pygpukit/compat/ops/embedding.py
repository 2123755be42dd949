"""Rows of tables and of key-value caches at the older project's path, pygpukit.ops.embedding."""

from pygpukit.ops.nn.embedding import embedding, embedding_lookup, embedding_lookup_batch, embedding_lookup_ptr
from pygpukit.ops.nn.kv_cache import (
    kv_cache_prefill,
    kv_cache_prefill_gqa,
    kv_cache_update,
    kv_cache_update_gqa,
    kv_cache_update_gqa_ptr,
)

# A tuple, since a list would say that these operations live here (ops/names.py).
__all__ = (
    "embedding",
    "embedding_lookup",
    "embedding_lookup_batch",
    "embedding_lookup_ptr",
    "kv_cache_prefill",
    "kv_cache_prefill_gqa",
    "kv_cache_update",
    "kv_cache_update_gqa",
    "kv_cache_update_gqa_ptr",
)
