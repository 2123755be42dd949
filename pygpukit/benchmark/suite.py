"""The suites of the command, and the runner that turns them into a report."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from .base import Benchmark
from .classes import (
    Config,
    FP8GEMMBenchmark,
    GEMMBenchmark,
    GEMVBenchmark,
    GQABenchmark,
    SDPABenchmark,
    Shape,
    W8A8GEMVBenchmark,
)
from .compare import ComparisonResult, compare_reports
from .environment import environment, get_gpu_info
from .result import BenchmarkReport, BenchmarkResult, Unavailable

# Name and module, in the order in which they are measured.
SUITES = {
    name: f"{__package__}.{name}"
    for name in ("pool", "launch", "jit", "limits", "arrays", "operators", "matmul", "attention", "conv")
}
LONG: set[str] = set()  # measured only where they are named


def register(package: str, names: Iterable[str], long: Iterable[str] = ()) -> None:
    """Make modules of another package suites of this process; `long`: those measured only where they are named."""
    SUITES.update({name: f"{package}.{name}" for name in names})
    LONG.update(long)


class SuiteModule(Protocol):
    """A module with `rows`, and with `peer_rows(ours, quick)` where peers exist."""

    def rows(self, quick: bool) -> Iterator[BenchmarkResult | Unavailable]: ...


def load(name: str) -> SuiteModule:
    """The module of a suite. Raises ValueError for an unknown name."""
    if name not in SUITES:
        raise ValueError(f"there is no suite {name!r}, but {', '.join(SUITES)}; a checkout has more: python -m bench")
    module: SuiteModule = importlib.import_module(SUITES[name])
    return module


class BenchmarkSuite:
    """Suites and benchmarks to run as one report; with `peers`, installed peers are measured in the same run."""

    def __init__(self, warmup: int = 10, iterations: int = 50, quick: bool = False, peers: bool = False) -> None:
        self.warmup = warmup
        self.iterations = iterations
        self.quick = quick
        self.peers = peers
        self.benchmarks: list[Benchmark] = []
        self.names: list[str] = []

    def add(self, benchmark: Benchmark | type[Benchmark]) -> BenchmarkSuite:
        """Add a benchmark, or a class to make one of with this suite's warmup and iterations."""
        if isinstance(benchmark, type):
            benchmark = benchmark(self.warmup, self.iterations)
        self.benchmarks.append(benchmark)
        return self

    def add_suite(self, *names: str) -> BenchmarkSuite:
        for name in names:
            load(name)
            self.names.append(name)
        return self

    def add_all(self) -> BenchmarkSuite:
        return self.add_suite(*(name for name in SUITES if name not in LONG))

    def add_gemm(self, sizes: Sequence[Shape] | None = None, dtypes: Sequence[str] | None = None) -> BenchmarkSuite:
        """Add products of these shapes (m, n, k) and types: GEMMBenchmark."""
        return self.add(GEMMBenchmark(sizes, dtypes, self.warmup, self.iterations))

    def add_fp8_gemm(self, sizes: Sequence[Shape] | None = None) -> BenchmarkSuite:
        """Add products of float8_e4m3: FP8GEMMBenchmark."""
        return self.add(FP8GEMMBenchmark(sizes, self.warmup, self.iterations))

    def add_gemv(self, configs: Sequence[Config] | None = None, dtypes: Sequence[str] | None = None) -> BenchmarkSuite:
        """Add products of one row with weights (k, n, name): GEMVBenchmark."""
        return self.add(GEMVBenchmark(configs, dtypes, self.warmup, self.iterations))

    def add_w8a8_gemv(self, configs: Sequence[Config] | None = None) -> BenchmarkSuite:
        """Add the same with both in float8_e4m3: W8A8GEMVBenchmark."""
        return self.add(W8A8GEMVBenchmark(configs, self.warmup, self.iterations))

    def add_attention(
        self, seq_lens: Sequence[int] | None = None, num_heads: int = 32, head_dim: int = 128
    ) -> BenchmarkSuite:
        """Add causal prompts: SDPABenchmark."""
        return self.add(SDPABenchmark(seq_lens, num_heads, head_dim, self.warmup, self.iterations))

    def add_gqa(
        self,
        seq_lens: Sequence[int] | None = None,
        num_heads: int = 32,
        num_kv_heads: int = 8,
        head_dim: int = 128,
    ) -> BenchmarkSuite:
        """Add causal prompts whose heads share keys: GQABenchmark."""
        return self.add(GQABenchmark(seq_lens, num_heads, num_kv_heads, head_dim, self.warmup, self.iterations))

    def run(
        self, verbose: bool = True, progress: Callable[[str], None] = print, save: str | Path | None = None
    ) -> BenchmarkReport:
        """Every row of every suite. A row that cannot be measured here is listed in `skipped` with its reason.

        save: a file that gets the report after each suite and before its peers are measured, so that a run that is cut
        short leaves what it measured.
        """
        where = environment()
        report = BenchmarkReport(gpu=get_gpu_info(), version=str(where["pygpukit"]), environment=where)
        for name in self.names:
            if verbose:
                progress(f"measuring {name}")
            module = load(name)
            mine = self._collect(report, module.rows(self.quick))
            peer_rows = getattr(module, "peer_rows", None)
            if self.peers and peer_rows is not None:
                if save is not None:
                    report.save(save)
                self._collect(report, peer_rows(mine, self.quick))
            if save is not None:
                report.save(save)
        for benchmark in self.benchmarks:
            self._collect(report, benchmark.run())
        if save is not None:
            report.save(save)
        return report

    @staticmethod
    def _collect(report: BenchmarkReport, rows: Iterable[BenchmarkResult | Unavailable]) -> list[BenchmarkResult]:
        mine: list[BenchmarkResult] = []
        for row in rows:
            if isinstance(row, Unavailable):
                report.skipped[row.key] = row.reason
            else:
                report.add(row)
                mine.append(row)
        return mine

    def compare(self, baseline_path: str | Path, threshold: float = 0.05, verbose: bool = True) -> ComparisonResult:
        comparison = compare_reports(self.run(verbose), BenchmarkReport.load(baseline_path), threshold)
        if verbose:
            print(comparison.summary())
        return comparison


def run_quick() -> BenchmarkReport:
    return BenchmarkSuite(quick=True).add_all().run()


def run_full() -> BenchmarkReport:
    return BenchmarkSuite(peers=True).add_all().run()
