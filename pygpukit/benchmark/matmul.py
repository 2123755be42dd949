"""Suite `matmul`: products of common, odd, skinny and batched shapes in half precision, of some in int8, tf32 and fp8,
cuBLAS beside them by PyTorch.

`python -m pygpukit.benchmark.matmul QUICK` prints PyTorch's microseconds by shape as JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from statistics import geometric_mean, median
from typing import Any

from . import operator_peers
from .operators import device_us
from .result import BenchmarkResult, Unavailable

CATEGORY = "matmul"
HALVES = ("bfloat16", "float16")
WIDER = "bfloat16"  # has more shapes
# int8 in int32; float32 in tf32; fp8 by one scale, and by scales of blocks of 128, into bfloat16. Right operands by
# columns. cuBLAS has no peer for the last.
OTHERS = ("int8", "tf32", "float8_e4m3", "float8_e4m3-blocks")
OTHER_SHAPES = (
    "1 2048 2048 2048 t",
    "1 4096 4096 4096 t",
    "1 8192 8192 8192 t",
    "1 512 4096 4096 t",
    "1 64 4096 4096 t",
)
TIMEOUT_S = 240
# batches, m, n, k; the right operand is stored by columns, as the weights of a linear layer are, where it says "t".
SHAPES = (
    "1 2048 2048 2048", "1 4096 4096 4096", "1 8192 8192 8192", "1 4096 14336 4096 t", "1 1024 4096 4096 t",
    "1 512 4096 4096 t", "1 64 4096 4096 t", "1 16 4096 4096 t", "1 8 4096 4096 t", "1 1 4096 4096 t",
    "1 1 18944 3584 t", "1 4096 512 8192", "64 512 512 512", "32 1024 1024 64", "1 1000 1000 1000",
    "1 3000 1000 2000", "1 4093 4099 4101", "1 333 777 129",
)  # fmt: skip
# With these bfloat16 has 60, half of them odd, of few rows or columns, or batched.
MORE_SHAPES = (
    "1 1024 1024 1024 t", "1 1536 1536 1536", "1 2048 2048 2048 t", "1 3072 3072 3072 t", "1 4096 4096 4096 t",
    "1 6144 6144 6144", "1 8192 8192 8192 t", "1 2048 4096 14336 t", "1 2048 14336 4096 t", "1 8192 4096 4096 t",
    "1 8192 6144 3072", "1 512 14336 4096 t", "1 512 4096 14336 t", "1 256 4096 4096 t", "1 128 14336 4096 t",
    "1 1024 8192 8192", "1 8192 1024 8192", "1 16384 2048 2048", "1 2048 2048 16384 t", "1 256 32000 4096 t",
    "1 4096 256 4096",
    "1 1023 1025 1027", "1 2047 2049 2051 t", "1 511 4096 4095 t", "1 4096 4095 4096", "1 2048 50257 768 t",
    "1 777 1234 3333", "1 1000 1000 1000 t", "1 3000 5000 1500",
    "1 4 14336 4096 t", "1 32 3584 18944 t", "1 48 5000 3001 t", "1 64 8192 8192", "1 4096 16 4096",
    "1 8192 64 1024 t",
    "32 1024 64 1024", "128 256 256 256", "16 2048 2048 128 t", "256 128 128 64 t", "8 1000 1000 1000",
    "64 77 77 64", "12 384 384 385",
)  # fmt: skip
INT8_SPREAD = 30.0  # standard deviation of int8 operands
WARM_UP_PRODUCTS = 1000  # of 0.2 ms
SMALL = 2**31  # multiply-adds; what the simulated device is asked for, and a quick run


def _parsed(shape: str) -> tuple[int, int, int, int, bool]:
    batches, m, n, k = map(int, shape.split()[:4])
    return batches, m, n, k, shape.endswith("t")


def _flops(shape: str) -> int:
    batches, m, n, k, _ = _parsed(shape)
    return 2 * batches * m * n * k


def _asked(quick: bool) -> list[tuple[str, str]]:
    """(what, shape) of every row."""
    every = [(dtype, shape) for shape in SHAPES for dtype in HALVES]
    every += [(WIDER, shape) for shape in MORE_SHAPES]
    every += [(kind, shape) for shape in OTHER_SHAPES for kind in OTHERS]
    return [(kind, shape) for kind, shape in every if not quick or _flops(shape) <= SMALL]


def rows(quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    from ..core.backend import ensure, is_sim

    ensure()
    if is_sim():
        yield Unavailable(CATEGORY, "the simulated device computes products with NumPy; --gemm times those of the host")
        return
    _warm_up()
    for kind, shape in _asked(quick):
        call, plan = _product(kind, shape)
        samples = device_us(call, quick)
        yield BenchmarkResult(
            f"{kind} {shape}",
            CATEGORY,
            params={"plan": plan},
            value=_flops(shape) / median(samples) * 1e-6,
            unit="TFLOP/s",
            better="higher",
            samples=[_flops(shape) / us * 1e-6 for us in samples],
            iterations=len(samples),
        )


def _product(kind: str, shape: str) -> tuple[Callable[[], Any], str]:
    """The function that computes a row's product of fresh operands, and its plan."""
    import pygpukit as gp

    batches, m, n, k, by_columns = _parsed(shape)
    first = (batches,) if batches > 1 else ()
    values = [gp.random.standard_normal(first + tail) for tail in ((m, k), ((n, k) if by_columns else (k, n)))]
    if kind == "int8":
        values = [value * INT8_SPREAD for value in values]
    dtype, _, scaling = kind.replace("tf32", "float32").partition("-")
    a, b = (value.astype(dtype) for value in values)
    if by_columns:
        b = gp.swapaxes(b, -1, -2)
    if kind == "int8":
        return lambda: gp.matmul(a, b, dtype="int32"), str(gp.matmul_plan(a, b, dtype="int32"))
    if kind == "tf32":
        return lambda: gp.matmul(a, b, tf32=True), str(gp.matmul_plan(a, b, tf32=True))
    if kind in HALVES:
        return lambda: gp.matmul(a, b), str(gp.matmul_plan(a, b))
    blocks = -(-k // 128)
    x, y = (gp.ones(size if scaling else ()) for size in ((m, blocks), (blocks, -(-n // 128))))
    return lambda: gp.matmul_fp8(a, b, x, y, out_dtype="bfloat16"), str(gp.ops.matmul_fp8_plan(a, b, x, y))


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
    ratios: dict[str, list[float]] = {"": [], WIDER: []}
    for mine in ours:
        if mine.name not in theirs:
            continue
        rate = _flops(mine.name.partition(" ")[2]) / theirs[mine.name] * 1e-6
        for what, own in ratios.items():
            if mine.name.startswith(what):
                own.append((mine.value or 0.0) / rate)
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
    for what, own in ratios.items():
        if not own:
            continue
        of = f" of {len(own)} shapes in {what}" if what else ""
        for name, value in ((f"geometric mean{of}", geometric_mean(own)), (f"least{of}", min(own))):
            yield BenchmarkResult(f"speed over PyTorch, {name}", CATEGORY, value=value, unit="x", better="higher")


def _torch_us(quick: bool) -> dict[str, float]:
    """Of the rows that PyTorch has a way to."""
    library = operator_peers.Torch()
    torch = library.library
    times = {}
    square = torch.ones(4096, 4096, dtype=torch.bfloat16, device="cuda")
    for _ in range(WARM_UP_PRODUCTS):
        torch.matmul(square, square)
    torch.cuda.synchronize()
    for kind, shape in _asked(quick):
        call = _torch_product(kind, shape)
        if call is None:
            continue
        times[f"{kind} {shape}"] = operator_peers.device_us(library, call)
    return times


def _torch_product(kind: str, shape: str) -> Callable[[], Any] | None:
    """PyTorch's way to a row's product, None where it has none."""
    import torch

    batches, m, n, k, by_columns = _parsed(shape)
    first = (batches,) if batches > 1 else ()
    a = torch.randn(*first, m, k, device="cuda")
    b = torch.randn(*first, *((n, k) if by_columns else (k, n)), device="cuda")
    if kind == "int8":
        left, right = ((x * INT8_SPREAD).to(torch.int8) for x in (a, b))
        return lambda: torch._int_mm(left, right.mT)
    if kind == "float8_e4m3":
        left, right = (x.to(torch.float8_e4m3fn) for x in (a, b))
        one = torch.ones((), device="cuda")
        return lambda: torch._scaled_mm(left, right.mT, one, one, out_dtype=torch.bfloat16)
    if kind == "tf32":
        torch.backends.cuda.matmul.allow_tf32 = True
        return lambda: torch.matmul(a, b.mT)
    if kind in ("float32", "float64"):
        torch.backends.cuda.matmul.allow_tf32 = False
        double = getattr(torch, kind)
        left, right = a.to(double), b.to(double)
        return lambda: torch.matmul(left, right.mT if by_columns else right)
    if kind not in HALVES:
        return None
    left, right = (x.to(getattr(torch, kind)) for x in (a, b))
    return lambda: torch.matmul(left, right.mT if by_columns else right)


if __name__ == "__main__":
    print(json.dumps(_torch_us(sys.argv[1] == "quick")))
