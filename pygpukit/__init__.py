"""pygpukit: GPU arrays, JIT kernels, memory and scheduling for notebooks, on a CUDA device or a simulated one.

Importing this package loads nothing but itself: every name is fetched on first use, so that neither NumPy nor the CUDA
driver is opened before something needs it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Module: the public names that live there. tools/name_stubs.py writes __init__.pyi, for type checkers, from it.
_HOMES = {
    "pygpukit._core": "__version__",
    "pygpukit.array.array": "GPUArray",
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
        "PageableMemoryWarning ShapeError TaskCancelledError TaskRejectedError "
        "UnsliceableError"
    ),
    "pygpukit.core.event": "CudaEvent Event event_elapsed_ms event_elapsed_us",
    "pygpukit.array.factory": (
        "arange asarray empty empty_like from_dlpack from_numpy full full_like ones ones_like zeros zeros_like"
    ),
    "pygpukit.core.graph": "Graph",
    "pygpukit.core.sharing": "DeviceSharing device_sharing",
    "pygpukit.core.stream": "Stream StreamManager StreamPriority current_stream default_stream synchronize",
    "pygpukit.jit": (
        "JITKernel check_driver_compatibility compile_all get_driver_requirements get_nvrtc_path get_nvrtc_version "
        "get_warmup_error is_nvrtc_available is_warmup_done warmup"
    ),
    "pygpukit.jupyter": "load_ipython_extension unload_ipython_extension",
    "pygpukit.memory.collect": "gc",
    "pygpukit.ops.elementwise.activation": "geglu gelu relu relu2 sigmoid silu swiglu",
    "pygpukit.ops.shape.building": "diag eye linspace meshgrid",
    "pygpukit.ops.elementwise.comparing": "allclose isclose",
    "pygpukit.ops.scan.differences": "diff",
    "pygpukit.ops.sorting.distinct": "unique unique_all unique_counts unique_inverse unique_values",
    "pygpukit.ops.elementwise": (
        "abs absolute add clamp clip conj conjugate div divide floor_divide maximum minimum mod mul multiply neg "
        "negative positive pow power remainder square sub subtract true_divide where"
    ),
    "pygpukit.ops.indexing.finding": "argwhere flatnonzero nonzero",
    "pygpukit.ops.fusion": "FuseError fuse",
    "pygpukit.ops.indexing": "compress put put_along_axis take take_along_axis",
    "pygpukit.ops.shape.joining": "array_split concat concatenate dstack hstack split stack unstack vstack",
    "pygpukit.ops.elementwise.logic": (
        "bitwise_and bitwise_invert bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor "
        "equal greater greater_equal invert isfinite isinf isnan left_shift less less_equal logical_and "
        "logical_not logical_or logical_xor not_equal right_shift signbit"
    ),
    "pygpukit.ops.elementwise.math": (
        "acos acosh arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan atan2 atanh ceil copysign "
        "cos cosh erf exp exp2 expm1 floor fmax fmin hypot imag log log10 log1p log2 logaddexp nextafter real "
        "reciprocal round rsqrt sign sin sinh sqrt tan tanh trunc"
    ),
    "pygpukit.ops.matmul.gemm": "matmul",
    "pygpukit.ops.nn.attention": "sdpa_causal",
    "pygpukit.ops.nn.bias": "bias_add_inplace linear_bias_gelu",
    "pygpukit.ops.nn.conv": "conv1d conv2d",
    "pygpukit.ops.nn.embedding": "embedding",
    "pygpukit.ops.nn.lstm": "lstm_bidirectional lstm_forward",
    "pygpukit.ops.nn.norm": "groupnorm l2norm layernorm rmsnorm",
    "pygpukit.ops.nn.rope": "rope_inplace",
    "pygpukit.ops.nn.rope.tables": "rope_init_linear rope_init_llama3 rope_init_ntk_aware rope_init_yarn",
    "pygpukit.ops.nn.softmax": "log_softmax softmax",
    "pygpukit.ops.indexing.padding": "pad repeat roll tile tril triu",
    "pygpukit.ops.matmul.products": "dot inner outer vdot",
    "pygpukit.ops.reduce": (
        "all amax amin any argmax argmin count_nonzero logsumexp max mean min norm prod std sum sum_axis var"
    ),
    "pygpukit.ops.nn.sampling": "sample_token set_sampling_seed",
    "pygpukit.ops.scan": "cumprod cumsum cumulative_prod cumulative_sum",
    "pygpukit.ops.shape": (
        "atleast_1d atleast_2d broadcast_arrays broadcast_to diagonal expand_dims flatten flip fliplr flipud "
        "matrix_transpose moveaxis permute permute_dims ravel reshape rot90 squeeze swapaxes transpose"
    ),
    "pygpukit.ops.sorting": "argsort searchsorted sort topk",
}
# `jit` and `array` can be called, too: the sub-package and the function share the name.
_SUBMODULES = (
    "array",
    "array_api",
    "benchmark",
    "cache",
    "core",
    "dashboard",
    "jit",
    "jupyter",
    "lab",
    "llm",
    "memory",
    "models",
    "ops",
    "random",
    "scheduler",
    "worker",
)

_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}
__all__ = [*_HOME_OF, "array", "jit", "memory", "ops", "random", "scheduler"]


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value = getattr(import_module(_HOME_OF[name]), name)
    elif name in _SUBMODULES:
        value = import_module(f"pygpukit.{name}")
    else:
        raise AttributeError(f"module 'pygpukit' has no attribute {name!r}{_nearest(name)}")
    globals()[name] = value
    return value


def _nearest(name: str) -> str:
    """The public names most like one that is missing, as the end of a sentence."""
    if name.startswith("_"):
        return ""
    from difflib import get_close_matches

    found = get_close_matches(name, __dir__(), 3)
    return f"; did you mean {' or '.join(found)}?" if found else "; dir(pygpukit) lists what there is"


def __dir__() -> list[str]:
    return sorted({*__all__, *_SUBMODULES})
