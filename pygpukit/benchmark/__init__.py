"""Benchmarks: `python -m pygpukit.benchmark`, and the same as a library."""

from .base import Benchmark
from .classes import (
    LLM_CONFIGS,
    FP8GEMMBenchmark,
    GEMMBenchmark,
    GEMVBenchmark,
    GQABenchmark,
    SDPABenchmark,
    W8A8GEMVBenchmark,
)
from .cli import main
from .compare import ComparisonResult, Regression, compare_reports
from .environment import GPUInfo, get_gpu_info
from .measure import measure_kernel
from .render import print_markdown_table
from .result import BenchmarkReport, BenchmarkResult
from .suite import BenchmarkSuite, run_full, run_quick

__all__ = [
    "LLM_CONFIGS",
    "Benchmark",
    "BenchmarkReport",
    "BenchmarkResult",
    "BenchmarkSuite",
    "ComparisonResult",
    "FP8GEMMBenchmark",
    "GEMMBenchmark",
    "GEMVBenchmark",
    "GPUInfo",
    "GQABenchmark",
    "Regression",
    "SDPABenchmark",
    "W8A8GEMVBenchmark",
    "compare_reports",
    "get_gpu_info",
    "main",
    "measure_kernel",
    "print_markdown_table",
    "run_full",
    "run_quick",
]


def __dir__() -> list[str]:
    """The module's public names, without what it imports."""
    return sorted(__all__)
