"""Suite `simulator`: kernels on the processor, by two threads: from cell to runnable, loops, barriers, launches.

It runs in a process of its own on the simulated device, also where a GPU is open.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

from pygpukit.benchmark.measure import interpreter_json
from pygpukit.benchmark.result import BenchmarkResult, Unavailable, from_samples

CATEGORY = "simulator"

# argv: cache folder, number of rounds.
SCRIPT = '''
import json, os, sys, time
os.environ.update(PYGPUKIT_BACKEND="sim", PYGPUKIT_CACHE_DIR=sys.argv[1], PYGPUKIT_SIM="sms=8,workers=2")
os.environ.pop("PYGPUKIT_CHECK", None)
import numpy as np
import pygpukit as gp

from bench.kernels import ADD, MATMUL
BARRIERS = "__global__ void barriers(int n) { for (int i = 0; i < n; ++i) __syncthreads(); }"
SHUFFLES = """__global__ void shuffles(int *o, int n) {
  int x = threadIdx.x;
  for (int i = 0; i < n; ++i) x += __shfl_xor_sync(0xffffffff, x, 1);
  if (x == 1) *o = x;
}"""
rounds = int(sys.argv[2])
rows = {}

def sample(name, scale, calls):
    """Seconds of each call, times scale."""
    rows[name] = [seconds * scale for seconds in calls]

def timed(call, repeats, warm=2):
    for turn in range(warm + repeats):
        begin = time.perf_counter()
        call()
        if turn >= warm:
            yield time.perf_counter() - begin

def cells():
    for number in range(2 * rounds + 1):
        begin = time.perf_counter()
        gp.jit(MATMUL + f"\\n// {number}")
        if number:
            yield time.perf_counter() - begin

def wait(call):
    def both():
        call()
        gp.synchronize()
    return both

gp.synchronize()
sample("cell to runnable", 1e3, list(cells()))

n = 1 << 20
rng = np.random.default_rng(1)
a, b = (gp.from_numpy(rng.random(n, dtype=np.float32)) for _ in range(2))
out = gp.from_numpy(np.zeros(n, np.float32))
add = gp.jit(ADD)[n // 256, 256]
sample("element-wise, 1M float32", 1e3, list(timed(wait(lambda: add(a, b, out, n)), 20 * rounds)))
assert np.array_equal(out.to_numpy(), a.to_numpy() + b.to_numpy())

size = 512
left, right = (gp.from_numpy(rng.random((size, size), dtype=np.float32)) for _ in range(2))
product = gp.from_numpy(np.zeros((size, size), np.float32))
matmul = gp.jit(MATMUL)[(size // 16, size // 16), (16, 16)]
sample("tiled matmul, 512^3", 1e3, list(timed(wait(lambda: matmul(left, right, product, size)), rounds, 1)))
assert np.allclose(product.to_numpy(), left.to_numpy() @ right.to_numpy(), rtol=1e-4)

# One block: one thread of the machine runs it.
barriers, shuffles, flag = gp.jit(BARRIERS), gp.jit(SHUFFLES), gp.from_numpy(np.zeros(1, np.int32))
for threads in (256, 1024):
    count = 200000 // threads
    block = barriers[1, threads]
    seconds = list(timed(wait(lambda: block(count)), 4 * rounds))
    sample(f"barrier, {threads} threads", 1e9 / (count * threads), seconds)
shuffle = shuffles[1, 256]
sample("shuffle", 1e9 / (1000 * 256), list(timed(wait(lambda: shuffle(flag, 1000)), 4 * rounds)))

empty = gp.jit("__global__ void empty(int n) {}")[1, 32]
def launches():
    for _ in range(500):
        empty(1)
sample("launch, queued", 1e6 / 500, list(timed(wait(launches), 4 * rounds)))
sample("launch and wait", 1e6, list(timed(wait(lambda: empty(1)), 200 * rounds)))
print(json.dumps(rows))
'''
UNITS = {
    "cell to runnable": "ms",
    "element-wise, 1M float32": "ms",
    "tiled matmul, 512^3": "ms",
    "barrier, 256 threads": "ns",
    "barrier, 1024 threads": "ns",
    "shuffle": "ns",
    "launch, queued": "us",
    "launch and wait": "us",
}


def rows(quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    from pygpukit.core.errors import NvrtcError
    from pygpukit.jit.compile.simulator import find_compiler

    try:
        find_compiler()
    except NvrtcError as error:
        for name in UNITS:
            yield Unavailable(f"{CATEGORY}/{name}", str(error))
        return
    with tempfile.TemporaryDirectory() as folder:
        measured = interpreter_json(SCRIPT, folder, "2" if quick else "7")
    for name, unit in UNITS.items():
        yield from_samples(name, CATEGORY, measured[name], unit)
