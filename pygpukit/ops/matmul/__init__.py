"""Matrix products. The names of this folder are fetched on first use, but for the two that are here."""

import sys

from pygpukit.ops.matmul import gemm
from pygpukit.ops.matmul.fastest import by_context
from pygpukit.ops.names import Package

# Of the package's own code, which takes them from gemm, products are invariant whatever context is around it.
matmul, matmul_plan = by_context(gemm.matmul), by_context(gemm.matmul_plan)

__all__ = ["matmul", "matmul_plan"]

sys.modules[__name__].__class__ = Package
