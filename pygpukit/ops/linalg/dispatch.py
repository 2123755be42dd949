"""Where matrices are factorized: NumPy on the simulated device, our kernels for small ones, cuSOLVER for large ones."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from pygpukit.ops import host

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray


def backend(what: str, a: GPUArray) -> ModuleType:
    """The module whose function `what` factorizes a: on_host, small or cusolver."""
    if host.computes():
        name = "on_host"
    else:
        from pygpukit.ops.linalg import small

        name = "small" if small.fits(what, a) else "cusolver"
    return import_module(f"pygpukit.ops.linalg.{name}")
