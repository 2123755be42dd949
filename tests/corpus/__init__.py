"""The kernel suite: CUDA kernels of every common kind, their inputs, and what NumPy says they compute."""
