"""Whole CUDA programs: a text with main() is split into host and device code, compiled without nvcc, and run apart."""
