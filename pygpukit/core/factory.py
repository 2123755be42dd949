"""A documented path: what is here lives in pygpukit/array/factory.py."""

from pygpukit.array.factory import (
    arange,
    asarray,
    empty,
    empty_like,
    from_dlpack,
    from_numpy,
    full,
    full_like,
    ones,
    ones_like,
    zeros,
    zeros_like,
)

__all__ = [
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
]
