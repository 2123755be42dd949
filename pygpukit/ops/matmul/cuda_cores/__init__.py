"""Products on CUDA cores, for any type and strides; of float64 on tensor cores, too."""
