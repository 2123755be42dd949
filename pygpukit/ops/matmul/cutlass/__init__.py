"""Products by CUTLASS's kernels, where its headers were fetched: pygpukit get cutlass."""
