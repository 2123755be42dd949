"""Operations on arrays. Every name is fetched on first use: most programs use few of the families."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pygpukit.ops.matmul.gemm import (
    matmul,  # also the sub-package's name; the function is what `ops.matmul` means
)

if TYPE_CHECKING:
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
    from pygpukit.ops.copying import copy_to as copy_to
    from pygpukit.ops.elementwise import abs as abs
    from pygpukit.ops.elementwise import absolute as absolute
    from pygpukit.ops.elementwise import add as add
    from pygpukit.ops.elementwise import add_inplace as add_inplace
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
    from pygpukit.ops.elementwise import mul_inplace as mul_inplace
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
    from pygpukit.ops.nn.attention import sdpa_causal as sdpa_causal
    from pygpukit.ops.nn.attention import sdpa_causal_fixed_cache as sdpa_causal_fixed_cache
    from pygpukit.ops.nn.attention import sdpa_causal_fixed_cache_ptr as sdpa_causal_fixed_cache_ptr
    from pygpukit.ops.nn.bias import bias_add_inplace as bias_add_inplace
    from pygpukit.ops.nn.bias import linear_bias_gelu as linear_bias_gelu
    from pygpukit.ops.nn.conv import conv1d as conv1d
    from pygpukit.ops.nn.conv import conv2d as conv2d
    from pygpukit.ops.nn.embedding import embedding as embedding
    from pygpukit.ops.nn.embedding import embedding_lookup as embedding_lookup
    from pygpukit.ops.nn.embedding import embedding_lookup_batch as embedding_lookup_batch
    from pygpukit.ops.nn.embedding import embedding_lookup_ptr as embedding_lookup_ptr
    from pygpukit.ops.nn.lstm import lstm_bidirectional as lstm_bidirectional
    from pygpukit.ops.nn.lstm import lstm_forward as lstm_forward
    from pygpukit.ops.nn.norm import groupnorm as groupnorm
    from pygpukit.ops.nn.norm import l2norm as l2norm
    from pygpukit.ops.nn.norm import layernorm as layernorm
    from pygpukit.ops.nn.norm import rmsnorm as rmsnorm
    from pygpukit.ops.nn.rope import rope_inplace as rope_inplace
    from pygpukit.ops.nn.rope import rope_inplace_f32table as rope_inplace_f32table
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
    from pygpukit.ops.sampling import sample_greedy as sample_greedy
    from pygpukit.ops.sampling import sample_multinomial as sample_multinomial
    from pygpukit.ops.sampling import sample_token as sample_token
    from pygpukit.ops.sampling import sample_token_gpu as sample_token_gpu
    from pygpukit.ops.sampling import sample_topk as sample_topk
    from pygpukit.ops.sampling import sample_topk_to_buf_ptr as sample_topk_to_buf_ptr
    from pygpukit.ops.sampling import sample_topp as sample_topp
    from pygpukit.ops.sampling import set_sampling_seed as set_sampling_seed
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
    from pygpukit.ops.tensor import cast_bf16_to_f32 as cast_bf16_to_f32
    from pygpukit.ops.tensor import cast_f16_to_f32 as cast_f16_to_f32
    from pygpukit.ops.tensor import cast_f32_to_bf16 as cast_f32_to_bf16
    from pygpukit.ops.tensor import cast_f32_to_f16 as cast_f32_to_f16
    from pygpukit.ops.tensor import concat_axis0 as concat_axis0
    from pygpukit.ops.tensor import repeat_interleave_axis1 as repeat_interleave_axis1
    from pygpukit.ops.tensor import reshape_copy as reshape_copy
    from pygpukit.ops.tensor import transpose_3d_021 as transpose_3d_021
    from pygpukit.ops.tensor import transpose_4d_0213 as transpose_4d_0213

# Module: the names that live there.
_HOMES = {
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
    "pygpukit.ops.copying": ("copy_to",),
    "pygpukit.ops.elementwise": (
        "abs",
        "absolute",
        "add",
        "add_inplace",
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
        "mul_inplace",
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
    "pygpukit.ops.fuse": ("fuse",),
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
    "pygpukit.ops.nn.attention": (
        "sdpa_causal",
        "sdpa_causal_fixed_cache",
        "sdpa_causal_fixed_cache_ptr",
    ),
    "pygpukit.ops.nn.bias": (
        "bias_add_inplace",
        "linear_bias_gelu",
    ),
    "pygpukit.ops.nn.conv": (
        "conv1d",
        "conv2d",
    ),
    "pygpukit.ops.nn.embedding": (
        "embedding",
        "embedding_lookup",
        "embedding_lookup_batch",
        "embedding_lookup_ptr",
    ),
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
    "pygpukit.ops.nn.rope": (
        "rope_inplace",
        "rope_inplace_f32table",
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
        "sample_greedy",
        "sample_multinomial",
        "sample_token",
        "sample_token_gpu",
        "sample_topk",
        "sample_topk_to_buf_ptr",
        "sample_topp",
        "set_sampling_seed",
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
    "pygpukit.ops.tensor": (
        "cast_bf16_to_f32",
        "cast_f16_to_f32",
        "cast_f32_to_bf16",
        "cast_f32_to_f16",
        "concat_axis0",
        "repeat_interleave_axis1",
        "reshape_copy",
        "transpose_3d_021",
        "transpose_4d_0213",
    ),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [*_HOME_OF, "matmul"]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'pygpukit.ops' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
