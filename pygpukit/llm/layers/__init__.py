"""The layers that all architectures share, a file each."""
