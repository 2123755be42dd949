"""A documented path: what is here lives in pygpukit/jit/measure/limits.py."""

from pygpukit.jit.measure.limits import Limits, catalogue, limits

__all__ = ["Limits", "catalogue", "limits"]
