"""Documented variables of the environment that have nothing to decide here, and why: each is named in one warning."""

from __future__ import annotations

import os
import warnings
from functools import cache

# Switches, which 0 leaves off.
_SWITCHES = {
    "PYGPUKIT_TF32_V2": "there is one kind of tf32 kernels here",
    "PYGPUKIT_ALLOW_FP16_TC": "half precision runs on tensor cores wherever there are some",
    "PYGPUKIT_CUBLASLT_SM120": "invariant=False takes cuBLASLt on every device",
    "PYGPUKIT_DISABLE_GROUPED_GEMM": "grouped products have the bits that one at a time would have",
    "PYGPUKIT_USE_TRITON": "operations run by the built-in kernels until gp.plugins.replace('triton') says otherwise",
}
# Choices of a kernel, which auto and -1 leave open.
_BY_PROBLEM = "the kernel of attention follows from shapes, types and the device alone"
_CHOICES = {
    "PYGPUKIT_FLASH_ATTENTION": f"scores are never stored; {_BY_PROBLEM}",
    "PYGPUKIT_FLASH_DECODING": f"decoding splits the keys by their number; {_BY_PROBLEM}",
    "PYGPUKIT_FA3": _BY_PROBLEM,
    "PYGPUKIT_FA3_TMA": _BY_PROBLEM,
    "PYGPUKIT_FA3_SM120_VERSION": _BY_PROBLEM,
}


@cache
def warn_of_unused() -> None:
    """Warn of each of them that is set to something."""
    for table, nothing in ((_SWITCHES, ("", "0")), (_CHOICES, ("", "auto", "-1"))):
        for name, why in table.items():
            if os.environ.get(name, "") not in nothing:
                warnings.warn(f"{name} has no effect: {why}", stacklevel=3)
