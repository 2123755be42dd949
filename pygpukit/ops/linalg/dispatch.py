"""Where matrices are factorized: NumPy on the simulated device, our kernels for small ones, cuSOLVER for large ones."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from pygpukit.core.errors import BackendUnavailableError
from pygpukit.ops import host

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray


def backend(what: str, a: GPUArray) -> ModuleType:
    """The module whose function `what` factorizes a: on_host or small."""
    if host.computes():
        return import_module("pygpukit.ops.linalg.on_host")
    from pygpukit.ops.linalg import small

    if not small.fits(what, a):
        raise BackendUnavailableError(
            f"{what}: matrices of shape {a.shape[-2:]} are too large for the kernels of this package, which take up to "
            f"{small.LONGEST} rows and columns; use a.to_numpy() and NumPy"
        )
    return small
