"""pygpukit: GPU arrays, JIT kernels, memory and scheduling for notebooks, on a CUDA device or a simulated one.

Importing this package loads nothing but itself: every name is fetched on first use, so that neither NumPy nor the CUDA
driver is opened before something needs it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pygpukit import cache as cache
    from pygpukit import jupyter as jupyter
    from pygpukit import memory as memory
    from pygpukit import ops as ops
    from pygpukit import scheduler as scheduler
    from pygpukit._core import __version__ as __version__
    from pygpukit.core.array import GPUArray as GPUArray
    from pygpukit.core.backend import backend as backend
    from pygpukit.core.device import DeviceCapabilities as DeviceCapabilities
    from pygpukit.core.device import DeviceInfo as DeviceInfo
    from pygpukit.core.device import device_count as device_count
    from pygpukit.core.device import get_device_capabilities as get_device_capabilities
    from pygpukit.core.device import get_device_info as get_device_info
    from pygpukit.core.device import get_memory_info as get_memory_info
    from pygpukit.core.device import is_cuda_available as is_cuda_available
    from pygpukit.core.dtypes import DataType as DataType
    from pygpukit.core.dtypes import bfloat16 as bfloat16
    from pygpukit.core.dtypes import bool_ as bool_
    from pygpukit.core.dtypes import complex64 as complex64
    from pygpukit.core.dtypes import complex128 as complex128
    from pygpukit.core.dtypes import float4_e2m1 as float4_e2m1
    from pygpukit.core.dtypes import float8_e4m3 as float8_e4m3
    from pygpukit.core.dtypes import float8_e5m2 as float8_e5m2
    from pygpukit.core.dtypes import float16 as float16
    from pygpukit.core.dtypes import float32 as float32
    from pygpukit.core.dtypes import float64 as float64
    from pygpukit.core.dtypes import int4 as int4
    from pygpukit.core.dtypes import int8 as int8
    from pygpukit.core.dtypes import int16 as int16
    from pygpukit.core.dtypes import int32 as int32
    from pygpukit.core.dtypes import int64 as int64
    from pygpukit.core.dtypes import uint8 as uint8
    from pygpukit.core.dtypes import uint16 as uint16
    from pygpukit.core.dtypes import uint32 as uint32
    from pygpukit.core.dtypes import uint64 as uint64
    from pygpukit.core.errors import BackendFallbackWarning as BackendFallbackWarning
    from pygpukit.core.errors import BackendUnavailableError as BackendUnavailableError
    from pygpukit.core.errors import CompileAllError as CompileAllError
    from pygpukit.core.errors import CompileError as CompileError
    from pygpukit.core.errors import DeviceMismatchError as DeviceMismatchError
    from pygpukit.core.errors import Diagnostic as Diagnostic
    from pygpukit.core.errors import DriverError as DriverError
    from pygpukit.core.errors import DTypeError as DTypeError
    from pygpukit.core.errors import GPUError as GPUError
    from pygpukit.core.errors import InvalidSpecError as InvalidSpecError
    from pygpukit.core.errors import KernelArgumentError as KernelArgumentError
    from pygpukit.core.errors import NvrtcError as NvrtcError
    from pygpukit.core.errors import NvrtcErrorCode as NvrtcErrorCode
    from pygpukit.core.errors import OutOfMemoryError as OutOfMemoryError
    from pygpukit.core.errors import ShapeError as ShapeError
    from pygpukit.core.errors import TaskCancelledError as TaskCancelledError
    from pygpukit.core.errors import TaskRejectedError as TaskRejectedError
    from pygpukit.core.event import CudaEvent as CudaEvent
    from pygpukit.core.event import Event as Event
    from pygpukit.core.event import event_elapsed_ms as event_elapsed_ms
    from pygpukit.core.event import event_elapsed_us as event_elapsed_us
    from pygpukit.core.factory import arange as arange
    from pygpukit.core.factory import asarray as asarray
    from pygpukit.core.factory import empty as empty
    from pygpukit.core.factory import empty_like as empty_like
    from pygpukit.core.factory import from_numpy as from_numpy
    from pygpukit.core.factory import full as full
    from pygpukit.core.factory import full_like as full_like
    from pygpukit.core.factory import ones as ones
    from pygpukit.core.factory import ones_like as ones_like
    from pygpukit.core.factory import zeros as zeros
    from pygpukit.core.factory import zeros_like as zeros_like
    from pygpukit.core.graph import Graph as Graph
    from pygpukit.core.stream import Stream as Stream
    from pygpukit.core.stream import StreamManager as StreamManager
    from pygpukit.core.stream import StreamPriority as StreamPriority
    from pygpukit.core.stream import current_stream as current_stream
    from pygpukit.core.stream import default_stream as default_stream
    from pygpukit.core.stream import synchronize as synchronize
    from pygpukit.jit import JITKernel as JITKernel
    from pygpukit.jit import check_driver_compatibility as check_driver_compatibility
    from pygpukit.jit import compile_all as compile_all
    from pygpukit.jit import get_driver_requirements as get_driver_requirements
    from pygpukit.jit import get_nvrtc_path as get_nvrtc_path
    from pygpukit.jit import get_nvrtc_version as get_nvrtc_version
    from pygpukit.jit import get_warmup_error as get_warmup_error
    from pygpukit.jit import is_nvrtc_available as is_nvrtc_available
    from pygpukit.jit import is_warmup_done as is_warmup_done
    from pygpukit.jit import jit as jit
    from pygpukit.jit import warmup as warmup
    from pygpukit.jupyter import load_ipython_extension as load_ipython_extension
    from pygpukit.jupyter import unload_ipython_extension as unload_ipython_extension
    from pygpukit.ops.elementwise import add as add
    from pygpukit.ops.elementwise import div as div
    from pygpukit.ops.elementwise import mul as mul
    from pygpukit.ops.elementwise import neg as neg
    from pygpukit.ops.elementwise import sub as sub
    from pygpukit.ops.matmul.gemm import matmul as matmul

# Module: the public names that live there.
_HOMES = {
    "pygpukit._core": ("__version__",),
    "pygpukit.core.array": ("GPUArray",),
    "pygpukit.core.backend": ("backend",),
    "pygpukit.core.device": (
        "DeviceCapabilities",
        "DeviceInfo",
        "device_count",
        "get_device_capabilities",
        "get_device_info",
        "get_memory_info",
        "is_cuda_available",
    ),
    "pygpukit.core.dtypes": (
        "DataType",
        "bfloat16",
        "bool_",
        "complex64",
        "complex128",
        "float4_e2m1",
        "float8_e4m3",
        "float8_e5m2",
        "float16",
        "float32",
        "float64",
        "int4",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
    ),
    "pygpukit.core.errors": (
        "BackendFallbackWarning",
        "BackendUnavailableError",
        "CompileAllError",
        "CompileError",
        "DeviceMismatchError",
        "Diagnostic",
        "DriverError",
        "DTypeError",
        "GPUError",
        "InvalidSpecError",
        "KernelArgumentError",
        "NvrtcError",
        "NvrtcErrorCode",
        "OutOfMemoryError",
        "ShapeError",
        "TaskCancelledError",
        "TaskRejectedError",
    ),
    "pygpukit.core.event": ("CudaEvent", "Event", "event_elapsed_ms", "event_elapsed_us"),
    "pygpukit.core.factory": (
        "arange",
        "asarray",
        "empty",
        "empty_like",
        "from_numpy",
        "full",
        "full_like",
        "ones",
        "ones_like",
        "zeros",
        "zeros_like",
    ),
    "pygpukit.core.graph": ("Graph",),
    "pygpukit.core.stream": (
        "Stream",
        "StreamManager",
        "StreamPriority",
        "current_stream",
        "default_stream",
        "synchronize",
    ),
    "pygpukit.jit": (
        "JITKernel",
        "check_driver_compatibility",
        "compile_all",
        "get_driver_requirements",
        "get_nvrtc_path",
        "get_nvrtc_version",
        "get_warmup_error",
        "is_nvrtc_available",
        "is_warmup_done",
        "warmup",
    ),
    "pygpukit.jupyter": ("load_ipython_extension", "unload_ipython_extension"),
    "pygpukit.ops.elementwise": ("add", "div", "mul", "neg", "sub"),
    "pygpukit.ops.matmul.gemm": ("matmul",),
}
# `jit` can be called, too: the sub-package and the documented function share the name.
_SUBMODULES = ("benchmark", "cache", "core", "jit", "jupyter", "memory", "ops", "scheduler", "worker")

_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}
__all__ = [*_HOME_OF, "jit", "memory", "ops", "scheduler"]


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value = getattr(import_module(_HOME_OF[name]), name)
    elif name in _SUBMODULES:
        value = import_module(f"pygpukit.{name}")
    else:
        raise AttributeError(f"module 'pygpukit' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SUBMODULES})
