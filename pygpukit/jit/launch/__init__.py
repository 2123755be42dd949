"""Compiled units, their kernels and variables, and launching them."""
