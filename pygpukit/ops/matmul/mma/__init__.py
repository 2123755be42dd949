"""Products on tensor cores by mma.sync, which every device from SM 8.0 on has."""
