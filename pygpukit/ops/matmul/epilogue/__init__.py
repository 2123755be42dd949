"""Epilogues of matrix products: scale, bias, activation, residual, conversion."""
