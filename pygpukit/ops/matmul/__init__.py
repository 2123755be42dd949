"""Matrix products."""

from pygpukit.ops.matmul import gemm
from pygpukit.ops.matmul.fastest import by_context

# Of the package's own code, which takes them from gemm, products are invariant whatever context is around it.
matmul, matmul_plan = by_context(gemm.matmul), by_context(gemm.matmul_plan)

__all__ = ["matmul", "matmul_plan"]
