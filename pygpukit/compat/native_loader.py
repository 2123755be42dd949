"""Which compiled core is loaded, as pygpukit._native_loader told it. There is one, for every version of CUDA."""

from __future__ import annotations

from pygpukit.core.backend import backend, get_native_module
from pygpukit.core.device import get_device_info, is_cuda_available

__all__ = ["get_driver_cuda_version", "get_loaded_cuda_version", "get_native_module"]


def get_driver_cuda_version() -> tuple[int, int] | None:
    """The newest CUDA version that the driver of this process's devices supports; None on the simulated one."""
    return get_device_info().driver_version if is_cuda_available() and backend() == "cuda" else None


def get_loaded_cuda_version() -> str:
    """The driver's CUDA version as text, such as "12.8": the core brings none. "" on the simulated device."""
    version = get_driver_cuda_version()
    return "" if version is None else f"{version[0]}.{version[1]}"
