"""A documented path: what is here lives in pygpukit/worker/counting.py."""

from pygpukit.worker.counting import Counts, count, count_in_worker

__all__ = ["Counts", "count", "count_in_worker"]
