"""The cost of work: where the device's time and memory went, times of one launch, and the limits of the device."""

from pygpukit.profiling.chrome import export_chrome_trace, export_combined_trace
from pygpukit.profiling.memory import (
    Leak,
    MemoryProfiler,
    MemorySnapshot,
    get_current_memory_usage,
    print_memory_summary,
)
from pygpukit.profiling.nvtx_ranges import NvtxRanges, nvtx_ranges
from pygpukit.profiling.profiler import Profiler, ProfilerContext, get_global_profiler, profile_matmul
from pygpukit.profiling.record import KernelRecord
from pygpukit.profiling.trace import Profile, profile
from pygpukit.profiling.waiting import Wait
from pygpukit.profiling.work import Total, Work

__all__ = [
    "KernelRecord",
    "Leak",
    "MemoryProfiler",
    "MemorySnapshot",
    "NvtxRanges",
    "Profile",
    "Profiler",
    "ProfilerContext",
    "Total",
    "Wait",
    "Work",
    "export_chrome_trace",
    "export_combined_trace",
    "get_current_memory_usage",
    "get_global_profiler",
    "nvtx_ranges",
    "print_memory_summary",
    "profile",
    "profile_matmul",
]


def __dir__() -> list[str]:
    """The module's public names, without what it imports."""
    return sorted(__all__)
