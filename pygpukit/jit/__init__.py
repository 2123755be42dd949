"""Just-in-time compilation: CUDA C++ source to kernels that launch. `pygpukit.jit(...)` is `pygpukit.jit.jit(...)`."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pygpukit.core.errors import CompileAllError, CompileError, Diagnostic, NvrtcError, NvrtcErrorCode
from pygpukit.jit.cache.explain import explain
from pygpukit.jit.cache.store import kernel_cache
from pygpukit.jit.compile.compiler import compile_source
from pygpukit.jit.compile.nvrtc import (
    MIN_DRIVER_VERSION,
    MIN_DRIVER_VERSION_STR,
    MIN_SM_VERSION,
    MIN_SM_VERSION_STR,
    check_driver_compatibility,
    get_driver_requirements,
    get_nvrtc_path,
    get_nvrtc_version,
)
from pygpukit.jit.launch.kernel import JITKernel, jit
from pygpukit.jit.launch.unit import Unit

if TYPE_CHECKING:
    from pygpukit.jit.compile.available import is_nvrtc_available
    from pygpukit.jit.compile.warmup import get_warmup_error, is_warmup_done, warmup
    from pygpukit.jit.inspect.disassembly import ptx_lines, sass_lines
    from pygpukit.jit.inspect.occupancy import Occupancy
    from pygpukit.jit.launch.globals import GlobalVariable
    from pygpukit.jit.launch.parallel import CompileProgress, compile_all

__all__ = [
    "MIN_DRIVER_VERSION",
    "MIN_DRIVER_VERSION_STR",
    "MIN_SM_VERSION",
    "MIN_SM_VERSION_STR",
    "CompileAllError",
    "CompileError",
    "CompileProgress",
    "Diagnostic",
    "GlobalVariable",
    "JITKernel",
    "NvrtcError",
    "NvrtcErrorCode",
    "Occupancy",
    "Unit",
    "check_driver_compatibility",
    "compile_all",
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
    "ptx_lines",
    "sass_lines",
    "warmup",
]


# Loaded when it is asked for: a kernel from the cache needs none of it.
_LATER = {
    "CompileProgress": "launch.parallel",
    "GlobalVariable": "launch.globals",
    "Occupancy": "inspect.occupancy",
    "compile_all": "launch.parallel",
    "get_warmup_error": "compile.warmup",
    "is_nvrtc_available": "compile.available",
    "is_warmup_done": "compile.warmup",
    "ptx_lines": "inspect.disassembly",
    "sass_lines": "inspect.disassembly",
    "warmup": "compile.warmup",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)


class _Callable(ModuleType):
    """The package's module type: one name is both this package and the function, whichever was asked for first."""

    def __call__(self, *args: Any, **kwargs: Any) -> JITKernel:
        return jit(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable


def __dir__() -> list[str]:
    """The module's public names, without what it imports."""
    return sorted(__all__)
