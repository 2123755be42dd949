"""Inline PTX on the simulated device: asm statements of CUDA C++ as C++ that does what their instructions do."""
