"""Built-in kernels: a .cu file beside a Python module, a KernelSpec that names it, and launch().

SCALE = KernelSpec(__file__, "scale.cu", "scale")
launch(SCALE, grid, block, x, out, struct.pack("q", x.size))
"""

from pygpukit.kernels.launcher import launch
from pygpukit.kernels.spec import GENERIC_LAMBDAS, SAME_BITS, KernelSpec

__all__ = ["GENERIC_LAMBDAS", "SAME_BITS", "KernelSpec", "launch"]
