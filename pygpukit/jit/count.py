"""A documented path: what is here lives in pygpukit/jit/measure/count.py."""

from pygpukit.jit.measure.count import Counts, count, count_in_worker

__all__ = ["Counts", "count", "count_in_worker"]
