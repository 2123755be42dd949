"""Suite `check`: what checked mode costs on the simulation, on one core: a vector addition and a tiled matmul."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from pygpukit.benchmark.measure import interpreter_json
from pygpukit.benchmark.result import BenchmarkResult, Unavailable, from_samples

CATEGORY = "check"

# One worker on both sides: checked mode always has one.
SCRIPT = """
import json, os, statistics, sys, time
os.environ.update(PYGPUKIT_BACKEND="sim", PYGPUKIT_SIM="workers=1")
import pygpukit as gp
from bench.kernels import ADD, MATMUL
def timed(source, config, args, check, repeats):
    kernel = gp.jit(source, check=check)
    samples = []
    for _ in range(repeats + 1):
        gp.synchronize()
        begin = time.perf_counter_ns()
        kernel[config](*args)
        gp.synchronize()
        samples.append((time.perf_counter_ns() - begin) * 1e-6)
    return samples[1:]
n, m, repeats = 1 << 20, 128, int(sys.argv[1])
a, b, c = (gp.ones(n) for _ in range(3))
d, e, f = (gp.ones((m, m)) for _ in range(3))
out = {}
for mode in (False, "memory", True):
    out["add " + str(mode)] = timed(ADD, (n // 256, 256), (a, b, c, n), mode, repeats)
    out["matmul " + str(mode)] = timed(MATMUL, ((m // 16, m // 16), (16, 16)), (d, e, f, m), mode, repeats)
print(json.dumps(out))
"""
MODES = {"False": "plain", "memory": "checked, memory only", "True": "checked"}


def rows(quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    times = interpreter_json(SCRIPT, "3" if quick else "15")
    for kernel, title in (("add", "vector addition of 1M float32"), ("matmul", "tiled matmul of 128 x 128")):
        medians = {}
        for mode, words in MODES.items():
            result = from_samples(f"{title}, {words}", CATEGORY, times[f"{kernel} {mode}"], "ms")
            medians[mode] = median(times[f"{kernel} {mode}"])
            yield result
        ratio = medians["True"] / medians["False"]
        yield BenchmarkResult(f"{title}, checked over plain", CATEGORY, value=ratio, unit="x")
