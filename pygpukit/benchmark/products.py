"""Products of chosen sizes and types, `--gemm`, `--gemv` and `--fp8`: out of a cold and of a warm L2 cache, with the
largest error against float64 beside each figure, and PyTorch in the same run.

`python -m pygpukit.benchmark.products JSON` prints PyTorch's microseconds of the rows that JSON lists.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Any

from . import operator_peers
from .base import Benchmark
from .measure import device_times_us
from .operators import beside
from .result import BenchmarkResult, Unavailable, from_samples

CATEGORY = "products"
KINDS = ("gemm", "gemv", "fp8")
DTYPES = ("bfloat16", "float16", "float32", "tf32", "float64", "int8", "float8_e4m3")
# Short names of types.
SHORT = {"fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "fp8": "float8_e4m3"}
SIZES, SMALL_SIZES = (2048, 4096, 8192), (64, 256)  # on a GPU; on the simulated device
CACHES = ("cold", "warm")
HOST = "the host's"
BUDGET_MS = 1500.0
TIMEOUT_S = 240
_SEEN = 64  # rows and columns whose error is looked at


class Products(Benchmark):
    """Square products of each size and type; gemv: of one row with a square weight, in GB/s of the weight.

    fp8: float8_e4m3 by one scale, whatever the types; of gemv that type is the weight's, with a
    row of bfloat16. On the simulated device the times are those of the host.
    """

    category = CATEGORY
    warmup, iterations = 3, 20

    def __init__(
        self,
        kinds: Sequence[str] = ("gemm",),
        sizes: Sequence[int] = (),
        dtypes: Sequence[str] = (),
        warmup: int | None = None,
        iterations: int | None = None,
        peers: bool = False,
    ) -> None:
        super().__init__(warmup, iterations)
        self.kinds, self.sizes, self.dtypes, self.peers = kinds, sizes, dtypes, peers

    def asked(self, on_host: bool) -> list[tuple[str, str, int]]:
        """(kind, type, size) of each product."""
        sizes = self.sizes or (SMALL_SIZES if on_host else SIZES)
        types = {kind: ("float8_e4m3",) if kind == "fp8" else self.dtypes or DTYPES[:3] for kind in self.kinds}
        return [(kind, dtype, size) for kind in self.kinds for dtype in types[kind] for size in sizes]

    def run(self) -> Iterator[BenchmarkResult | Unavailable]:
        from ..core.backend import ensure, is_sim

        ensure()
        asked = self.asked(is_sim())
        theirs = self._peer_us(asked) if self.peers and not is_sim() else {}
        if isinstance(theirs, str):
            yield Unavailable(f"{CATEGORY}/torch", theirs)
            theirs = {}
        if self.peers and is_sim():
            yield Unavailable(f"{CATEGORY}/torch", "the simulated device is no GPU to compare peers on")
        for kind, dtype, size in asked:
            call, plan, error = product(kind, dtype, shape_of(kind, size))
            for cache in (HOST,) if is_sim() else CACHES:
                mine = self._row((kind, dtype, size), cache, call, plan, error)
                yield mine
                if us := theirs.get(f"{mine.name} {cache}"):
                    yield beside(mine, "torch", work(kind, dtype, shape_of(kind, size))[0] / us)

    def _row(
        self, what: tuple[str, str, int], cache: str, call: Callable[[], Any], plan: str, error: float
    ) -> BenchmarkResult:
        rate, unit = work(what[0], what[1], shape_of(what[0], what[2]))
        times = (cold_us if cache == "cold" else device_times_us)(call, self.warmup, self.iterations)
        row = from_samples(row_name(*what), CATEGORY, [rate / max(us, 1e-3) for us in times], unit, better="higher")
        row.params = {"plan": plan, "times" if cache == HOST else "cache": cache}
        row.rel_error, row.median_us = error, median(times)
        return row

    def _peer_us(self, asked: list[tuple[str, str, int]]) -> dict[str, float] | str:
        """PyTorch's microseconds by row and cache, or why there are none."""
        text = json.dumps([self.warmup, self.iterations, asked])
        command = [sys.executable, "-m", __name__, text]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        lines = done.stdout.strip().splitlines()
        if done.returncode != 0 or not lines:
            return (done.stderr.strip().splitlines() or ["no message"])[-1][-200:]
        times: dict[str, float] = json.loads(lines[-1])
        return times


