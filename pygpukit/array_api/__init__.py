"""The array API standard, version 2025.12, over GPUArrays: the namespace that GPUArray.__array_namespace__() returns.

Functions that agree with ours are ours; the other modules of this package adapt those that differ. Everything is loaded
on first use. docs/array_api.md lists where results deviate from the standard's reference, and why.
"""

from __future__ import annotations

import math
from importlib import import_module
from types import ModuleType
from typing import Any

from pygpukit.array_api._lookup import MissingOperation as MissingOperation
from pygpukit.array_api._lookup import operation

__array_api_version__ = "2025.12"

_VERSIONS = ("2022.12", "2023.12", "2024.12", "2025.12")

e = math.e
inf = math.inf
nan = math.nan
newaxis = None
pi = math.pi

# Adapters: module of this package -> the standard's names that live there.
_ADAPTERS = {
    "creation": (
        "arange asarray empty empty_like eye from_dlpack full full_like linspace ones ones_like zeros zeros_like"
    ),
    "datatypes": "astype can_cast finfo iinfo isdtype result_type __array_namespace_info__",
    "functions": "broadcast_shapes diff isin nonzero searchsorted std take unstack var where",
    "linear_algebra": "vecdot",
}
# The same functions under the same names, and under ours.
_SAME = (
    "abs acos acosh add all any argmax argmin argsort asin asinh atan atan2 atanh bitwise_and bitwise_invert "
    "bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor broadcast_arrays broadcast_to ceil clip conj "
    "copysign cos cosh count_nonzero cumulative_prod cumulative_sum equal exp expand_dims expm1 flip floor "
    "floor_divide greater greater_equal hypot imag isfinite isinf isnan less less_equal log log10 log1p log2 "
    "logaddexp logical_and logical_not logical_or logical_xor matmul matrix_transpose max maximum mean meshgrid "
    "min minimum moveaxis nextafter not_equal positive pow prod real reciprocal remainder repeat reshape roll "
    "round sign signbit sin sinh sort sqrt square squeeze stack sum take_along_axis tan tanh tensordot tile tril triu "
    "trunc unique_all unique_counts unique_inverse unique_values"
)
_OURS = {
    "concat": "concatenate",
    "divide": "div",
    "multiply": "mul",
    "negative": "neg",
    "permute_dims": "transpose",
    "subtract": "sub",
}
_DTYPES = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 bfloat16 complex64 complex128"
_CONSTANTS = ("e", "inf", "nan", "newaxis", "pi")
_ADAPTER_OF = {name: module for module, names in _ADAPTERS.items() for name in names.split()}
_NAME_OF = {name: name for name in _SAME.split()} | _OURS
_DTYPE_OF = {name: name for name in _DTYPES.split()} | {"bool": "bool_"}

_EXTENSIONS = ("fft", "linalg")

__all__ = [*_CONSTANTS, *_ADAPTER_OF, *_NAME_OF, *_DTYPE_OF, *_EXTENSIONS]


def __getattr__(name: str) -> Any:
    if name in _ADAPTER_OF:
        value = getattr(import_module(f"pygpukit.array_api.{_ADAPTER_OF[name]}"), name)
    elif name in _NAME_OF:
        value = operation(_NAME_OF[name])
    elif name in _DTYPE_OF:
        value = getattr(import_module("pygpukit.core.dtypes"), _DTYPE_OF[name])
    elif name in _EXTENSIONS:
        value = import_module(f"pygpukit.array_api.{name}")
    else:
        raise AttributeError(f"module 'pygpukit.array_api' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


def checked(api_version: str | None) -> ModuleType:
    """This module. Raises ValueError for a version of the standard that it does not follow."""
    if api_version is not None and api_version not in _VERSIONS:
        raise ValueError(f"array API version {api_version!r} is not supported; use one of {', '.join(_VERSIONS)}")
    return import_module("pygpukit.array_api")
