"""Weights of a Hugging Face folder in few bits: which tensors belong together, and the numbers that they mean."""
