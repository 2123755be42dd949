"""Triton on arrays, without PyTorch: four kernels of the package, and any `@triton.jit` function (docs/triton.md)."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "pygpukit.triton.array": "TritonArray from_gpuarray from_numpy",
    "pygpukit.triton.available": "get_triton get_triton_device triton_available triton_version use_triton_backend",
    "pygpukit.triton.kernel": "Kernel",
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = [
    "Kernel",
    "TritonArray",
    "from_gpuarray",
    "from_numpy",
    "get_triton",
    "get_triton_device",
    "kernels",
    "triton_available",
    "triton_version",
    "use_triton_backend",
]


def __getattr__(name: str) -> Any:
    if name == "kernels":
        return import_module("pygpukit.triton.kernels")
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
