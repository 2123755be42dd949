"""Matrix products."""

from pygpukit.ops.matmul.gemm import matmul

__all__ = ["matmul"]
