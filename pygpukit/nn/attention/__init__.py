"""Attention over a KV cache: writing keys and values, prefill, decode, and the same on the host."""
