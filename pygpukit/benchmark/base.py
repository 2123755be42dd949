"""A benchmark as an object."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from .result import BenchmarkResult, Unavailable


class Benchmark(ABC):
    """A benchmark as an object, for use with BenchmarkSuite.add()."""

    category: str = "unknown"
    warmup: int = 10
    iterations: int = 50

    def __init__(self, warmup: int | None = None, iterations: int | None = None) -> None:
        self.warmup = type(self).warmup if warmup is None else warmup
        self.iterations = type(self).iterations if iterations is None else iterations

    @abstractmethod
    def run(self) -> Iterable[BenchmarkResult | Unavailable]: ...
