"""Where matrices are factorized: NumPy on the simulated device."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

from pygpukit.core.errors import BackendUnavailableError
from pygpukit.ops import host

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray


def backend(what: str, a: GPUArray) -> ModuleType:
    """The module whose function `what` factorizes a."""
    if not host.computes():
        raise BackendUnavailableError(
            f"{what}: matrices of shape {a.shape[-2:]} are not factorized on a GPU yet; use a.to_numpy() and NumPy"
        )
    from pygpukit.ops.linalg import on_host

    return on_host
