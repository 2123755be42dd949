"""A documented path: what is here lives in pygpukit/profiling/limits.py."""

from pygpukit.profiling.limits import Limits, limits

__all__ = ["Limits", "limits"]
