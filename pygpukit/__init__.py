"""pygpukit: GPU arrays, JIT kernels, memory and scheduling for notebooks, on a CUDA device or a simulated one.

Importing this package loads nothing but itself: every name is fetched on first use, so that neither NumPy nor the CUDA
driver is opened before something needs it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pygpukit import array_api as array_api
    from pygpukit import cache as cache
    from pygpukit import dashboard as dashboard
    from pygpukit import jupyter as jupyter
    from pygpukit import memory as memory
    from pygpukit import ops as ops
    from pygpukit import random as random
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
    from pygpukit.core.errors import UnsliceableError as UnsliceableError
    from pygpukit.core.event import CudaEvent as CudaEvent
    from pygpukit.core.event import Event as Event
    from pygpukit.core.event import event_elapsed_ms as event_elapsed_ms
    from pygpukit.core.event import event_elapsed_us as event_elapsed_us
    from pygpukit.core.factory import arange as arange
    from pygpukit.core.factory import asarray as asarray
    from pygpukit.core.factory import empty as empty
    from pygpukit.core.factory import empty_like as empty_like
    from pygpukit.core.factory import from_dlpack as from_dlpack
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
    from pygpukit.memory.collect import gc as gc
    from pygpukit.ops.activation import geglu as geglu
    from pygpukit.ops.activation import gelu as gelu
    from pygpukit.ops.activation import relu as relu
    from pygpukit.ops.activation import relu2 as relu2
    from pygpukit.ops.activation import sigmoid as sigmoid
    from pygpukit.ops.activation import silu as silu
    from pygpukit.ops.activation import swiglu as swiglu
    from pygpukit.ops.building import diag as diag
    from pygpukit.ops.building import eye as eye
    from pygpukit.ops.building import linspace as linspace
    from pygpukit.ops.building import meshgrid as meshgrid
    from pygpukit.ops.elementwise import abs as abs
    from pygpukit.ops.elementwise import absolute as absolute
    from pygpukit.ops.elementwise import add as add
    from pygpukit.ops.elementwise import clamp as clamp
    from pygpukit.ops.elementwise import clip as clip
    from pygpukit.ops.elementwise import conj as conj
    from pygpukit.ops.elementwise import conjugate as conjugate
    from pygpukit.ops.elementwise import div as div
    from pygpukit.ops.elementwise import divide as divide
    from pygpukit.ops.elementwise import floor_divide as floor_divide
    from pygpukit.ops.elementwise import maximum as maximum
    from pygpukit.ops.elementwise import minimum as minimum
    from pygpukit.ops.elementwise import mod as mod
    from pygpukit.ops.elementwise import mul as mul
    from pygpukit.ops.elementwise import multiply as multiply
    from pygpukit.ops.elementwise import neg as neg
    from pygpukit.ops.elementwise import negative as negative
    from pygpukit.ops.elementwise import positive as positive
    from pygpukit.ops.elementwise import pow as pow
    from pygpukit.ops.elementwise import power as power
    from pygpukit.ops.elementwise import remainder as remainder
    from pygpukit.ops.elementwise import square as square
    from pygpukit.ops.elementwise import sub as sub
    from pygpukit.ops.elementwise import subtract as subtract
    from pygpukit.ops.elementwise import true_divide as true_divide
    from pygpukit.ops.elementwise import where as where
    from pygpukit.ops.fuse import FuseError as FuseError
    from pygpukit.ops.fuse import fuse as fuse
    from pygpukit.ops.indexing import compress as compress
    from pygpukit.ops.indexing import put as put
    from pygpukit.ops.indexing import put_along_axis as put_along_axis
    from pygpukit.ops.indexing import take as take
    from pygpukit.ops.indexing import take_along_axis as take_along_axis
    from pygpukit.ops.joining import array_split as array_split
    from pygpukit.ops.joining import concat as concat
    from pygpukit.ops.joining import concatenate as concatenate
    from pygpukit.ops.joining import dstack as dstack
    from pygpukit.ops.joining import hstack as hstack
    from pygpukit.ops.joining import split as split
    from pygpukit.ops.joining import stack as stack
    from pygpukit.ops.joining import unstack as unstack
    from pygpukit.ops.joining import vstack as vstack
    from pygpukit.ops.logic import bitwise_and as bitwise_and
    from pygpukit.ops.logic import bitwise_invert as bitwise_invert
    from pygpukit.ops.logic import bitwise_left_shift as bitwise_left_shift
    from pygpukit.ops.logic import bitwise_not as bitwise_not
    from pygpukit.ops.logic import bitwise_or as bitwise_or
    from pygpukit.ops.logic import bitwise_right_shift as bitwise_right_shift
    from pygpukit.ops.logic import bitwise_xor as bitwise_xor
    from pygpukit.ops.logic import equal as equal
    from pygpukit.ops.logic import greater as greater
    from pygpukit.ops.logic import greater_equal as greater_equal
    from pygpukit.ops.logic import invert as invert
    from pygpukit.ops.logic import isfinite as isfinite
    from pygpukit.ops.logic import isinf as isinf
    from pygpukit.ops.logic import isnan as isnan
    from pygpukit.ops.logic import left_shift as left_shift
    from pygpukit.ops.logic import less as less
    from pygpukit.ops.logic import less_equal as less_equal
    from pygpukit.ops.logic import logical_and as logical_and
    from pygpukit.ops.logic import logical_not as logical_not
    from pygpukit.ops.logic import logical_or as logical_or
    from pygpukit.ops.logic import logical_xor as logical_xor
    from pygpukit.ops.logic import not_equal as not_equal
    from pygpukit.ops.logic import right_shift as right_shift
    from pygpukit.ops.logic import signbit as signbit
    from pygpukit.ops.math import acos as acos
    from pygpukit.ops.math import acosh as acosh
    from pygpukit.ops.math import arccos as arccos
    from pygpukit.ops.math import arccosh as arccosh
    from pygpukit.ops.math import arcsin as arcsin
    from pygpukit.ops.math import arcsinh as arcsinh
    from pygpukit.ops.math import arctan as arctan
    from pygpukit.ops.math import arctan2 as arctan2
    from pygpukit.ops.math import arctanh as arctanh
    from pygpukit.ops.math import asin as asin
    from pygpukit.ops.math import asinh as asinh
    from pygpukit.ops.math import atan as atan
    from pygpukit.ops.math import atan2 as atan2
    from pygpukit.ops.math import atanh as atanh
    from pygpukit.ops.math import ceil as ceil
    from pygpukit.ops.math import copysign as copysign
    from pygpukit.ops.math import cos as cos
    from pygpukit.ops.math import cosh as cosh
    from pygpukit.ops.math import erf as erf
    from pygpukit.ops.math import exp as exp
    from pygpukit.ops.math import exp2 as exp2
    from pygpukit.ops.math import expm1 as expm1
    from pygpukit.ops.math import floor as floor
    from pygpukit.ops.math import fmax as fmax
    from pygpukit.ops.math import fmin as fmin
    from pygpukit.ops.math import hypot as hypot
    from pygpukit.ops.math import imag as imag
    from pygpukit.ops.math import log as log
    from pygpukit.ops.math import log1p as log1p
    from pygpukit.ops.math import log2 as log2
    from pygpukit.ops.math import log10 as log10
    from pygpukit.ops.math import logaddexp as logaddexp
    from pygpukit.ops.math import nextafter as nextafter
    from pygpukit.ops.math import real as real
    from pygpukit.ops.math import reciprocal as reciprocal
    from pygpukit.ops.math import round as round
    from pygpukit.ops.math import rsqrt as rsqrt
    from pygpukit.ops.math import sign as sign
    from pygpukit.ops.math import sin as sin
    from pygpukit.ops.math import sinh as sinh
    from pygpukit.ops.math import sqrt as sqrt
    from pygpukit.ops.math import tan as tan
    from pygpukit.ops.math import tanh as tanh
    from pygpukit.ops.math import trunc as trunc
    from pygpukit.ops.matmul.gemm import matmul as matmul
    from pygpukit.ops.nn.attention import sdpa_causal as sdpa_causal
    from pygpukit.ops.nn.bias import bias_add_inplace as bias_add_inplace
    from pygpukit.ops.nn.bias import linear_bias_gelu as linear_bias_gelu
    from pygpukit.ops.nn.conv import conv1d as conv1d
    from pygpukit.ops.nn.conv import conv2d as conv2d
    from pygpukit.ops.nn.embedding import embedding as embedding
    from pygpukit.ops.nn.lstm import lstm_bidirectional as lstm_bidirectional
    from pygpukit.ops.nn.lstm import lstm_forward as lstm_forward
    from pygpukit.ops.nn.norm import groupnorm as groupnorm
    from pygpukit.ops.nn.norm import l2norm as l2norm
    from pygpukit.ops.nn.norm import layernorm as layernorm
    from pygpukit.ops.nn.norm import rmsnorm as rmsnorm
    from pygpukit.ops.nn.rope import rope_inplace as rope_inplace
    from pygpukit.ops.nn.rope_tables import rope_init_linear as rope_init_linear
    from pygpukit.ops.nn.rope_tables import rope_init_llama3 as rope_init_llama3
    from pygpukit.ops.nn.rope_tables import rope_init_ntk_aware as rope_init_ntk_aware
    from pygpukit.ops.nn.rope_tables import rope_init_yarn as rope_init_yarn
    from pygpukit.ops.nn.softmax import log_softmax as log_softmax
    from pygpukit.ops.nn.softmax import softmax as softmax
    from pygpukit.ops.padding import pad as pad
    from pygpukit.ops.padding import repeat as repeat
    from pygpukit.ops.padding import roll as roll
    from pygpukit.ops.padding import tile as tile
    from pygpukit.ops.padding import tril as tril
    from pygpukit.ops.padding import triu as triu
    from pygpukit.ops.reduction import all as all
    from pygpukit.ops.reduction import amax as amax
    from pygpukit.ops.reduction import amin as amin
    from pygpukit.ops.reduction import any as any
    from pygpukit.ops.reduction import argmax as argmax
    from pygpukit.ops.reduction import argmin as argmin
    from pygpukit.ops.reduction import count_nonzero as count_nonzero
    from pygpukit.ops.reduction import logsumexp as logsumexp
    from pygpukit.ops.reduction import max as max
    from pygpukit.ops.reduction import mean as mean
    from pygpukit.ops.reduction import min as min
    from pygpukit.ops.reduction import norm as norm
    from pygpukit.ops.reduction import prod as prod
    from pygpukit.ops.reduction import std as std
    from pygpukit.ops.reduction import sum as sum
    from pygpukit.ops.reduction import sum_axis as sum_axis
    from pygpukit.ops.reduction import var as var
    from pygpukit.ops.sampling import sample_token as sample_token
    from pygpukit.ops.sampling import set_sampling_seed as set_sampling_seed
    from pygpukit.ops.scan import argwhere as argwhere
    from pygpukit.ops.scan import cumprod as cumprod
    from pygpukit.ops.scan import cumsum as cumsum
    from pygpukit.ops.scan import cumulative_prod as cumulative_prod
    from pygpukit.ops.scan import cumulative_sum as cumulative_sum
    from pygpukit.ops.scan import flatnonzero as flatnonzero
    from pygpukit.ops.scan import nonzero as nonzero
    from pygpukit.ops.shape import atleast_1d as atleast_1d
    from pygpukit.ops.shape import atleast_2d as atleast_2d
    from pygpukit.ops.shape import broadcast_arrays as broadcast_arrays
    from pygpukit.ops.shape import broadcast_to as broadcast_to
    from pygpukit.ops.shape import diagonal as diagonal
    from pygpukit.ops.shape import expand_dims as expand_dims
    from pygpukit.ops.shape import flatten as flatten
    from pygpukit.ops.shape import flip as flip
    from pygpukit.ops.shape import fliplr as fliplr
    from pygpukit.ops.shape import flipud as flipud
    from pygpukit.ops.shape import matrix_transpose as matrix_transpose
    from pygpukit.ops.shape import moveaxis as moveaxis
    from pygpukit.ops.shape import permute as permute
    from pygpukit.ops.shape import permute_dims as permute_dims
    from pygpukit.ops.shape import ravel as ravel
    from pygpukit.ops.shape import reshape as reshape
    from pygpukit.ops.shape import rot90 as rot90
    from pygpukit.ops.shape import squeeze as squeeze
    from pygpukit.ops.shape import swapaxes as swapaxes
    from pygpukit.ops.shape import transpose as transpose
    from pygpukit.ops.sorting import argsort as argsort
    from pygpukit.ops.sorting import searchsorted as searchsorted
    from pygpukit.ops.sorting import sort as sort
    from pygpukit.ops.sorting import topk as topk
    from pygpukit.ops.unique import unique as unique
    from pygpukit.ops.unique import unique_all as unique_all
    from pygpukit.ops.unique import unique_counts as unique_counts
    from pygpukit.ops.unique import unique_inverse as unique_inverse
    from pygpukit.ops.unique import unique_values as unique_values

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
        "complex128",
        "complex64",
        "float16",
        "float32",
        "float4_e2m1",
        "float64",
        "float8_e4m3",
        "float8_e5m2",
        "int16",
        "int32",
        "int4",
        "int64",
        "int8",
        "uint16",
        "uint32",
        "uint64",
        "uint8",
    ),
    "pygpukit.core.errors": (
        "BackendFallbackWarning",
        "BackendUnavailableError",
        "CompileAllError",
        "CompileError",
        "DTypeError",
        "DeviceMismatchError",
        "Diagnostic",
        "DriverError",
        "GPUError",
        "InvalidSpecError",
        "KernelArgumentError",
        "NvrtcError",
        "NvrtcErrorCode",
        "OutOfMemoryError",
        "ShapeError",
        "TaskCancelledError",
        "TaskRejectedError",
        "UnsliceableError",
    ),
    "pygpukit.core.event": (
        "CudaEvent",
        "Event",
        "event_elapsed_ms",
        "event_elapsed_us",
    ),
    "pygpukit.core.factory": (
        "arange",
        "asarray",
        "empty",
        "empty_like",
        "from_dlpack",
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
    "pygpukit.jupyter": (
        "load_ipython_extension",
        "unload_ipython_extension",
    ),
    "pygpukit.memory.collect": ("gc",),
    "pygpukit.ops.activation": (
        "geglu",
        "gelu",
        "relu",
        "relu2",
        "sigmoid",
        "silu",
        "swiglu",
    ),
    "pygpukit.ops.building": (
        "diag",
        "eye",
        "linspace",
        "meshgrid",
    ),
    "pygpukit.ops.elementwise": (
        "abs",
        "absolute",
        "add",
        "clamp",
        "clip",
        "conj",
        "conjugate",
        "div",
        "divide",
        "floor_divide",
        "maximum",
        "minimum",
        "mod",
        "mul",
        "multiply",
        "neg",
        "negative",
        "positive",
        "pow",
        "power",
        "remainder",
        "square",
        "sub",
        "subtract",
        "true_divide",
        "where",
    ),
    "pygpukit.ops.fuse": (
        "FuseError",
        "fuse",
    ),
    "pygpukit.ops.indexing": (
        "compress",
        "put",
        "put_along_axis",
        "take",
        "take_along_axis",
    ),
    "pygpukit.ops.joining": (
        "array_split",
        "concat",
        "concatenate",
        "dstack",
        "hstack",
        "split",
        "stack",
        "unstack",
        "vstack",
    ),
    "pygpukit.ops.logic": (
        "bitwise_and",
        "bitwise_invert",
        "bitwise_left_shift",
        "bitwise_not",
        "bitwise_or",
        "bitwise_right_shift",
        "bitwise_xor",
        "equal",
        "greater",
        "greater_equal",
        "invert",
        "isfinite",
        "isinf",
        "isnan",
        "left_shift",
        "less",
        "less_equal",
        "logical_and",
        "logical_not",
        "logical_or",
        "logical_xor",
        "not_equal",
        "right_shift",
        "signbit",
    ),
    "pygpukit.ops.math": (
        "acos",
        "acosh",
        "arccos",
        "arccosh",
        "arcsin",
        "arcsinh",
        "arctan",
        "arctan2",
        "arctanh",
        "asin",
        "asinh",
        "atan",
        "atan2",
        "atanh",
        "ceil",
        "copysign",
        "cos",
        "cosh",
        "erf",
        "exp",
        "exp2",
        "expm1",
        "floor",
        "fmax",
        "fmin",
        "hypot",
        "imag",
        "log",
        "log10",
        "log1p",
        "log2",
        "logaddexp",
        "nextafter",
        "real",
        "reciprocal",
        "round",
        "rsqrt",
        "sign",
        "sin",
        "sinh",
        "sqrt",
        "tan",
        "tanh",
        "trunc",
    ),
    "pygpukit.ops.matmul.gemm": ("matmul",),
    "pygpukit.ops.nn.attention": ("sdpa_causal",),
    "pygpukit.ops.nn.bias": (
        "bias_add_inplace",
        "linear_bias_gelu",
    ),
    "pygpukit.ops.nn.conv": (
        "conv1d",
        "conv2d",
    ),
    "pygpukit.ops.nn.embedding": ("embedding",),
    "pygpukit.ops.nn.lstm": (
        "lstm_bidirectional",
        "lstm_forward",
    ),
    "pygpukit.ops.nn.norm": (
        "groupnorm",
        "l2norm",
        "layernorm",
        "rmsnorm",
    ),
    "pygpukit.ops.nn.rope": ("rope_inplace",),
    "pygpukit.ops.nn.rope_tables": (
        "rope_init_linear",
        "rope_init_llama3",
        "rope_init_ntk_aware",
        "rope_init_yarn",
    ),
    "pygpukit.ops.nn.softmax": (
        "log_softmax",
        "softmax",
    ),
    "pygpukit.ops.padding": (
        "pad",
        "repeat",
        "roll",
        "tile",
        "tril",
        "triu",
    ),
    "pygpukit.ops.reduction": (
        "all",
        "amax",
        "amin",
        "any",
        "argmax",
        "argmin",
        "count_nonzero",
        "logsumexp",
        "max",
        "mean",
        "min",
        "norm",
        "prod",
        "std",
        "sum",
        "sum_axis",
        "var",
    ),
    "pygpukit.ops.sampling": (
        "sample_token",
        "set_sampling_seed",
    ),
    "pygpukit.ops.scan": (
        "argwhere",
        "cumprod",
        "cumsum",
        "cumulative_prod",
        "cumulative_sum",
        "flatnonzero",
        "nonzero",
    ),
    "pygpukit.ops.shape": (
        "atleast_1d",
        "atleast_2d",
        "broadcast_arrays",
        "broadcast_to",
        "diagonal",
        "expand_dims",
        "flatten",
        "flip",
        "fliplr",
        "flipud",
        "matrix_transpose",
        "moveaxis",
        "permute",
        "permute_dims",
        "ravel",
        "reshape",
        "rot90",
        "squeeze",
        "swapaxes",
        "transpose",
    ),
    "pygpukit.ops.sorting": (
        "argsort",
        "searchsorted",
        "sort",
        "topk",
    ),
    "pygpukit.ops.unique": (
        "unique",
        "unique_all",
        "unique_counts",
        "unique_inverse",
        "unique_values",
    ),
}
# `jit` can be called, too: the sub-package and the documented function share the name.
_SUBMODULES = (
    "array_api",
    "benchmark",
    "cache",
    "core",
    "dashboard",
    "jit",
    "jupyter",
    "memory",
    "ops",
    "random",
    "scheduler",
    "worker",
)

_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}
__all__ = [*_HOME_OF, "jit", "memory", "ops", "random", "scheduler"]


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
