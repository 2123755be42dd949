"""A documented path: what is here lives in pygpukit/array/array.py, with its methods."""

from pygpukit.ops.methods.bind import GPUArray

__all__ = ["GPUArray"]
