"""The engine: it owns a model's network and KV cache, and runs sequences on it step by step."""
