"""A documented path: what is here lives in pygpukit/profiling/bench.py."""

from pygpukit.profiling.bench import BenchResult, Clocks, bench, checked_work, from_fields

__all__ = ["BenchResult", "Clocks", "bench", "checked_work", "from_fields"]
