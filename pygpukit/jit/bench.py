"""A documented path: what is here lives in pygpukit/jit/measure/bench.py."""

from pygpukit.jit.measure.bench import BenchResult, Clocks, bench, checked_work, from_fields

__all__ = ["BenchResult", "Clocks", "bench", "checked_work", "from_fields"]
