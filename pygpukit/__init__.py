"""Where to start: `import pygpukit as gp`, in a notebook `%load_ext pygpukit`, and then

- arrays: gp.array([1, 2, 3]), gp.zeros((2, 3)), gp.from_numpy(x); x @ y, gp.sin(x), x.sum(); x.to_numpy() for the host;
- kernels: a `%%cuda` cell, or gp.jit(source, "name"), called as kernel(x, n) or kernel[grid, block](x, n);
- models: gp.llm.load("smollm2-135m-instruct").chat("Hello"), gp.asr, gp.tts; gp.models.table() lists what there is;
- sharing: gp.scheduler.Scheduler().submit(function, memory="512MB", bandwidth=0.2); gp.memory for pools;
- looking: gp.dashboard.scheduler(), gp.dashboard.memory(); gp.backend() says whether the device is simulated.

gp.<tab> has what most need; operations of models and variants for single devices are completed in gp.ops, and stay
reachable here. `gp.matmul?` has parameters, results, errors and an example. `pygpukit lab` opens a tour.

pygpukit: GPU arrays, JIT kernels, memory and scheduling for notebooks, on a CUDA device or a simulated one. Importing
it loads nothing but itself: every name is fetched on first use, so that neither NumPy nor the CUDA driver is opened
before something needs it.
"""

from __future__ import annotations

from importlib import import_module
from types import FunctionType
from typing import Any

from pygpukit.compat import paths

paths.install()

# Module: the public names that live there, beside the operations, which ops/ knows itself. tools/name_stubs.py writes
# __init__.pyi, for type checkers, from both.
_HOMES = {
    "pygpukit._core": "__version__",
    "pygpukit.ops.methods.bind": "GPUArray",
    "pygpukit.core.backend": "backend",
    "pygpukit.core.capabilities": "DeviceCapabilities KernelType",
    "pygpukit.core.device": (
        "DeviceInfo device_count get_device_capabilities get_device_info get_memory_info is_cuda_available"
    ),
    "pygpukit.core.dtypes": (
        "DataType bfloat16 bool_ complex128 complex64 float16 float32 float4_e2m1 float64 float8_e4m3 float8_e5m2 "
        "int16 int32 int4 int64 int8 uint16 uint32 uint64 uint8"
    ),
    "pygpukit.core.errors": (
        "BackendFallbackWarning BackendUnavailableError CompileAllError CompileError ContextDestroyedError DTypeError "
        "DeviceMismatchError Diagnostic DriverError GPUError InvalidSpecError KernelArgumentError ModelFileError "
        "ModelNotFoundError NvrtcError NvrtcErrorCode OutOfMemoryError "
        "PageableMemoryWarning PluginError ShapeError TaskCancelledError TaskRejectedError "
        "UnsliceableError"
    ),
    "pygpukit.core.event": "CudaEvent Event event_elapsed_ms event_elapsed_us",
    "pygpukit.array.factory": (
        "arange asarray empty empty_like from_dlpack from_numpy full full_like ones ones_like zeros zeros_like"
    ),
    "pygpukit.array_api": "e inf nan newaxis pi",
    "pygpukit.array_api.datatypes": "finfo iinfo isdtype result_type",
    "pygpukit.core.graph": "Graph",
    "pygpukit.compat.cuda_graph": "CudaGraph",
    "pygpukit.core.sharing": "DeviceSharing device_sharing",
    "pygpukit.core.stream": "Stream StreamManager StreamPriority current_stream default_stream synchronize",
    "pygpukit.jit": (
        "JITKernel check_driver_compatibility compile_all get_driver_requirements get_nvrtc_path get_nvrtc_version "
        "get_warmup_error is_nvrtc_available is_warmup_done warmup"
    ),
    "pygpukit.compat.ops.nn.fp8_attention": "fa3_fp8_available get_sm_version sdpa_causal_fp8",
    "pygpukit.jupyter": "load_ipython_extension unload_ipython_extension",
    "pygpukit.memory.collect": "gc",
    "pygpukit.ops.audio.shown": "Audio",
    "pygpukit.textures": "Surface Texture",
}
# `jit` and `array` can be called, too: the sub-package and the function share the name.
_SUBMODULES = (
    "array",
    "array_api",
    "asr",
    "benchmark",
    "cache",
    "comm",
    "core",
    "cuda",
    "cutile",
    "dask",
    "dashboard",
    "fft",
    "jit",
    "jupyter",
    "lab",
    "linalg",
    "llm",
    "memory",
    "models",
    "ops",
    "pipeline",
    "plugins",
    "profiling",
    "random",
    "scheduler",
    "telemetry",
    "triton",
    "tts",
    "worker",
)

