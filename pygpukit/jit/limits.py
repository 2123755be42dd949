"""A documented path: what is here lives in pygpukit/jit/measure/limits.py."""

from pygpukit.jit.measure.limits import Limits, limits

__all__ = ["Limits", "limits"]
