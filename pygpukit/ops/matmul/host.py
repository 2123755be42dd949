"""Products with NumPy, on the simulated device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.core.dtypes import bfloat16, float16, int8, int32
from pygpukit.ops import host
from pygpukit.ops.matmul.epilogue.epilogue import in_kernel

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DataType
    from pygpukit.ops.matmul.epilogue.epilogue import Epilogue
    from pygpukit.ops.matmul.problem import Problem
finishes = in_kernel


def refusal(p: Problem) -> str:
    """Why NumPy does not compute, "" where it does."""
    return "" if host.computes() else "kernels compute"


def run(p: Problem, a: GPUArray, b: GPUArray, out: GPUArray, epilogue: Epilogue | None = None) -> None:
    """out = epilogue(a @ b)."""
    arrays = [a, b, out, *(() if epilogue is None else epilogue.arrays())]
    native.host_launch("matmul", lambda: _compute(a, b, out, epilogue), arrays)


def _compute(a: GPUArray, b: GPUArray, out: GPUArray, epilogue: Epilogue | None) -> None:
    import numpy as np

    with np.errstate(all="ignore"):
        sums = on_host(a, b, out.dtype)
        host.store(out, sums if epilogue is None else epilogue.on_host(sums))


def on_host(a: GPUArray, b: GPUArray, dtype: DataType | None = None) -> Any:
    """a @ b by NumPy, of 16-bit floats in float32. dtype: of integers, where it is not theirs."""
    import numpy as np

    left, right = host.values(a), host.values(b)
    if a.dtype in (float16, bfloat16):
        left, right = left.astype(np.float32), right.astype(np.float32)
    elif dtype is int32 and a.dtype is int8:
        left, right = left.astype(np.int32), right.astype(np.int32)
    with np.errstate(all="ignore"):
        return np.matmul(left, right)
