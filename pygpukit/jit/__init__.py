"""Just-in-time compilation: CUDA C++ source to kernels that launch. `pygpukit.jit(...)` is `pygpukit.jit.jit(...)`."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from pygpukit.core.errors import CompileError, Diagnostic, NvrtcError, NvrtcErrorCode
from pygpukit.jit.cache import explain, kernel_cache
from pygpukit.jit.compiler import compile_source
from pygpukit.jit.inspect import Occupancy
from pygpukit.jit.kernel import JITKernel, jit
from pygpukit.jit.nvrtc import (
    MIN_DRIVER_VERSION,
    MIN_DRIVER_VERSION_STR,
    MIN_SM_VERSION,
    MIN_SM_VERSION_STR,
    check_driver_compatibility,
    get_driver_requirements,
    get_nvrtc_path,
    get_nvrtc_version,
    get_warmup_error,
    is_nvrtc_available,
    is_warmup_done,
    warmup,
)

__all__ = [
    "MIN_DRIVER_VERSION",
    "MIN_DRIVER_VERSION_STR",
    "MIN_SM_VERSION",
    "MIN_SM_VERSION_STR",
    "CompileError",
    "Diagnostic",
    "JITKernel",
    "NvrtcError",
    "NvrtcErrorCode",
    "Occupancy",
    "check_driver_compatibility",
    "compile_source",
    "explain",
    "get_driver_requirements",
    "get_nvrtc_path",
    "get_nvrtc_version",
    "get_warmup_error",
    "is_nvrtc_available",
    "is_warmup_done",
    "jit",
    "kernel_cache",
    "warmup",
]


class _Callable(ModuleType):
    """The package's module type: one name is both this package and the function, whichever was asked for first."""

    def __call__(self, *args: Any, **kwargs: Any) -> JITKernel:
        return jit(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
