"""Matrix products."""

from pygpukit.ops.matmul.gemm import matmul, matmul_plan

__all__ = ["matmul", "matmul_plan"]
