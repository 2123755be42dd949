"""Products on tensor cores by tile kernels (CUDA Tile C++), each with its source."""
