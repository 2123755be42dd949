"""A documented path: what is here lives in pygpukit/array/array.py."""

from pygpukit.array.array import GPUArray

__all__ = ["GPUArray"]
