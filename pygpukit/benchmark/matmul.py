"""Suite `matmul`: half-precision products of common, odd, skinny and batched shapes, cuBLAS beside them by PyTorch.

`python -m pygpukit.benchmark.matmul QUICK` prints PyTorch's microseconds by shape as JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from statistics import median

from .operators import device_us
from .result import BenchmarkResult, Unavailable

CATEGORY = "matmul"
DTYPES = ("bfloat16", "float16")
TIMEOUT_S = 240
# batches, m, n, k; the right operand is stored by columns, as the weights of a linear layer are, where it says "t".
SHAPES = (
    "1 2048 2048 2048", "1 4096 4096 4096", "1 8192 8192 8192", "1 4096 14336 4096 t", "1 1024 4096 4096 t",
    "1 512 4096 4096 t", "1 64 4096 4096 t", "1 16 4096 4096 t", "1 8 4096 4096 t", "1 1 4096 4096 t",
    "1 1 18944 3584 t", "1 4096 512 8192", "64 512 512 512", "32 1024 1024 64", "1 1000 1000 1000",
    "1 3000 1000 2000", "1 4093 4099 4101", "1 333 777 129",
)  # fmt: skip
WARM_UP_PRODUCTS = 1000  # of 0.2 ms
SMALL = 2**31  # multiply-adds; what the simulated device is asked for, and a quick run


def _parsed(shape: str) -> tuple[int, int, int, int, bool]:
    batches, m, n, k = map(int, shape.split()[:4])
    return batches, m, n, k, shape.endswith("t")


def _flops(shape: str) -> int:
    batches, m, n, k, _ = _parsed(shape)
    return 2 * batches * m * n * k


def _asked(quick: bool) -> list[str]:
    return [shape for shape in SHAPES if not quick or _flops(shape) <= SMALL]


def rows(quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    import numpy as np

    import pygpukit as gp

    from ..core.backend import ensure, is_sim

    ensure()
    if is_sim():
        yield Unavailable(CATEGORY, "the simulated device computes products with NumPy")
        return
    rng = np.random.default_rng(0)
    _warm_up()
    for shape in _asked(quick):
        batches, m, n, k, by_columns = _parsed(shape)
        first = (batches,) if batches > 1 else ()
        values = [
            rng.standard_normal(first + tail, np.float32) for tail in ((m, k), ((n, k) if by_columns else (k, n)))
        ]
        for dtype in DTYPES:
            a, b = (gp.from_numpy(value).astype(dtype) for value in values)
            right = gp.swapaxes(b, -1, -2) if by_columns else b
            samples = device_us(lambda a=a, b=right: gp.matmul(a, b), quick)  # type: ignore[misc]
            yield BenchmarkResult(
                f"{dtype} {shape}",
                CATEGORY,
                params={"plan": str(gp.matmul_plan(a, right))},
                value=_flops(shape) / median(samples) * 1e-6,
                unit="TFLOP/s",
                better="higher",
                samples=[_flops(shape) / us * 1e-6 for us in samples],
                iterations=len(samples),
            )


def _warm_up() -> None:
    """Work until the device's clocks have risen: the first figure is of them otherwise."""
    import pygpukit as gp

    square = gp.ones((4096, 4096), dtype="bfloat16")
    for _ in range(WARM_UP_PRODUCTS):
        gp.matmul(square, square)
    gp.synchronize()


def peer_rows(ours: list[BenchmarkResult], quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    """PyTorch's rate beside each of ours, and the geometric mean of the ratios."""
    command = [sys.executable, "-m", __name__, "quick" if quick else "full"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        yield Unavailable(f"{CATEGORY}/torch", (done.stderr.strip().splitlines() or ["no message"])[-1][-200:])
        return
    theirs: dict[str, float] = json.loads(lines[-1])
    product = 1.0
    for mine in ours:
        shape = mine.name.partition(" ")[2]
        rate = _flops(shape) / theirs[mine.name] * 1e-6
        product *= (mine.value or 0.0) / rate
        yield BenchmarkResult(
            f"{mine.name} beside PyTorch",
            CATEGORY,
            params=mine.params,
            value=mine.value,
            unit="TFLOP/s",
            better="higher",
            peer="torch (cuBLAS)",
            peer_value=rate,
        )
    yield BenchmarkResult(
        "speed over PyTorch, geometric mean", CATEGORY, value=product ** (1 / len(ours)), unit="x", better="higher"
    )


def _torch_us(quick: bool) -> dict[str, float]:
    """Event times of single calls after a read of several times the L2 cache."""
    import torch

    from .operator_peers import FLUSH_BYTES, SAMPLES, WARMUP

    flush = torch.zeros(FLUSH_BYTES // 4, dtype=torch.int32, device="cuda")
    found = {}
    square = torch.ones(4096, 4096, dtype=torch.bfloat16, device="cuda")
    for _ in range(WARM_UP_PRODUCTS):
        torch.matmul(square, square)
    torch.cuda.synchronize()
    for shape in _asked(quick):
        batches, m, n, k, by_columns = _parsed(shape)
        first = (batches,) if batches > 1 else ()
        for dtype in DTYPES:
            a = torch.randn(*first, m, k, device="cuda").to(getattr(torch, dtype))
            b = torch.randn(*first, *((n, k) if by_columns else (k, n)), device="cuda").to(getattr(torch, dtype))
            right = b.mT if by_columns else b
            times = []
            for sample in range(WARMUP + SAMPLES):
                flush.sum()
                begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                begin.record()
                torch.matmul(a, right)
                end.record()
                end.synchronize()
                if sample >= WARMUP:
                    times.append(begin.elapsed_time(end) * 1e3)
            found[f"{dtype} {shape}"] = median(times)
    return found


if __name__ == "__main__":
    print(json.dumps(_torch_us(sys.argv[1] == "quick")))
