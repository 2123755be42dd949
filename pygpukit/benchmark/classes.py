"""The documented benchmark classes: products and attention of chosen shapes, as objects for BenchmarkSuite.add().

Each row has its error against float64. Out of a cold L2 cache; on the simulated device the host's times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from .attention import Attention
from .base import Benchmark
from .measure import device_times_us, simulated
from .products import HOST, SHORT, cold_us, product, work
from .result import BenchmarkResult, from_samples

Shape = tuple[int, int, int]  # rows, columns, length of the sums
Config = tuple[int, int, str]  # of a weight: length of the sums, columns, its name

LLM_CONFIGS: list[Config] = [
    (4096, 4096, "7B_hidden"),
    (4096, 14336, "7B_mlp_up"),
    (14336, 4096, "7B_mlp_down"),
    (8192, 8192, "72B_hidden"),
    (8192, 29568, "72B_mlp_up"),
    (29568, 8192, "72B_mlp_down"),
]
_SIZES: list[Shape] = [(size, size, size) for size in (1024, 2048, 4096, 8192)]
_FP8_SIZES: list[Shape] = [(m, 4096, 14336) for m in (1024, 2048, 4096)]
_SMALL: list[Shape] = [(64, 64, 64), (256, 256, 256)]  # on the simulated device
_SMALL_CONFIGS: list[Config] = [(256, 512, "small")]
_SEEN = 64  # columns whose error is looked at


class GEMMBenchmark(Benchmark):
    """Products (m, n, k) of types by their names, as "bf16", "fp16", "fp32", "tf32", "fp64", "int8"; by default the
    first three."""

    category = "gemm"

    def __init__(
        self,
        sizes: Sequence[Shape] | None = None,
        dtypes: Sequence[str] | None = None,
        warmup: int = 10,
        iterations: int = 50,
    ) -> None:
        super().__init__(warmup, iterations)
        self.sizes = sizes or (_SMALL if simulated() else _SIZES)
        self.dtypes = dtypes or ["bf16", "fp16", "fp32"]

    def run(self) -> list[BenchmarkResult]:
        """A row of each size and type. Raises DTypeError for a type that is not multiplied."""
        return [self._row(SHORT.get(dtype, dtype), size) for dtype in self.dtypes for size in self.sizes]

    def _row(self, dtype: str, shape: Shape) -> BenchmarkResult:
        kind = "fp8" if dtype == "float8_e4m3" else "gemm"
        call, plan, error = product(kind, dtype, shape)
        name = f"{kind} {dtype} {'x'.join(map(str, shape))}"
        return _row(self, name, call, *work(kind, dtype, shape), {"plan": plan}, error)


class FP8GEMMBenchmark(GEMMBenchmark):
    """Products (m, n, k) of float8_e4m3, on every device."""

    def __init__(self, sizes: Sequence[Shape] | None = None, warmup: int = 10, iterations: int = 50) -> None:
        super().__init__(sizes or (None if simulated() else _FP8_SIZES), ["fp8"], warmup, iterations)


class GEMVBenchmark(Benchmark):
    """Products of one row, in GB/s of the weight. configs: LLM_CONFIGS by default.

    dtypes: "bf16", "fp16", "fp32"; "fp8" and "nvf4" are of the weight, with a row of bfloat16.
    """

    category = "gemv"

    def __init__(
        self,
        configs: Sequence[Config] | None = None,
        dtypes: Sequence[str] | None = None,
        warmup: int = 10,
        iterations: int = 50,
    ) -> None:
        super().__init__(warmup, iterations)
        self.configs = configs or (_SMALL_CONFIGS if simulated() else LLM_CONFIGS)
        self.dtypes = dtypes or ["bf16", "fp8", "nvf4"]

    def run(self) -> list[BenchmarkResult]:
        """A row of each weight and type."""
        return [self._row(dtype, *config) for dtype in self.dtypes for config in self.configs]

    def _row(self, dtype: str, k: int, n: int, label: str) -> BenchmarkResult:
        if dtype in ("fp8", "nvf4", "w8a8"):
            call, weight_bytes, error = _small_weight(dtype, n, k)
            rate, unit, params = weight_bytes * 1e-3, "GB/s", {}
        else:
            call, plan, error = product("gemv", SHORT.get(dtype, dtype), (1, n, k))
            (rate, unit), params = work("gemv", SHORT.get(dtype, dtype), (1, n, k)), {"plan": plan}
        return _row(self, f"gemv {dtype} {label} {k}x{n}", call, rate, unit, params, error)


class W8A8GEMVBenchmark(GEMVBenchmark):
    """Products of one row of float8_e4m3 with weights of float8_e4m3."""

    def __init__(self, configs: Sequence[Config] | None = None, warmup: int = 10, iterations: int = 50) -> None:
        super().__init__(configs, ["w8a8"], warmup, iterations)


class SDPABenchmark(Attention):
    """Causal prompts in bfloat16, as many heads of keys as of queries."""

    def __init__(
        self,
        seq_lens: Sequence[int] | None = None,
        num_heads: int = 32,
        head_dim: int = 128,
        warmup: int = 10,
        iterations: int = 50,
    ) -> None:
        super().__init__(("prompt",), seq_lens, num_heads, num_heads, head_dim, warmup, iterations)


class GQABenchmark(Attention):
    """Causal prompts in bfloat16, several heads of queries to one of keys."""

    def __init__(
        self,
        seq_lens: Sequence[int] | None = None,
        num_heads: int = 32,
        num_kv_heads: int = 8,
        head_dim: int = 128,
        warmup: int = 10,
        iterations: int = 50,
    ) -> None:
        super().__init__(("prompt",), seq_lens, num_heads, num_kv_heads, head_dim, warmup, iterations)


def _row(
    benchmark: Benchmark,
    name: str,
    call: Callable[[], Any],
    rate: float,
    unit: str,
    params: dict[str, str],
    error: float,
) -> BenchmarkResult:
    """rate: of a call that took a microsecond."""
    on_host = simulated()
    times = (device_times_us if on_host else cold_us)(call, benchmark.warmup, benchmark.iterations)
    samples = [rate / max(us, 1e-3) for us in times]
    row = from_samples(name, benchmark.category, samples, unit, better="higher")
    row.params = {**params, "times": HOST} if on_host else {**params, "cache": "cold"}
    row.rel_error, row.median_us, row.min_us, row.max_us = error, median(times), min(times), max(times)
    return row


def _small_weight(dtype: str, n: int, k: int) -> tuple[Callable[[], Any], float, float]:
    """A product of one row with a weight of few bits, the weight's bytes, and the error over the largest result."""
    import numpy as np

    import pygpukit as gp

    row, weight = gp.random.randn(1, k, dtype="float32"), gp.random.randn(n, k, dtype="float32")
    if dtype == "nvf4":
        x, packed = row.astype("bfloat16"), gp.ops.quantize_nvfp4(weight)
        weight_bytes, decoded = (
            float(packed.codes.nbytes + packed.scales.nbytes),
            gp.ops.dequantize_fp4(packed, "float32"),
        )

        def call() -> Any:
            return gp.matmul_fp4(x, packed)
    else:
        x, small = row.astype("bfloat16" if dtype == "fp8" else "float8_e4m3"), weight.astype("float8_e4m3")
        weight_bytes, decoded = float(small.nbytes), small

        def call() -> Any:
            return gp.matmul_fp8(x, small.T, out_dtype="bfloat16")

    left, right, got = (one.astype("float64").to_numpy() for one in (x, decoded[:_SEEN], call()[:, :_SEEN]))
    want = left @ right.T
    return call, weight_bytes, float(np.abs(got - want).max() / np.abs(want).max())
