"""Products by cuBLASLt, for those who ask for the fastest."""