_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}


# Completed where they belong, and reachable here: operations of models and of single devices in gp.ops, but for these;
_APART = ("pygpukit.ops.nn", "pygpukit.ops.matmul")
_HERE = "dot gelu inner log_softmax matmul outer relu sigmoid silu softmax vdot"
# what looks into the machine; errors that are seldom caught; second names that NumPy does not have.
_SELDOM = (
    "BackendFallbackWarning BackendUnavailableError CompileAllError ContextDestroyedError CudaEvent CudaGraph "
    "DeviceCapabilities DeviceMismatchError Diagnostic DriverError Fused FuseError KernelType ModelFileError "
    "ModelNotFoundError NvrtcError NvrtcErrorCode PageableMemoryWarning PluginError StreamManager TaskCancelledError "
    "TaskRejectedError UnsliceableError check_driver_compatibility clamp compile_all conjugate div event_elapsed_ms "
    "event_elapsed_us fa3_fp8_available geglu get_device_capabilities get_driver_requirements get_nvrtc_path "
    "get_nvrtc_version get_sm_version get_warmup_error is_warmup_done load_ipython_extension mul neg permute relu2 "
    "sdpa_causal_fp8 sub sum_axis swiglu unload_ipython_extension warmup "
    # what few programs call.
    "argpartition around array_equiv atleast_3d block cbrt choose copyto deg2rad diag_indices diagflat divmod dsplit "
    "extract fabs fill_diagonal fix float_power fmod geomspace heaviside hsplit identity indices iscomplex isdtype "
    "isneginf isposinf isreal lexsort logaddexp2 logspace modf partition putmask rad2deg ravel_multi_index resize "
    "result_type rint setxor1d sinc tril_indices triu_indices unravel_index vsplit"
)


def _operations() -> dict[str, str]:
    from pygpukit.ops.names import public

    return public()


def _names() -> list[str]:
    return [*_HOME_OF, *_operations(), "array", "fft", "jit", "linalg", "memory", "ops", "random", "scheduler"]


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value = getattr(import_module(_HOME_OF[name]), name)
    elif name in _SUBMODULES:
        value = import_module(f"pygpukit.{name}")
    elif name == "__all__":
        return _names()
    elif not name.startswith("_") and name in _operations():
        value = getattr(import_module(_operations()[name]), name)
    else:
        raise AttributeError(f"module 'pygpukit' has no attribute {name!r}{_nearest(name)}")
    if not name.startswith("_") and isinstance(value, FunctionType):
        from pygpukit.ops.sections import add_to

        add_to(value, name)
    globals()[name] = value
    return value


def _nearest(name: str) -> str:
    """The public names most like one that is missing, as the end of a sentence."""
    if name.startswith("_"):
        return ""
    from difflib import get_close_matches

    close = get_close_matches(name, {*_names(), *_SUBMODULES}, 3)
    return f"; did you mean {' or '.join(close)}?" if close else "; dir(pygpukit) lists what there is"


def __dir__() -> list[str]:
    apart = {
        name for name, module in _operations().items() if f"{module}.".startswith(tuple(f"{one}." for one in _APART))
    }
    return sorted({*_names(), *_SUBMODULES} - (apart - {*_HERE.split()}) - {*_SELDOM.split()})
