"""Operands of products: their batch axes, and how kernels read them where they lie."""