def cold_us(call: Callable[[], Any], warmup: int, iterations: int) -> list[float]:
    """Event times in microseconds, each after a read of several times the L2 cache."""
    from .._core import native
    from ..profiling import timing

    for _ in range(warmup):
        call()
    stream = native.current_stream()
    samples = timing.sample(call, stream, flush_l2=True, warmup_ms=1.0, max_samples=iterations, budget_ms=BUDGET_MS)
    return list(samples.us)


def shape_of(kind: str, size: int) -> tuple[int, int, int]:
    """Rows, columns and the length of the sums."""
    return 1 if kind == "gemv" else size, size, size


def row_name(kind: str, dtype: str, size: int) -> str:
    """The name of a product."""
    return f"{kind} {dtype} {size}"


def work(kind: str, dtype: str, shape: tuple[int, int, int]) -> tuple[float, str]:
    """The work that one microsecond's product would be a rate of, and the rate's unit."""
    m, n, k = shape
    if kind == "gemv":
        item = {"int8": 1, "float8_e4m3": 1, "float64": 8, "float32": 4, "tf32": 4}.get(dtype, 2)
        return n * k * item * 1e-3, "GB/s"
    return 2.0 * m * n * k * 1e-6, "TOP/s" if dtype == "int8" else "TFLOP/s"


def product(kind: str, dtype: str, shape: tuple[int, int, int]) -> tuple[Callable[[], Any], str, float]:
    """The function that computes a product of fresh operands, its backend, and its largest relative error."""
    import numpy as np

    import pygpukit as gp

    rng = np.random.default_rng(0)
    spread = 30.0 if dtype == "int8" else 1.0
    element, fp8 = "float32" if dtype == "tf32" else dtype, dtype == "float8_e4m3"
    m, n, k = shape
    x, w = (
        gp.from_numpy(rng.standard_normal((lines, k), np.float32) * np.float32(spread)).astype(kept)
        for lines, kept in ((m, "bfloat16" if fp8 and kind == "gemv" else element), (n, element))
    )
    asked: dict[str, dict[str, Any]] = {"int8": {"dtype": "int32"}, "tf32": {"tf32": True}}
    settings = asked.get(dtype, {})

    def call() -> Any:
        if fp8:
            return gp.matmul_fp8(x, w.T, out_dtype="bfloat16")
        return gp.matmul(x, w.T, **settings)

    plan = gp.ops.matmul_fp8_plan(x, w.T) if fp8 else gp.matmul_plan(x, w.T, **settings)
    left, right, got = (one.astype("float64").to_numpy() for one in (x[:_SEEN], w[:_SEEN], call()[:_SEEN, :_SEEN]))
    want = left @ right.T
    return call, plan.backend, float(np.abs(got - want).max() / max(np.abs(want).max(), 1e-300))


def _torch_us(warmup: int, iterations: int, asked: list[tuple[str, str, int]]) -> dict[str, float]:
    from .matmul import _torch_product

    library = operator_peers.Torch()
    times = {}
    for kind, dtype, size in asked:
        library.library.backends.cuda.matmul.allow_tf32 = False
        call = _torch_product(dtype, f"1 {1 if kind == 'gemv' else size} {size} {size} t")
        if call is None:
            continue
        for cache in CACHES:
            us = operator_peers.device_us(library, call, warmup, iterations, cold=cache == "cold")
            times[f"{row_name(kind, dtype, size)} {cache}"] = us
    return times


if __name__ == "__main__":
    print(json.dumps(_torch_us(*json.loads(sys.argv[1]))))
